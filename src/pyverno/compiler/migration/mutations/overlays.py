"""`patchStrategicMerge`: the overlay of a map, with its anchors, as changes.

    key: value      the field is set; a map continues below, after it was added where there is none
    key: null       the field is removed
    +(key): value   the field is set where there is none
    (key): pattern  the whole patch applies only where the field is there and fits; in an element of a list, the element
    <(key)          as `(key)`; in a list it needs one element that fits
    $patch          `replace` sets the whole map, `delete` removes it

Empty maps in an overlay change nothing, in either dialect. `lists.py` does the same for lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pyverno.compiler.migration.mutations.changes import Change, Operation, when
from pyverno.compiler.migration.mutations.place import Place
from pyverno.compiler.migration.mutations.values import Expressions, has_variable, write_text, write_value
from pyverno.compiler.migration.outcome import Note, UnconvertibleError, join_path
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import TRUE, Cel, CelType, Level, all_of, any_of, literal
from pyverno.kube.json import JSON, JSONObject, is_number
from pyverno.lang.pattern.anchors import CONDITIONS, Anchor, Modifier, parse_anchor
from pyverno.value import dataclass, field, replace

__all__ = ["Additions", "Holds", "Overlay", "Plan", "fresh", "prune", "without_conditions"]

_DIRECTIVE: Final = "$patch"
_COLLECTIONS: Final = (Shape.OBJECT, Shape.MAP, Shape.ANY, Shape.LIST)

Holds = Callable[[JSON, Place, str], Cel]
"""Returns whether the value at a place, which is there, fits the pattern of a condition; raises UnconvertibleError."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes of a part of an overlay, and the conditions under which the patch that it belongs to applies."""

    changes: tuple[Change, ...] = ()
    gates: tuple[Cel, ...] = ()

    def joined(self, other: Plan) -> Plan:
        """Return both plans, one after the other."""
        return Plan((*self.changes, *other.changes), (*self.gates, *other.gates))

    def under(self, condition: Cel, otherwise: Iterable[Change] = ()) -> Plan:
        """Return the plan for where a condition holds."""
        return Plan(when(condition, self.changes, otherwise), self.gates)


Additions = Mapping[str, Cel]
"""For `+(key)` in list elements: whether it is added, by the path of the key; decided for all elements at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Overlay:
    """The conversion of one overlay; `notes` collects notes for readers.

    `merge_list` returns the plan of a list in an overlay (see `lists`). `empty` are fields, as they are read, that are
    missing or empty where the rule applies. Inside of a loop, `ensured` collects what makes sure that a parent outside
    of the element is there, once before the loop; `variable` is that of the loop.
    """

    expressions: Expressions
    holds: Holds
    merge_list: Callable[[Overlay, list[JSON], Place, str], Plan]
    notes: list[Note] = field(default_factory=list)
    empty: frozenset[str] = frozenset()
    ensured: list[Change] | None = None
    variable: str = ""
    depth: int = 0

    def map(self, overlay: JSONObject, place: Place, path: str, additions: Additions | None = None) -> Plan:
        """Return the plan of a map that is there."""
        plan = Plan()
        for key, value in overlay.items():
            below = join_path(path, key)
            if has_variable(key):
                plan = plan.joined(Plan(self._compute(key, value, place, below)))
                continue
            anchor = parse_anchor(key)
            if key == _DIRECTIVE:
                if value != "merge":
                    raise UnconvertibleError("patch-directive", below, f"`$patch: {value}` has no form here")
            elif anchor is None:
                plan = plan.joined(self._field(value, place.field(key), below, additions))
            elif anchor.modifier in CONDITIONS:
                plan = plan.joined(self._condition(anchor, value, place.field(anchor.key), below))
            elif anchor.modifier is Modifier.ADD_IF_ABSENT:
                plan = plan.joined(Plan(self._addition(value, place.field(anchor.key), below, additions)))
            else:
                reason = f"`{key}` is no anchor in a mutation: the key would be written as it is"
                raise UnconvertibleError("anchor", below, reason, f"write `{anchor.key}` or `+({anchor.key})`")
        return plan

    # ---------------------------------------------------------------------------------------------------------- fields

    def _field(self, value: JSON, place: Place, path: str, additions: Additions | None) -> Plan:
        match value:
            case None:
                return Plan(when(place.value.is_present(), [Operation("remove", place.pointer)]))
            case dict():
                return self._map_field(value, place, path, additions)
            case list():
                return self.merge_list(self, value, place, path)
        return Plan((self._set(value, place, path),))

    def _set(self, value: JSON, place: Place, path: str) -> Operation:
        return Operation("add", place.pointer, self.scalar(value, place, path))

    def scalar(self, value: JSON, place: Place, path: str) -> Cel:
        """Return the value of a scalar field; refuses what the old dialect turns into another type."""
        schema = place.value.schema
        if isinstance(value, str) and has_variable(value):
            found = write_text(value, self.expressions, path)
            if found.type in (CelType.MAP, CelType.LIST) or (
                found.type is CelType.DYN and schema.shape in _COLLECTIONS and schema.shape is not Shape.ANY
            ):
                reason = "the value of the variable is a map or list that merges with what is there"
                raise UnconvertibleError("variable-map", path, reason, "write the fields one by one")
            return found
        if (is_number(value) or isinstance(value, bool)) and schema.shape in (
            Shape.STRING,
            Shape.QUANTITY,
            Shape.INT_OR_STRING,
        ):
            reason = "a number or truth value over a text becomes a text, and stays what it is otherwise"
            raise UnconvertibleError("number-for-text", path, reason, "put the value in quotes")
        return literal(value)

    def _map_field(self, value: JSONObject, place: Place, path: str, additions: Additions | None) -> Plan:
        directive = value.get(_DIRECTIVE)
        if directive == "delete":
            return Plan(when(place.value.is_present(), [Operation("remove", place.pointer)]))
        if directive == "replace":
            rest = {key: each for key, each in value.items() if key != _DIRECTIVE}
            if parents := self._missing_parents(place):
                raise UnconvertibleError("patch-directive", path, f"the parent can be missing: {parents}")
            return Plan((Operation("add", place.pointer, self.new(rest, path)),))
        if place.unguarded.value().text in self.empty and not _has_condition(value):
            made = fresh(value)
            return Plan((Operation("add", place.pointer, self.new(made, path)),)) if made else Plan()
        inner = self.map(value, place.assumed(), path, additions)
        if not inner.changes:
            return inner
        is_there = place.value.is_set()
        if inner.gates or is_there.text == "true":
            return inner  # a condition below holds only where the map is there
        if self.ensured is not None and not place.pointer.mentions(self.variable):
            self._ensure(place, is_there)
            return inner
        if additions:
            # one decision for all elements: the parent is added if anything below it is
            needed = _added_below(value, path, additions)
            empty = Operation("add", place.pointer, Cel("{}", CelType.MAP))
            return Plan((*when(all_of([is_there.not_(), needed]), [empty]), *inner.changes))
        if not (made := fresh(value)):
            return inner.under(is_there)
        return inner.under(is_there, [Operation("add", place.pointer, self.new(made, path))])

    def _ensure(self, place: Place, is_there: Cel) -> None:
        """Add a parent that all elements of a loop share, before the loop."""
        assert self.ensured is not None  # noqa: S101 - asked before
        made = when(is_there.not_(), [Operation("add", place.pointer, Cel("{}", CelType.MAP))])
        if made and made[0] not in self.ensured:
            self.ensured.extend(made)

    @staticmethod
    def _missing_parents(place: Place) -> str:
        above = place.value.steps[:-1]
        return ".".join(step.name for step in above) if any(step.schema.can_be_missing for step in above) else ""

    def new(self, value: JSON, path: str) -> Cel:
        """Return a value that is added where nothing was."""
        return write_value(value, self.expressions, path)

    def _compute(self, key: str, value: JSON, place: Place, path: str) -> tuple[Change, ...]:
        """Return the change of an entry whose name has variables."""
        if isinstance(value, (dict, list)) or place.value.schema.shape is Shape.OBJECT:
            reason = "the name of the field is computed, and what it holds is not a scalar"
            raise UnconvertibleError("computed-key", path, reason, "write the fields one by one")
        anchor = parse_anchor(key)
        if anchor is not None:
            if anchor.modifier is not Modifier.ADD_IF_ABSENT:
                raise UnconvertibleError("computed-key", path, "a condition on a computed field has no form in CEL")
            name = write_text(anchor.key, self.expressions, path)
            absent = Cel(f"!({name.text} in {place.value.value().text})", CelType.BOOL, Level.UNARY)
            return when(absent, [Operation("add", place.pointer.computed_key(name), self._loose(value, path))])
        name = write_text(key, self.expressions, path)
        if value is None:
            raise UnconvertibleError("computed-key", path, "the removal of a computed field has no form here")
        return (Operation("add", place.pointer.computed_key(name), self._loose(value, path)),)

    def _loose(self, value: JSON, path: str) -> Cel:
        return write_text(value, self.expressions, path) if isinstance(value, str) else literal(value)

    # --------------------------------------------------------------------------------------------------------- anchors

    def _condition(self, anchor: Anchor, value: JSON, place: Place, path: str) -> Plan:
        present = place.unguarded.is_present()
        if isinstance(value, dict) and any(_is_addition(key) for key in value):
            # not tested, but merged: Kyverno takes `+( )` right below for a part of the patch
            inner = self.map(value, place, path)
            return Plan(inner.changes, (present, *inner.gates))
        return Plan((), (all_of([present, self.holds(value, replace(place, value=place.unguarded), path)]),))

    def _addition(self, value: JSON, place: Place, path: str, additions: Additions | None) -> tuple[Change, ...]:
        if _has_condition(value):
            reason = (
                "a condition below `+( )` never holds, so that the whole patch is dropped where the field is missing"
            )
            raise UnconvertibleError("condition-below-addition", path, reason, "move the condition out")
        if additions is not None:
            is_added = additions[path]
            if isinstance(value, (dict, list)):
                if not (made := fresh(value)):
                    return ()
                reason = "one element decides whether all get a map or list"
                if place.value.can_be_missing:
                    raise UnconvertibleError("addition-of-map", path, reason, "write the mutation with foreach")
                return when(is_added, [Operation("add", place.pointer, self.new(made, path))])
            return when(is_added, [Operation("add", place.pointer, self.scalar(value, place, path))])
        if self.ensured is not None and not place.pointer.mentions(self.variable) and has_variable(value):
            reason = "the first element that is visited decides what is added"
            raise UnconvertibleError(
                "addition-in-loop", path, reason, "write a constant, or set the field without +( )"
            )
        absent = place.value.is_present().not_()
        if isinstance(value, (dict, list)):
            made = fresh(value)
            return when(absent, [Operation("add", place.pointer, self.new(made, path))]) if made else ()
        return when(absent, [Operation("add", place.pointer, self.scalar(value, place, path))])

    def inside(self, expressions: Expressions, variable: str, *, ensured: list[Change] | None = None) -> Overlay:
        """Return the conversion inside of a loop."""
        return replace(self, expressions=expressions, variable=variable, ensured=ensured, depth=self.depth + 1)


# ------------------------------------------------------------------------------------------------- shapes of overlays


def _is_addition(key: str) -> bool:
    anchor = parse_anchor(key)
    return anchor is not None and anchor.modifier is Modifier.ADD_IF_ABSENT


def _is_condition(key: str) -> bool:
    anchor = parse_anchor(key)
    return anchor is not None and anchor.modifier in CONDITIONS


def _has_condition(value: JSON) -> bool:
    if isinstance(value, dict):
        return any(_is_condition(key) or _has_condition(each) for key, each in value.items())
    return isinstance(value, list) and any(map(_has_condition, value))


def _added_below(value: JSON, path: str, additions: Additions) -> Cel:
    """Return whether anything below a map is written, where `+( )` was decided before."""
    if not isinstance(value, dict):
        return TRUE
    parts = []
    for key, each in value.items():
        below = join_path(path, key)
        parts.append(additions[below] if _is_addition(key) else _added_below(each, below, additions))
    return any_of(parts)


def fresh(value: JSON) -> JSON:
    """Return what is written where nothing was: `+( )` applies, null and empty maps go.

    >>> fresh({"+(a)": 1, "b": None, "c": {"d": {}}, "e": [{"+(f)": 2}]})
    {'a': 1, 'e': [{'f': 2}]}
    """
    if isinstance(value, dict):
        made = {}
        for key, each in value.items():
            anchor = parse_anchor(key)
            below = None if each is None or key == _DIRECTIVE else fresh(each)
            if below is not None and below not in ({}, []):
                made[key if anchor is None else anchor.key] = below
        return made
    if isinstance(value, list):
        return [each for each in map(fresh, value) if each != {}]
    return value


def prune(value: JSON) -> JSON:
    """Return an overlay without empty maps, which Kyverno takes out together with conditions.

    >>> prune({"a": {"b": {}}, "c": 1, "l": [{}, {"d": {}, "e": 1}]})
    {'c': 1, 'l': [{'e': 1}]}
    """
    if isinstance(value, dict):
        kept = {key: each if _is_condition(key) else prune(each) for key, each in value.items()}
        return {
            key: each
            for key, each in kept.items()
            if (each != {} and not (each == [] and value[key] != [])) or _is_condition(key)
        }
    if isinstance(value, list):
        return [each for each in map(prune, value) if each != {}]
    return value


def without_conditions(value: JSONObject) -> JSONObject:
    """Return a map without the conditions that are right in it."""
    return {key: each for key, each in value.items() if not _is_condition(key)}
