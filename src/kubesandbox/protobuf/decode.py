"""One request body in protobuf becomes the JSON of its object.

The result is what Go would write as JSON: zero values are left out where the type has `omitempty`, zeros behind
pointers stay.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from kubesandbox.protobuf.messages import Field, Kind, message, message_of
from kubesandbox.protobuf.wire import Payload, WireType, fields, packed, signed
from pyverno.errors import DocumentError
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.json import decode as decode_json
from pyverno.kube.status import bad_request, unsupported_media_type
from pyverno.kube.time.duration import format_duration

__all__ = ["MEDIA_TYPE", "decode"]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_DEEPEST = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode(data: bytes) -> JSONObject:
    r"""Return the object that a protobuf body holds, with `apiVersion` and `kind`.

    Raises StatusError 400 for what is no such message or has fields that are not known, and 415 for kinds that have no
    protobuf form (custom resources).

    >>> decode(b"k8s\x00\n\x0f\n\x02v1\x12\tNamespace\x12\x06\n\x04\n\x02ns")
    {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'ns'}}
    """
    if not data.startswith(_MAGIC):
        prefix = " ".join(str(byte) for byte in _MAGIC)
        raise bad_request(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    try:
        return _unknown(data[len(_MAGIC) :])
    except DocumentError as error:
        raise bad_request(error.message) from None


def _unknown(data: bytes) -> JSONObject:
    """Read the envelope (`runtime.Unknown`), then what is in it."""
    parts: dict[int, bytes] = {}
    for number, wire, value in fields(data):
        if number not in (1, 2, 3, 4):
            raise DocumentError(f"unknown field {number} of the envelope")
        parts[number] = _bytes(wire, value)
    api_version, kind = _type_meta(parts.get(1, b""))
    raw = parts.get(2, b"")
    content_type = _decode_text(parts.get(4, b""))
    head: JSONObject = {"apiVersion": api_version, "kind": kind}
    if parts.get(3):
        raise DocumentError(f"unknown content encoding `{_decode_text(parts[3])}`")
    if content_type not in ("", MEDIA_TYPE):
        body = decode_json(raw)
        if content_type != "application/json" or not isinstance(body, dict):
            raise DocumentError(f"unknown content type `{content_type}`")
        return {**head, **body}
    name = message_of(GVK(*parse_api_version(api_version), kind))
    if name is None:
        raise unsupported_media_type(("application/json", "application/yaml"))
    return {**head, **_message(raw, name, 0)}


def _type_meta(data: bytes) -> tuple[str, str]:
    found = {1: "", 2: ""}
    for number, wire, value in fields(data):
        if number not in found:
            raise DocumentError(f"unknown field {number} of the type")
        found[number] = _decode_text(_bytes(wire, value))
    return found[1], found[2]


def _message(data: bytes, name: str, depth: int) -> JSONObject:
    if depth > _DEEPEST:
        raise DocumentError("the message is nested too deeply")
    known = message(name)
    body: JSONObject = {}
    for number, wire, value in fields(data):
        field = known.get(number)
        if field is None:
            raise DocumentError(f"unknown field {number} of {name}")
        _put(body, field, wire, value, depth)
    return body


def _put(body: JSONObject, field: Field, wire: WireType, value: Payload, depth: int) -> None:
    """Add one field as it is on the wire; those that occur again add to lists and maps, or replace."""
    kind = field.kind
    if kind.name == "list" and kind.item is not None:
        items = body.setdefault(field.name, [])
        if kind.item.name == "int" and isinstance(value, bytes) and wire is WireType.BYTES:
            items.extend(signed(number) for number in packed(value))
        else:
            items.append(_value(kind.item, wire, value, depth))
    elif kind.name == "map" and kind.item is not None:
        key, item = _entry(_bytes(wire, value), kind.item, depth)
        body.setdefault(field.name, {})[key] = item
    elif field.is_inlined:
        body.update(_message(_bytes(wire, value), kind.message, depth + 1))
    else:
        read = _value(kind, wire, value, depth)
        if kind.name == "message" and isinstance(body.get(field.name), dict):
            read = {**body[field.name], **read}
        if not _is_left_out(field, read):
            body[field.name] = read


def _is_left_out(field: Field, value: JSON) -> bool:
    """Return whether Go would not write a value: what is zero and no pointer; structs are written even when empty."""
    if field.is_pointer:
        return False
    if value is None or (value == {} and field.omits_empty):
        return True
    return field.omits_zero and not isinstance(value, dict) and not value


def _entry(data: bytes, kind: Kind, depth: int) -> tuple[str, JSON]:
    key = ""
    item = _ZEROS.get(kind.name, lambda: {})()
    for number, wire, value in fields(data):
        if number == 1:
            key = _decode_text(_bytes(wire, value))
        elif number == 2:
            item = _value(kind, wire, value, depth)
        else:
            raise DocumentError(f"unknown field {number} of a map")
    return key, item


_ZEROS: Mapping[str, Callable[[], JSON]] = {
    "string": str,
    "bytes": str,
    "int": int,
    "bool": bool,
    "quantity": lambda: "0",
    "bare": list,
    "list": list,
}


def _value(kind: Kind, wire: WireType, value: Payload, depth: int) -> JSON:
    match kind.name:
        case "message":
            return _message(_bytes(wire, value), kind.message, depth + 1)
        case "bare":
            return _message(_bytes(wire, value), kind.message, depth + 1).get("items", [])
        case "int":
            return signed(_number(wire, value))
        case "bool":
            return _number(wire, value) != 0
        case "double":
            return _double(wire, value)
    return _TEXTS[kind.name](_bytes(wire, value))


def _bytes(wire: WireType, value: Payload) -> bytes:
    if wire is not WireType.BYTES or not isinstance(value, bytes):
        raise DocumentError(f"proto: wrong wireType = {wire.value} for a message or text")
    return value


def _number(wire: WireType, value: Payload) -> int:
    if wire is not WireType.VARINT or not isinstance(value, int):
        raise DocumentError(f"proto: wrong wireType = {wire.value} for a number")
    return value


def _double(wire: WireType, value: Payload) -> float:
    if wire is not WireType.FIXED64 or not isinstance(value, bytes):
        raise DocumentError(f"proto: wrong wireType = {wire.value} for a number")
    (number,) = struct.unpack("<d", value)
    return float(number)


# ── Types that JSON writes in a way of its own ───────────────────────────────────────────────────────────────────────


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _numbers(data: bytes, what: str, known: tuple[int, ...]) -> dict[int, Payload]:
    found: dict[int, Payload] = {}
    for number, _, value in fields(data):
        if number not in known:
            raise DocumentError(f"unknown field {number} of {what}")
        found[number] = value
    return found


def _moment(data: bytes) -> datetime | None:
    """Read seconds and nanoseconds; a message without either is no time at all."""
    found = _numbers(data, "a time", (1, 2))
    seconds, nanoseconds = found.get(1, 0), found.get(2, 0)
    if not found or not isinstance(seconds, int) or not isinstance(nanoseconds, int):
        return None
    try:
        return _EPOCH + timedelta(seconds=signed(seconds), microseconds=signed(nanoseconds) // 1000)
    except OverflowError:
        raise DocumentError("a time is outside of the years 1 to 9999") from None


def _time(data: bytes) -> JSON:
    moment = _moment(data)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _micro_time(data: bytes) -> JSON:
    moment = _moment(data)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def _duration(data: bytes) -> JSON:
    value = _numbers(data, "a duration", (1,)).get(1, 0)
    return format_duration(signed(value)) if isinstance(value, int) else None


def _quantity(data: bytes) -> JSON:
    value = _numbers(data, "a quantity", (1,)).get(1, b"")
    return (_decode_text(value) if isinstance(value, bytes) else "") or "0"


def _int_or_string(data: bytes) -> JSON:
    found = _numbers(data, "a number or text", (1, 2, 3))
    if found.get(1, 0):
        text = found.get(3, b"")
        return _decode_text(text) if isinstance(text, bytes) else ""
    number = found.get(2, 0)
    return signed(number) if isinstance(number, int) else 0


def _embedded(data: bytes) -> JSON:
    raw = _numbers(data, "embedded JSON", (1,)).get(1, b"")
    return decode_json(raw) if isinstance(raw, bytes) and raw else None


_TEXTS: Mapping[str, Callable[[bytes], JSON]] = {
    "string": _decode_text,
    "bytes": lambda data: b64encode(data).decode(),
    "time": _time,
    "micro": _micro_time,
    "duration": _duration,
    "quantity": _quantity,
    "intstr": _int_or_string,
    "fields": _embedded,
    "raw": _embedded,
}
