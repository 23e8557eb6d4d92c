"""Reading parts of values: fields, indexes, presence, and what a loop runs over.

Optional values pass selection on to what they hold. A map may be a dict subclass that loads its values lazily: it is
read with `value[name]` and tested with `in`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.scalars import Duration, Timestamp, Uint
from pyverno.lang.cel.values import (
    MISSING,
    NONE,
    Optional,
    StructValue,
    Value,
    map_find,
    map_keys,
    no_such_key,
    no_such_overload,
    type_name,
)

__all__ = [
    "field",
    "has_field",
    "index",
    "iterate",
    "not_iterable",
    "optional_field",
    "optional_index",
]


def field(value: Value, name: str, *, strict: bool = False) -> Value:
    """Return `value.name`; raises EvaluationError when there is no such key."""
    if isinstance(value, dict):
        try:
            return value[name]
        except KeyError:
            raise no_such_key(name) from None
    if isinstance(value, Optional):
        return optional_field(value, name, strict=strict)
    if isinstance(value, StructValue):
        try:
            return value.fields[name]
        except KeyError:
            raise EvaluationError(f"no such field '{name}'") from None
    if isinstance(value, (list, tuple)):
        raise EvaluationError("unsupported index type 'string' in list")
    # cel-go: a value without fields, null too, lacks every field
    raise no_such_key(name)


def optional_field(value: Value, name: str, *, strict: bool = False) -> Optional:
    """Return `value.?name`: an optional value, empty when the field is absent."""
    if isinstance(value, Optional):
        return optional_field(value.value, name, strict=strict) if value.present else NONE
    if isinstance(value, dict):
        return Optional(value[name]) if name in value else NONE
    if isinstance(value, StructValue):
        return Optional(value.fields[name]) if name in value.fields else NONE
    if isinstance(value, (list, tuple)):
        raise EvaluationError("unsupported index type 'string' in list")
    if strict:
        raise no_such_key(name)
    return NONE


def has_field(value: Value, name: str, *, strict: bool = False) -> bool:
    """Return `has(value.name)`."""
    if isinstance(value, dict):
        return name in value
    if isinstance(value, Optional):
        return value.present and has_field(value.value, name, strict=strict)
    if isinstance(value, StructValue):
        return name in value.fields
    if isinstance(value, (list, tuple)):
        raise EvaluationError("unsupported index type 'string' in list")
    if strict:
        raise no_such_overload()
    return False


def index(value: Value, key: Value, *, strict: bool = False) -> Value:
    """Return `value[key]` of a list or map."""
    if isinstance(value, (list, tuple)):
        position = _position(key)
        if 0 <= position < len(value):
            return value[position]
        raise OperandError("index out of bounds", f"index out of bounds: {position}")
    if isinstance(value, dict):
        found = map_find(value, key)
        if found is MISSING:
            raise _no_key(key)
        return found
    if isinstance(value, Optional):
        return optional_index(value, key, strict=strict)
    if isinstance(value, StructValue) and isinstance(key, str):
        try:
            return value.fields[key]
        except KeyError:
            raise OperandError("no such field", f"no such field '{key}'") from None
    raise _no_key(key)


def _no_key(key: Value) -> EvaluationError:
    """Return the error of an index that is not there; a key that was computed is not shown."""
    error = no_such_key(key)
    return error if isinstance(key, (dict, list, tuple)) else OperandError("no such key", error.message)


def optional_index(value: Value, key: Value, *, strict: bool = False) -> Optional:
    """Return `value[?key]`."""
    if isinstance(value, Optional):
        return optional_index(value.value, key, strict=strict) if value.present else NONE
    if isinstance(value, (list, tuple)):
        position = _position(key)
        return Optional(value[position]) if 0 <= position < len(value) else NONE
    if isinstance(value, dict):
        found = map_find(value, key)
        return NONE if found is MISSING else Optional(found)
    if strict:
        raise no_such_overload()
    return NONE


def _position(key: Value) -> int:
    kind = type(key)
    if kind is int or kind is Uint:
        return int(key)
    if kind is float and key == key // 1 and abs(key) < 2**63:
        return int(key)
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")


_GO_TYPES: Final[dict[type, str]] = {
    type(None): "types.Null",
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    Optional: "*types.Optional",
}


def not_iterable(value: Value) -> EvaluationError:
    """Return the error of a loop over a value that is neither a list nor a map, in cel-go's words."""
    kind = _GO_TYPES.get(type(value)) or type_name(value)
    return EvaluationError(f"got '{kind}', expected iterable type")


def iterate(value: Value) -> Sequence[Value]:
    """Return what a loop over a value visits: elements, or the keys of a map."""
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, dict):
        return map_keys(value)
    raise not_iterable(value)
