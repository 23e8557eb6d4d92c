"""Scalars of Kubernetes' own types, read as Go reads them: integers, times, quantities, base64.

Each reader takes a JSON value and gives what Go writes back. A value of a wrong JSON type raises `MismatchError`, whose
place the caller knows; a text that cannot be read raises `UnreadableError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from pyverno.errors import PyvernoError, ValueSyntaxError
from pyverno.kube.json import JSON, encode
from pyverno.kube.quantity import parse_quantity
from pyverno.kube.time.duration import format_duration, parse_duration
from pyverno.kube.time.gotime import RFC3339, parse_time

__all__ = ["SPECIAL_TYPES", "MismatchError", "Reader", "UnreadableError", "json_kind", "read_bytes", "scalar_reader"]

Reader: TypeAlias = Callable[[JSON], JSON]

_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"
_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_KINDS: Final[Mapping[type, str]] = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}


class MismatchError(PyvernoError):
    """A value of another JSON type than the field; `found` and `wanted` are named as Go's decoder names them.

    Callers that know the field add it with `within`, from the inside out.
    """

    code = "mismatch"

    def __init__(self, found: str, wanted: str = "", struct: str = "", fields: str = "") -> None:
        super().__init__(f"json: cannot unmarshal {found} into Go {self._where(struct, fields)}of type {wanted}")
        self.found = found
        self.wanted = wanted
        self.struct = struct
        self.fields = fields

    @staticmethod
    def _where(struct: str, fields: str) -> str:
        return f"struct field {struct}.{fields} " if struct else "value "

    def within(self, struct: str, field: str, wanted: str) -> MismatchError:
        """Return the error with a field of a struct around the place.

        >>> str(MismatchError("string").within("DeploymentSpec", "replicas", "int32").within("Deployment", "spec", "x"))
        'json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32'
        """
        fields = f"{field}.{self.fields}" if self.fields else field
        return MismatchError(self.found, self.wanted or wanted, self.struct or struct, fields)


class UnreadableError(PyvernoError):
    """A text that is not what its field holds; the message is Go's."""

    code = "unreadable"


def json_kind(value: JSON) -> str:
    """Name the JSON type of a value as Go's decoder does.

    >>> json_kind({}), json_kind(1.5)
    ('object', 'number')
    """
    return _KINDS.get(type(value), "object")


def read_text(value: JSON) -> str:
    """Return a string."""
    if type(value) is not str:
        raise MismatchError(json_kind(value))
    return value


def read_bool(value: JSON) -> bool:
    """Return a bool."""
    if value is not True and value is not False:
        raise MismatchError(json_kind(value))
    return value


def _integer_reader(low: int, high: int) -> Reader:
    def read(value: JSON) -> int:
        if type(value) is int:
            if low <= value <= high:
                return value
            raise MismatchError(f"number {value}")
        if type(value) is float:
            if value.is_integer() and low <= value <= high and abs(value) < 1e15:
                return int(value)
            raise MismatchError(f"number {encode(value)}")
        raise MismatchError(json_kind(value))

    return read


def read_number(value: JSON) -> float:
    """Return a number."""
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    raise MismatchError(json_kind(value))


def read_bytes(value: JSON) -> str:
    """Return base64 text as Go writes it back: without line breaks.

    >>> read_bytes("aGk=")
    'aGk='
    """
    if type(value) is not str:
        raise MismatchError(json_kind(value), "[]uint8")
    problem = _base64_problem(value)
    if problem >= 0:
        raise UnreadableError(f"illegal base64 data at input byte {problem}")
    return value.replace("\n", "").replace("\r", "") if "\n" in value or "\r" in value else value


def _base64_problem(text: str) -> int:
    """Return the offset that Go's decoder complains about, or -1."""
    # Go: encoding/base64 decodeQuantum counts from the start of the group of four in some cases, and so does this
    digits = 0
    index = 0
    while index < len(text):
        char = text[index]
        index += 1
        if char in _BASE64:
            digits = (digits + 1) % 4
        elif char in "\r\n":
            continue
        elif char != "=" or digits < 2:
            return index - 1
        else:
            return _padding_problem(text, index, digits)
    return len(text) - digits if digits else -1


def _padding_problem(text: str, index: int, digits: int) -> int:
    if digits == 2:
        while index < len(text) and text[index] in "\r\n":
            index += 1
        if index == len(text):
            return len(text)
        if text[index] != "=":
            return index - 1
        index += 1
    while index < len(text) and text[index] in "\r\n":
        index += 1
    return index if index < len(text) else -1


def _read_quantity(value: JSON) -> str:
    text = value if type(value) is str else encode(value)
    try:
        return parse_quantity(text).canonical()
    except ValueSyntaxError as error:
        raise UnreadableError(str(error)) from None


def _time_reader(layout: str) -> Reader:
    def read(value: JSON) -> str:
        if type(value) is not str:
            raise MismatchError(json_kind(value), "string")
        try:
            return parse_time(RFC3339, value).in_utc().format(layout)
        except ValueSyntaxError as error:
            raise UnreadableError(str(error)) from None

    return read


def _read_duration(value: JSON) -> str:
    if type(value) is not str:
        raise MismatchError(json_kind(value), "string")
    try:
        return format_duration(parse_duration(value))
    except ValueSyntaxError as error:
        raise UnreadableError(str(error)) from None


_INT32: Final = _integer_reader(-(2**31), 2**31 - 1)


def _read_int_or_string(value: JSON) -> JSON:
    if type(value) is str:
        return value
    try:
        return _INT32(value)
    except MismatchError as error:
        raise MismatchError(error.found, "int32") from None


def _read_anything(value: JSON) -> JSON:
    return value


_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
SPECIAL_TYPES: Final[Mapping[str, Reader]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _read_quantity,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _read_int_or_string,
    f"{_META}.Time": _time_reader(RFC3339),
    f"{_META}.MicroTime": _time_reader(_MICRO),
    f"{_META}.Duration": _read_duration,
    f"{_META}.FieldsV1": _read_anything,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _read_anything,
}
"""Definitions that are one value to Go, with readers of their own."""

_BY_FORMAT: Final[Mapping[tuple[str, str], Reader]] = {
    ("integer", "int32"): _INT32,
    ("integer", "int64"): _integer_reader(-(2**63), 2**63 - 1),
    ("string", "byte"): read_bytes,
}
_BY_TYPE: Final[Mapping[str, Reader]] = {
    "string": read_text,
    "boolean": read_bool,
    "integer": _integer_reader(-(2**63), 2**63 - 1),
    "number": read_number,
}


def scalar_reader(kind: str, form: str) -> Reader:
    """Return the reader of an OpenAPI type and format; one that takes everything for types that are not scalars.

    >>> scalar_reader("integer", "int32")(7.0)
    7
    """
    return _BY_FORMAT.get((kind, form)) or _BY_TYPE.get(kind, _read_anything)
