"""CEL values as plain Python objects.

    null → None · bool → bool · int → int (64 bits) · uint → Uint · double → float · string → str · bytes → bytes
    list → list or tuple · map → dict · timestamp → Timestamp · duration → Duration · optional → Optional
    type → TypeValue · struct → StructValue · opaque library types → classes with a `cel_type` attribute

A JSON document is a CEL value as it is: nothing is converted or copied. A map with bool keys is a TypedMap, because
Python takes True and 1 for the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, TypeAlias

from pyverno.errors import EvaluationError
from pyverno.kube.quantity import Quantity
from pyverno.kube.semver import Version
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.scalars import Duration, Instant, Timestamp, Uint

__all__ = [
    "INT_MAX",
    "INT_MIN",
    "MISSING",
    "NONE",
    "UINT_MAX",
    "Optional",
    "StructValue",
    "TypedMap",
    "Value",
    "compare",
    "equals",
    "is_zero",
    "lacking",
    "map_find",
    "map_items",
    "map_keys",
    "new_map",
    "no_such_key",
    "no_such_overload",
    "size_of",
    "type_name",
]

Value: TypeAlias = Any
"""One CEL value; `Any` because it is a JSON value with more scalars."""

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1
MISSING: Final = object()


def no_such_overload() -> EvaluationError:
    """Return the error for operands of types that an operator or function does not take."""
    return EvaluationError("no such overload")


def lacking(function: str, value: Value, *kinds: type) -> EvaluationError:
    """Return the error of a function whose first operand has to be of some kinds.

    cel-go: values with methods (texts, durations, timestamps) lack one of this name; the error then names nothing, and
    neither does it where the first operand is of the kinds and another one does not fit.
    """
    kind = type(value)
    if kind in kinds or kind in (str, Duration, Timestamp):
        return EvaluationError("no such overload")
    return EvaluationError(f"no such overload: {function}")


def no_such_key(key: Value) -> EvaluationError:
    """Return the error for a key that a map does not have; an invalid key is described by its type alone."""
    if isinstance(key, (dict, list, tuple)):
        kind = "map[string]interface {}" if isinstance(key, dict) else "[]interface {}"
        return EvaluationError(f"invalid qualifier type: {kind}")
    return EvaluationError(f"no such key: {_key_text(key)}")


def _key_text(key: Value) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int) and not INT_MIN <= key <= UINT_MAX:
        return type_name(key)
    return str(key)


class Optional:
    """A value that may be absent (`optional.of`, `optional.none`)."""

    __slots__ = ("value",)
    cel_type: ClassVar[str] = "optional_type"

    def __init__(self, value: Value = MISSING) -> None:
        self.value = value

    @property
    def present(self) -> bool:
        """Whether there is a value."""
        return self.value is not MISSING

    def __eq__(self, other: object) -> bool:
        return equals(self, other)

    def __hash__(self) -> int:
        return hash(("optional", self.present))

    def __repr__(self) -> str:
        return f"optional.of({self.value!r})" if self.present else "optional.none()"


NONE: Final = Optional()


class StructValue:
    """An instance of a declared struct type, such as `Object.spec{replicas: 3}`; fields that are not set are absent."""

    __slots__ = ("cel_type", "fields")

    def __init__(self, cel_type: str, fields: dict[str, Value]) -> None:
        self.cel_type = cel_type
        self.fields = fields

    def __eq__(self, other: object) -> bool:
        return equals(self, other)

    def __hash__(self) -> int:
        return hash((self.cel_type, len(self.fields)))

    def __repr__(self) -> str:
        return f"StructValue({self.cel_type!r}, {self.fields!r})"


class _BoolKey:
    """Represents a bool key inside a TypedMap."""

    __slots__ = ("value",)

    def __init__(self, *, value: bool) -> None:
        self.value = value

    def __repr__(self) -> str:
        return str(self.value).lower()


_TRUE_KEY: Final = _BoolKey(value=True)
_FALSE_KEY: Final = _BoolKey(value=False)


class TypedMap(dict[Any, Any]):
    """A map with bool keys, which are stored as keys of their own; read it with `map_find` and `map_items`."""

    __slots__ = ()


def new_map(pairs: list[tuple[Value, Value]]) -> dict[Any, Value]:
    """Return a map of evaluated entries; raises EvaluationError for key types and repeated keys that CEL refuses."""
    result: dict[Any, Value] = {}
    typed = False
    for key, value in pairs:
        kind = type(key)
        if kind is bool:
            key = _TRUE_KEY if key else _FALSE_KEY  # noqa: PLW2901 - the stored form of the same key
            typed = True
        elif kind is not str and kind is not int and kind is not Uint:
            raise EvaluationError("unsupported key type: " + type_name(key))
        if key in result:
            raise OperandError("Failed with repeated key", f"Failed with repeated key: {key}")
        result[key] = value
    return TypedMap(result) if typed else result


def map_find(mapping: Mapping[Any, Value], key: Value) -> Value:
    """Return the value for a key, or MISSING; numbers find keys of equal value, bools only bools."""
    kind = type(key)
    if kind is bool:
        if type(mapping) is not TypedMap:
            return MISSING
        return mapping.get(_TRUE_KEY if key else _FALSE_KEY, MISSING)
    if kind is str or kind is int or kind is float or kind is Uint:
        try:
            return mapping[key]
        except KeyError:
            return MISSING
    return MISSING


def map_keys(mapping: Mapping[Any, Value]) -> list[Value]:
    """Return the keys of a map."""
    if type(mapping) is TypedMap:
        return [key.value if isinstance(key, _BoolKey) else key for key in mapping]
    return list(mapping)


def map_items(mapping: Mapping[Any, Value]) -> list[tuple[Value, Value]]:
    """Return the (key, value) pairs of a map."""
    if type(mapping) is TypedMap:
        return [(key.value if isinstance(key, _BoolKey) else key, value) for key, value in mapping.items()]
    if type(mapping) is dict:
        return list(mapping.items())
    return [(key, mapping[key]) for key in mapping]


_TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    tuple: "list",
    dict: "map",
    TypedMap: "map",
    Quantity: "kubernetes.Quantity",
    Version: "kubernetes.Semver",
}


def type_name(value: Value) -> str:
    """Return the name of a value's CEL type.

    >>> [type_name(item) for item in (None, True, 1, Uint(1), 1.0, "a", [], {})]
    ['null_type', 'bool', 'int', 'uint', 'double', 'string', 'list', 'map']
    """
    known = _TYPE_NAMES.get(type(value))
    if known is not None:
        return known
    if isinstance(value, dict):
        return "map"
    return str(getattr(value, "cel_type", type(value).__name__))


_NUMBERS: Final = frozenset({int, Uint, float})
_COMPARABLE: Final = (int, float, Uint, bool, bytes)
_SCALARS: Final = frozenset({str, int, Uint, float, bool, bytes, type(None)})


def equals(left: Value, right: Value, charge: Callable[[int], None] | None = None) -> bool:
    """Return whether two values are equal as CEL sees it: numbers by value, bools only to bools, NaN to nothing.

    `charge` gets the number of parts of a list or map before they are compared, and may raise.

    >>> equals(1, 1.0), equals(1, True), equals([1, {"a": None}], [1.0, {"a": None}])
    (True, False, True)
    """
    left_type, right_type = type(left), type(right)
    if left_type in _SCALARS or right_type in _SCALARS:
        if left_type is right_type:
            return bool(left == right)
        if left_type in _NUMBERS and right_type in _NUMBERS:
            return _compare_mixed(left, right) == 0
        return False
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or left.present != right.present:
            return False
        return not left.present or equals(left.value, right.value, charge)
    if isinstance(left, StructValue):
        if not isinstance(right, StructValue) or left.cel_type != right.cel_type:
            return False
        left, right = left.fields, right.fields
    return _equal_parts(left, right, charge)


def _equal_parts(left: Value, right: Value, charge: Callable[[int], None] | None) -> bool:
    if isinstance(left, (list, tuple)):
        if not isinstance(right, (list, tuple)) or len(left) != len(right):
            return False
        if charge is not None:
            charge(1 + len(left) // 4)
        return all(equals(one, other, charge) for one, other in zip(left, right, strict=True))
    if isinstance(left, dict):
        if not isinstance(right, dict) or len(left) != len(right):
            return False
        if charge is not None:
            charge(1 + len(left) // 2)
        for key, value in map_items(left):
            other = map_find(right, key)
            if other is MISSING or not equals(value, other, charge):
                return False
        return True
    return bool(left == right)


def compare(left: Value, right: Value, operator: str = "") -> int:
    """Return -1, 0 or 1 for two ordered values; NaN against a number gives 2 (neither less, equal nor greater).

    Raises EvaluationError for values without an order between them; it names the operator where the left one has none.
    """
    left_type, right_type = type(left), type(right)
    if left_type is not right_type:
        if left_type in _NUMBERS and right_type in _NUMBERS:
            return _compare_mixed(left, right)
        raise lacking(operator, left, *_COMPARABLE) if operator else no_such_overload()
    if left is None or not (left_type in _SCALARS or isinstance(left, Instant)):
        raise lacking(operator, left, *_COMPARABLE) if operator else no_such_overload()
    if left < right:
        return -1
    if left == right:
        return 0
    return 1 if right < left else 2


def _compare_mixed(left: Value, right: Value) -> int:
    """Compare numbers of two types as cel-go does: an integer beside a double becomes a double."""
    # cel-go: common/types/compare.go; integers near 2^63 lose precision, but never leave their range
    if isinstance(left, float):
        return -_compare_to_double(right, left) if left == left else 2  # noqa: PLR0124 - NaN differs from itself
    if isinstance(right, float):
        return _compare_to_double(left, right) if right == right else 2  # noqa: PLR0124 - NaN differs from itself
    return int(left > right) - int(left < right)


def _compare_to_double(whole: Value, double: float) -> int:
    limit = 2.0**64 if type(whole) is Uint else 2.0**63
    if double > limit:
        return -1
    if double < (0.0 if type(whole) is Uint else -limit):
        return 1
    own = float(whole)
    return (own > double) - (own < double)


def size_of(value: Value) -> int | None:
    """Return the size of a string (code points), bytes, list or map; None for everything else."""
    if isinstance(value, (str, bytes, list, tuple, dict)):
        return len(value)
    return None


def is_zero(value: Value) -> bool:
    """Return whether a value is its type's zero (`optional.ofNonZeroValue`)."""
    if value is None or value is False:
        return True
    if isinstance(value, (int, float, str, bytes, list, tuple, dict)):
        return not value
    if isinstance(value, Duration):
        return value.ns == 0
    if isinstance(value, Timestamp):
        return value.ns == -62135596800 * 10**9
    if isinstance(value, Optional):
        return not value.present or is_zero(value.value)
    if isinstance(value, StructValue):
        return not value.fields
    return False
