"""Bodies of requests become JSON values: JSON, YAML or protobuf, by their content type.

The error texts for bodies that cannot be read are the API server's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from pyverno.errors import DocumentError
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.kube.status import StatusError, bad_request, request_too_large, unsupported_media_type
from pyverno.kube.yaml.documents import load_documents

__all__ = [
    "MAX_BYTES",
    "MEDIA_TYPES",
    "Body",
    "media_type",
    "read_body",
    "read_json",
    "read_yaml",
    "summary",
    "too_large",
    "yaml_problem",
]

MAX_BYTES = 3 * 1024 * 1024
"""Size of the largest body that is taken, in bytes; the API server's own limit."""

PROTOBUF = "application/vnd.kubernetes.protobuf"
MEDIA_TYPES = ("application/json", "application/yaml", PROTOBUF)
_SUMMARY = 30
_PARSE = "couldn't get version/kind; json parse error: "
_HEAD = (
    'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


@dataclass(frozen=True, slots=True)
class Body:
    """The content of a body; `duplicates` are the complaints about fields that are named twice, `data` its bytes."""

    value: JSON
    duplicates: tuple[str, ...] = ()
    data: bytes = b""


def media_type(header: str) -> str:
    """Return the media type of a header without its parameters.

    >>> media_type("application/json; charset=utf-8"), media_type("")
    ('application/json', 'application/json')
    """
    return header.partition(";")[0].strip().lower() or "application/json"


def too_large() -> StatusError:
    """Return the error of a body that is too large."""
    return request_too_large(f"Request entity too large: limit is {MAX_BYTES}")


def read_body(data: bytes, content_type: str, *, kind: str, accepted: tuple[str, ...] = MEDIA_TYPES) -> Body:
    """Read the object in a body; `kind` is that of the objects which are expected at this path.

    Raises StatusError 400 for what cannot be read and 415 for media types that are not taken.

    >>> read_body(b'{"a": 1, "a": 2}', "application/json", kind="Pod")
    Body(value={'a': 2}, duplicates=('duplicate field "a"',), data=b'{"a": 1, "a": 2}')
    """
    media = media_type(content_type)
    if media not in accepted:
        raise unsupported_media_type(accepted)
    if media == PROTOBUF:
        from kubesandbox.protobuf import decode as decode_protobuf

        try:
            return Body(decode_protobuf(data), (), data)
        except StatusError as error:
            if error.status != 400:
                raise
            raise _unrecognized(kind, error.message, data) from None
    try:
        body = read_json(data) if media == "application/json" else read_yaml(data)
    except DocumentError as error:
        why = f"{_PARSE}{error.message}" if media == "application/json" else yaml_problem(error)
        raise _unrecognized(kind, why, data) from None
    if body.value is None:
        return Body({}, (), data)
    if not isinstance(body.value, dict):
        raise _unrecognized(kind, f"{_PARSE}json: cannot unmarshal {_go_kind(body.value)} into {_HEAD}", data)
    for field in ("apiVersion", "kind"):
        value = body.value.get(field)
        if value is not None and not isinstance(value, str):
            why = f"{_PARSE}json: cannot unmarshal {_go_kind(value)} into Go struct field .{field} of type string"
            raise _unrecognized(kind, why, data)
    return body


def yaml_problem(error: DocumentError) -> str:
    """Format a YAML error with the prefix of Kubernetes' reader.

    >>> yaml_problem(DocumentError("no end"))
    'yaml: line 1: no end'
    """
    line = error.location.line if error.location else 1
    return f"yaml: line {line}: {error.message}"


def read_json(data: bytes) -> Body:
    """Read JSON and find the fields that are named twice in one object; raises DocumentError with Go's text.

    >>> read_json(b'{"spec": {"y": 1, "y": 2}}').duplicates
    ('duplicate field "spec.y"',)
    """
    value = decode(data)
    if data.count(b'":') + data.count(b'" :') > _count_keys(value):
        return Body(value, tuple(_duplicates(data)), data)
    return Body(value, (), data)


def read_yaml(data: bytes) -> Body:
    """Read the first YAML document; raises DocumentError."""
    documents = load_documents(data, duplicate_keys="last")
    value = documents[0].value if documents else None
    try:
        load_documents(data)
    except DocumentError as error:
        line = error.location.line if error.location else 1
        return Body(value, (f"yaml: unmarshal errors:\n  line {line}: {error.message}",), data)
    return Body(value, (), data)


def _count_keys(value: JSON) -> int:
    """Count the fields in a value; written again it has one `":` for each, where no text holds a quote."""
    try:
        written = orjson.dumps(value)
    except orjson.JSONEncodeError:
        written = b'\\"'
    if b'\\"' not in written:
        return written.count(b'":')
    total = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            total += len(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return total


def _duplicates(data: bytes) -> Iterator[str]:
    """Yield a complaint for each field that an object names more than once, in order of the text."""
    found: dict[int, list[str]] = {}

    def build(pairs: list[tuple[str, Any]]) -> JSONObject:
        body = dict(pairs)
        if len(body) != len(pairs):
            times = Counter(name for name, _ in pairs)  # in the order in which names come first
            found[id(body)] = [name for name, number in times.items() if number > 1]
        return body

    try:
        value = json.loads(data, object_pairs_hook=build)
    except (ValueError, RecursionError):
        return
    waiting: list[tuple[str, JSON]] = [("", value)] if found else []
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, dict):
            prefix = f"{path}." if path else ""
            yield from (f'duplicate field "{prefix}{name}"' for name in found.get(id(item), ()))
            waiting.extend((f"{prefix}{key}", child) for key, child in reversed(item.items()))
        elif isinstance(item, list):
            waiting.extend((f"{path}[{at}]", child) for at, child in reversed([*enumerate(item)]))


_GO_KINDS: dict[type, str] = {
    dict: "object",
    str: "string",
    bool: "bool",
    list: "array",
    int: "number",
    float: "number",
}


def _go_kind(value: JSON) -> str:
    return _GO_KINDS.get(type(value), "null")


def _unrecognized(kind: str, why: str, data: bytes) -> StatusError:
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why} ({summary(data)})")


def summary(data: bytes) -> str:
    """Show the beginning of a body as messages do.

    >>> summary(b'{"a": 1}'), summary(b"hi")
    ('{"a": 1}', '6869')
    """
    if not data:
        return "<empty>"
    if data[:1] == b"{":
        text = data.decode("utf-8", "replace")
        return text if len(data) <= _SUMMARY else data[:_SUMMARY].decode("utf-8", "replace") + " ..."
    return data.hex() if len(data) <= _SUMMARY else data[:_SUMMARY].hex() + " ..."
