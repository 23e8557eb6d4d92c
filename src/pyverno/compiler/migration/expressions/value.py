"""A JMESPath expression on its way to CEL: a value with its type, and the test whether it is null.

JMESPath has one nothing, null, and reads a missing field as null; CEL has errors, nulls and optionals. A `Value` keeps
the CEL text that gives the value where there is one apart from the condition under which there is one, so that each
consumer writes the form that it needs: a default, a guard, or an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pyverno.compiler.migration.expressions.loops import Sequence
from pyverno.compiler.migration.schema import ANY, Presence, Schema, Shape
from pyverno.compiler.migration.text import (
    FALSE,
    TRUE,
    Cel,
    CelType,
    Level,
    Reference,
    all_of,
    any_of,
    call,
    compare,
    literal,
    ternary,
)
from pyverno.kube.json import JSON
from pyverno.value import dataclass, field, replace

__all__ = [
    "BOOLEAN",
    "INTEGER",
    "NOTHING",
    "NUMBER",
    "TEXT",
    "TEXTS",
    "Value",
    "are_alike",
    "below",
    "both",
    "constant",
    "declared",
    "either",
    "equal",
    "list_of",
    "of_reference",
    "truth",
    "written_list",
]


def _compute(shape: Shape) -> Schema:
    return Schema(shape, Presence.REQUIRED)


BOOLEAN: Final = _compute(Shape.BOOL)
INTEGER: Final = _compute(Shape.INT)
NUMBER: Final = _compute(Shape.NUMBER)
TEXT: Final = _compute(Shape.STRING)
TEXTS: Final = _compute(Shape.LIST)
RECORD: Final = _compute(Shape.OBJECT)
UNKNOWN: Final = Schema(Shape.ANY, Presence.UNKNOWN)
_COLLECTIONS: Final = (Shape.LIST, Shape.MAP, Shape.OBJECT)
_NUMBERS: Final = (Shape.INT, Shape.NUMBER)
_TEXTUAL: Final = (Shape.STRING, Shape.QUANTITY, Shape.TIME)
_SORTS: Final = (_NUMBERS, _TEXTUAL, (Shape.MAP, Shape.OBJECT), (Shape.BOOL,), (Shape.INT_OR_STRING,), (Shape.LIST,))
"""Shapes whose values can be the branches of one expression."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A value of JMESPath in CEL.

    `cel` gives the value where `present` holds, and fails or is null elsewhere; `optional` is the same as an optional.
    `fails` means that evaluating it can be an error although `present` holds; `nulls` are the conditions without which
    a function in it fails for a null argument. `guard` is the condition under which the root of `reference` exists.

    A value that has another form than its text keeps it: `reference` for a path below a root, `constant` (with
    `is_constant`) for a literal, `sequence` for a list that loops make, `members` for a map that is written out,
    `parts` for a list that is, `keys` for a map of which only the keys have a form, `counted` for the length of a list,
    `default` for the value and the constant of `value || constant`.

    `is_truth_only` means that false may stand for null or something empty; with `stands_for` true also stands for one
    of these values, and only the truth of the whole counts. `is_total` that `cel` is false where the
    value is null, `is_data` that a requester can choose the value.
    """

    cel: Cel
    schema: Schema = ANY
    present: Cel = TRUE
    optional: Cel | None = None
    fails: bool = False
    guard: Cel = TRUE
    reference: Reference | None = None
    is_constant: bool = False
    constant: JSON = None
    sequence: Sequence | None = None
    members: Mapping[str, Value] = field(default_factory=dict)
    parts: tuple[Value, ...] | None = None
    counted: Value | None = None
    keys: Value | None = None
    default: tuple[Value, JSON] | None = None
    is_truth_only: bool = False
    stands_for: tuple[Value, ...] = ()
    is_data: bool = True
    is_total: bool = False
    nulls: tuple[Cel, ...] = ()

    @property
    def shape(self) -> Shape:
        """The shape of the value when it is not null."""
        return self.schema.shape

    @property
    def is_null(self) -> bool:
        """Whether it is certainly null."""
        return self.present.text == "false"

    @property
    def is_always(self) -> bool:
        """Whether it is never null."""
        return self.present.text == "true"

    @property
    def is_text(self) -> bool:
        """Whether it is certainly a text when it is not null."""
        return self.shape in _TEXTUAL

    @property
    def is_number(self) -> bool:
        """Whether it is certainly a number when it is not null."""
        return self.shape in _NUMBERS

    def or_value(self, default: Cel) -> Cel:
        """Return the value, or the default where it is null."""
        if self.is_null:
            return default
        if self.is_always or (self.is_total and default.text == "false"):
            return self.cel
        if self.reference is not None and self.guard.text == "true" and not self.reference.can_be_null:
            return self.reference.or_value(default)
        if self.optional is not None and not self.schema.is_nullable:
            kind = self.cel.type if self.cel.type is default.type else CelType.DYN
            return replace(self.optional.method("orValue", default, returns=kind), schema=self.schema)
        return replace(ternary(self.present, self.cel, default), schema=self.schema)

    def or_empty(self) -> Cel:
        """Return the value, or an empty one of its type where it is null."""
        if self.sequence is not None:
            return self.sequence.written(total=True)
        return self.or_value(literal(_EMPTY.get(self.shape, "")))

    def when_present(self, test: Callable[[Cel], Cel]) -> Cel:
        """Return a test of the value that is false where it is null."""
        return all_of([self.present, test(self.cel)])

    def as_type(self, shape: Shape) -> Value:
        """Return an unknown value as one of a type, which some other part of the policy shows."""
        if self.shape is not Shape.ANY:
            return self
        schema = Schema(shape, Presence.REQUIRED if self.schema.presence is Presence.REQUIRED else Presence.OPTIONAL)
        kind = _CEL_TYPES.get(shape, CelType.DYN)
        reference = self.reference
        if reference is not None and reference.steps:
            last = replace(reference.steps[-1], schema=schema)
            reference = replace(reference, steps=(*reference.steps[:-1], last))
            known = of_reference(reference, self.guard)
            return replace(known, fails=self.fails)
        return replace(self, cel=replace(self.cel, type=kind, schema=schema), schema=schema)


_EMPTY: Final[Mapping[Shape, JSON]] = {Shape.LIST: [], Shape.MAP: {}, Shape.OBJECT: {}, Shape.BOOL: False, Shape.INT: 0}
_CEL_TYPES: Final = {
    Shape.STRING: CelType.STRING,
    Shape.INT: CelType.INT,
    Shape.NUMBER: CelType.NUMBER,
    Shape.BOOL: CelType.BOOL,
    Shape.LIST: CelType.LIST,
    Shape.MAP: CelType.MAP,
    Shape.OBJECT: CelType.MAP,
}

NOTHING: Final = Value(literal(None), ANY, FALSE, is_constant=True)
"""The value null."""


def constant(value: JSON) -> Value:
    """Return a literal.

    >>> constant("a").cel.text, constant(None).is_null, constant(3.0).cel.text
    ("'a'", True, '3')
    """
    if value is None:
        return NOTHING
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return Value(literal(value), _schema_of(value), is_constant=True, constant=value)


def _schema_of(value: JSON) -> Schema:
    match value:
        case bool():
            return BOOLEAN
        case str():
            return TEXT
        case int():
            return INTEGER
        case float():
            return NUMBER
        case list():
            return TEXTS
        case _:
            return _compute(Shape.MAP)


def of_reference(reference: Reference, guard: Cel = TRUE) -> Value:
    """Return the value of a path; `guard` is the condition under which its root exists."""
    if reference.steps and reference.schema is ANY:
        # a custom resource has no null where its definition does not allow one
        unknown = replace(reference.steps[-1], schema=UNKNOWN)
        reference = replace(reference, steps=(*reference.steps[:-1], unknown))
    present = all_of([guard, reference.is_set()])
    optional = None
    if reference.steps and not reference.can_be_null and guard.text == "true":
        optional = reference.optional()
    return Value(reference.value(), reference.schema, present, optional=optional, guard=guard, reference=reference)


def declared(holder: Reference, name: str, schema: Schema) -> Reference:
    """Return the reference to a field whose schema is known from elsewhere."""
    found = holder.field(name)
    return replace(found, steps=(*found.steps[:-1], replace(found.steps[-1], schema=schema)))


def below(value: Value) -> Reference:
    """Return a reference whose root is a value, for the fields of it."""
    return value.reference or Reference(value.cel.within(Level.PRIMARY), value.schema)


def written_list(items: Iterable[Value]) -> Cel:
    """Return a list literal; items of several types, as CEL sees them, are made dynamic."""
    parts = [*items]
    texts = [each.or_value(literal(None)).text for each in parts]
    is_uniform = all(each.is_constant for each in parts) and len({each.shape for each in parts}) == 1
    if len(parts) > 1 and not is_uniform and not all(each.reference is not None and each.is_always for each in parts):
        texts = [f"dyn({text})" for text in texts]
    return Cel(f"[{', '.join(texts)}]", CelType.LIST)


def list_of(sequence: Sequence, schema: Schema = TEXTS, present: Cel = TRUE) -> Value:
    """Return the list that loops make."""
    return Value(sequence.written(total=True), schema, present, sequence=sequence)


# --------------------------------------------------------------------------------------------------------------- truth


def truth(value: Value) -> Cel:
    """Return whether JMESPath takes a value as true: not null, false, or empty; every number is true.

    >>> from pyverno.compiler.migration.schema import SchemaBook
    >>> pod = Reference("object", SchemaBook().of("", "v1", "Pod"))
    >>> truth(of_reference(pod.field("spec").field("hostNetwork"))).text
    'object.spec.?hostNetwork.orValue(false)'
    """
    if value.is_constant:
        is_number = isinstance(value.constant, int | float) and not isinstance(value.constant, bool)
        return TRUE if value.constant or is_number else FALSE
    if value.sequence is not None:
        return value.sequence.exists(lambda _element: TRUE)
    if value.counted is not None:
        return TRUE
    if value.shape is Shape.BOOL:
        return value.or_value(FALSE)
    if value.schema.presence is Presence.NONZERO or value.shape in (*_NUMBERS, Shape.QUANTITY):
        return value.present
    if value.shape is Shape.OBJECT and (value.schema.body or {}).get("required"):
        return value.present
    if value.shape in _COLLECTIONS:
        return compare(call("size", value.or_empty(), returns=CelType.INT), ">", literal(0))
    if value.shape in (Shape.STRING, Shape.TIME):
        return compare(value.or_value(literal("")), "!=", literal(""))
    if value.shape is Shape.INT_OR_STRING:
        return value.when_present(lambda cel: compare(cel, "!=", literal("")))
    empty = Cel("[dyn(null), dyn(false), dyn(''), dyn([]), dyn({})]", CelType.LIST)
    return compare(value.or_value(literal(None)), "in", empty).not_()


def either(left: Value, right: Value) -> Value:
    """Return `left || right`: the left value unless it is false, empty or null."""
    if left.is_constant:
        return left if truth(left).text == "true" else right
    fails = left.fails or right.fails
    if left.stands_for or right.stands_for or not _have_one_form(left, right):
        return _either_of_types(left, right, fails)
    if left.default is not None and truth(constant(left.default[1])).text == "false":
        left = left.default[0]
    if right.is_constant and left.shape is Shape.ANY:
        left = left.as_type(_schema_of(right.constant).shape) if right.constant is not None else left
    if left.shape is Shape.BOOL and right.shape is Shape.BOOL:
        known = truth(left)
        if right.is_constant and not right.constant:
            return Value(known, BOOLEAN, fails=fails)
        chosen, present = _or(known, right.or_value(FALSE), left.fails), any_of([known, right.present])
        return Value(chosen, BOOLEAN, present, fails=fails, is_truth_only=right.is_truth_only)
    if right.is_null:
        return replace(left, present=truth(left), reference=None, optional=None)
    schema = replace(left.schema, presence=Presence.OPTIONAL, is_nullable=False)
    schema = replace(schema, presence=Presence.REQUIRED) if right.is_always else schema
    origin = (left, right.constant) if right.is_constant else None
    if not left.fails and right.is_always and _takes_default_only_when_null(left, right):
        kept = left.sequence if right.is_constant and right.constant == [] else None
        cel = left.or_value(right.cel) if kept is None else left.or_empty()
        return Value(cel, schema, fails=fails, default=origin, sequence=kept, parts=left.parts if kept else None)
    known = truth(left)
    if right.is_always:
        return Value(ternary(known, left.cel, right.cel), schema, fails=fails, default=origin)
    return Value(ternary(known, left.cel, right.cel), schema, any_of([known, right.present]), fails=fails)


def _either_of_types(left: Value, right: Value, fails: bool) -> Value:
    """Return `a && b || c` where `b` and `c` are of one type; of values of several types only the truth has a form."""
    known = truth(left)
    if len(left.stands_for) == 1 and not right.stands_for and are_alike(left.stands_for[0], right):
        (met,) = left.stands_for
        present = TRUE if right.is_always else any_of([known, right.present])
        return Value(ternary(known, met.cel, right.cel), replace(met.schema, enum=()), present, fails=fails)
    stands_for = (left.stands_for or (left,)) + (right.stands_for or (right,))
    chosen = _or(known, truth(right), left.fails)
    return Value(chosen, BOOLEAN, fails=fails, is_truth_only=True, stands_for=stands_for)


def _have_one_form(left: Value, right: Value) -> bool:
    """Return whether `||` of two values has a form as a value; that with a constant can be compared piece by piece."""
    is_bool = Shape.BOOL in (left.shape, right.shape)
    return are_alike(left, right) or (right.is_constant and not is_bool)


def are_alike(left: Value, right: Value) -> bool:
    """Return whether two values can be the branches of one expression."""
    if Shape.ANY in (left.shape, right.shape) or left.is_null or right.is_null:
        return True
    return any(left.shape in sort and right.shape in sort for sort in _SORTS)


def _takes_default_only_when_null(left: Value, right: Value) -> bool:
    """Return whether `||` is what `orValue` does: no other false value exists, or it equals the default."""
    if left.schema.presence is Presence.NONZERO or left.shape in (*_NUMBERS, Shape.QUANTITY):
        return True
    if not right.is_constant:
        return False
    empty = {Shape.STRING: "", Shape.TIME: "", Shape.LIST: [], Shape.MAP: {}, Shape.OBJECT: {}, Shape.BOOL: False}
    return left.shape in empty and right.constant == empty[left.shape]


def both(left: Value, right: Value) -> Value:
    """Return `left && right`: the left value when it is false, empty or null, else the right one."""
    fails = left.fails or right.fails
    known = truth(left)
    stands_for = right.stands_for
    if right.shape is not Shape.BOOL:
        stands_for = (right,) if right.shape is not Shape.ANY else ()
        right = Value(truth(right), BOOLEAN, fails=right.fails, is_truth_only=True)
    is_exact = left.shape is Shape.BOOL and left.is_always and right.is_always
    chosen = _and(known, right.or_value(FALSE), left.fails)
    loose = not is_exact or left.is_truth_only or right.is_truth_only
    return Value(chosen, BOOLEAN, fails=fails, is_truth_only=loose, stands_for=stands_for)


def _or(left: Cel, right: Cel, left_fails: bool) -> Cel:
    """Join truth values; CEL would ignore an error on the left if the right side is true, JMESPath does not."""
    return ternary(left, TRUE, right) if left_fails and right.text != "false" else any_of([left, right])


def _and(left: Cel, right: Cel, left_fails: bool) -> Cel:
    return ternary(left, right, FALSE) if left_fails and right.text != "true" else all_of([left, right])


# ------------------------------------------------------------------------------------------------------------ equality


def equal(left: Value, right: Value) -> Cel:
    """Return whether two values are the same JSON, null included."""
    if left.is_constant and not right.is_constant:
        left, right = right, left
    if right.is_null:
        return left.present.not_()
    if right.is_constant:
        return _equal_to_constant(left, right)
    if left.is_always or right.is_always:
        same = compare(left.cel, "==", right.cel)
        return all_of([left.present, right.present, same])
    if left.optional is not None and right.optional is not None:
        return compare(left.optional, "==", right.optional)
    same = compare(left.cel, "==", right.cel)
    return ternary(left.present, all_of([right.present, same]), right.present.not_())


def _equal_to_constant(left: Value, right: Value) -> Cel:
    given = right.constant
    if left.is_constant:
        return TRUE if left.constant == given and type(left.constant) is type(given) else FALSE
    if left.default is not None and not _fits(left.default[0].shape, left.default[1]):
        source, default = left.default
        known = truth(source)
        same = _equal_to_constant(constant(default), right)
        return any_of([all_of([known, equal(source, right)]), all_of([known.not_(), same])])
    if left.shape is not Shape.ANY and not _fits(left.shape, given):
        return FALSE
    if isinstance(given, bool) and left.shape is Shape.BOOL:
        if left.is_total and not given:
            return all_of([left.present, left.cel.not_()])
        return left.or_value(FALSE) if given else left.or_value(TRUE).not_()
    if isinstance(given, bool):
        return compare(left.or_value(literal(None) if left.shape is Shape.ANY else FALSE), "==", right.cel)
    if left.default is not None and isinstance(given, str) and left.default[0].shape in (Shape.STRING, Shape.TIME):
        source, default = left.default
        if source.schema.presence is not Presence.NONZERO and isinstance(default, str) and default:
            text = source.or_value(literal(""))
            if given == default:
                return compare(text, "in", literal(["", given]))
            return compare(text, "==", right.cel) if given else FALSE
    if given == "" and left.schema.presence is Presence.NONZERO:
        return FALSE
    if isinstance(given, str) and given and not left.is_always:
        return compare(left.or_value(literal("")), "==", right.cel)
    if isinstance(given, int) and given and not left.is_always and left.is_number:
        return compare(left.or_value(literal(0)), "==", right.cel)
    return left.when_present(lambda cel: compare(cel, "==", right.cel))


def _fits(shape: Shape, given: JSON) -> bool:
    match given:
        case bool():
            return shape is Shape.BOOL
        case str():
            return shape in (*_TEXTUAL, Shape.INT_OR_STRING)
        case int() | float():
            return shape in (*_NUMBERS, Shape.INT_OR_STRING)
        case list():
            return shape is Shape.LIST
        case _:
            return shape in (Shape.MAP, Shape.OBJECT)
