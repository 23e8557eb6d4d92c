"""Protobuf's well-known types as CEL sees them: wrappers are scalars, Struct is a map, Value is any JSON.

Kubernetes has no protobuf messages in expressions, but these names are part of the language and of its conformance
tests.
"""

from __future__ import annotations

import struct as binary
from collections.abc import Callable, Mapping
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.checking.scope import Constant
from pyverno.lang.cel.scalars import Uint
from pyverno.lang.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    struct,
    wrapper_of,
)
from pyverno.lang.cel.values import Value

__all__ = ["WellKnownTypes"]


def _single(value: Value) -> Value:
    try:
        return binary.unpack("<f", binary.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _bounded(low: int, high: int) -> Callable[[Value], Value]:
    def check(value: Value) -> Value:
        if not low <= value <= high:
            raise EvaluationError("integer overflow")
        return value

    return check


def _same(value: Value) -> Value:
    return value


_WRAPPERS: Final[Mapping[str, tuple[Type, Value, Callable[[Value], Value]]]] = {
    "google.protobuf.BoolValue": (BOOL, False, _same),
    "google.protobuf.BytesValue": (BYTES, b"", _same),
    "google.protobuf.DoubleValue": (DOUBLE, 0.0, _same),
    "google.protobuf.FloatValue": (DOUBLE, 0.0, _single),
    "google.protobuf.Int32Value": (INT, 0, _bounded(-(2**31), 2**31 - 1)),
    "google.protobuf.Int64Value": (INT, 0, _same),
    "google.protobuf.StringValue": (STRING, "", _same),
    "google.protobuf.UInt32Value": (UINT, Uint(0), _bounded(0, 2**32 - 1)),
    "google.protobuf.UInt64Value": (UINT, Uint(0), _same),
}
_STRUCTS: Final[Mapping[str, tuple[Type, Mapping[str, Type], Value]]] = {
    "google.protobuf.ListValue": (list_of(DYN), {"values": list_of(DYN)}, []),
    "google.protobuf.Struct": (map_of(STRING, DYN), {"fields": map_of(STRING, DYN)}, {}),
    "google.protobuf.Value": (
        DYN,
        {
            "null_value": NULL,
            "number_value": DOUBLE,
            "string_value": STRING,
            "bool_value": BOOL,
            "struct_value": map_of(STRING, DYN),
            "list_value": list_of(DYN),
        },
        None,
    ),
}
_ALIASES: Final = {"google.protobuf.Any": ANY}


class WellKnownTypes:
    """A StructProvider of the well-known types."""

    @property
    def constants(self) -> Mapping[str, Constant]:
        """The names with fixed values that come along."""
        return {"google.protobuf.NullValue.NULL_VALUE": Constant(NULL, None)}

    def has_struct(self, name: str) -> bool:
        """Return whether a name is a well-known type that literals can build."""
        return name in _WRAPPERS or name in _STRUCTS

    def struct_type(self, name: str) -> Type:
        """Return the scalar, list, map or dyn type that a literal has."""
        wrapped = _WRAPPERS.get(name)
        if wrapped is not None:
            return wrapper_of(wrapped[0])
        known = _STRUCTS.get(name)
        return known[0] if known is not None else _ALIASES.get(name, struct(name))

    def field_type(self, name: str, field_name: str) -> Type | None:
        """Return the type of a field of a literal."""
        wrapped = _WRAPPERS.get(name)
        if wrapped is not None:
            return wrapped[0] if field_name == "value" else None
        known = _STRUCTS.get(name)
        return known[1].get(field_name) if known is not None else None

    def construct(self, name: str, fields: dict[str, Value]) -> Value:
        """Return the unwrapped value of a literal."""
        wrapped = _WRAPPERS.get(name)
        if wrapped is not None:
            _, default, convert = wrapped
            return convert(fields.get("value", default))
        known = _STRUCTS[name]
        return next(iter(fields.values()), known[2])
