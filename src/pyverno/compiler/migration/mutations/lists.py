"""Lists in an overlay: replaced as a whole, merged by value, or merged element by element by a key.

Elements of an overlay with anchors stand for all elements of the object that fit their conditions; without conditions,
for all of them. What such an element adds with `+( )` is decided by the first element for all, as Kyverno does it. The
old dialect moves what it changed or added to the front of the list. Here new elements go to the front as well, and
changed ones keep their places where order means nothing (containers, volumes); elsewhere they are moved too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pyverno.compiler.equivalence.outcome import MAY_REPEAT, UNORDERED_LISTS
from pyverno.compiler.migration.mutations.changes import Change, Each, Operation, Pointer, when
from pyverno.compiler.migration.mutations.overlays import Additions, Overlay, Plan, fresh, without_conditions
from pyverno.compiler.migration.mutations.values import has_variable, write_text
from pyverno.compiler.migration.outcome import Note, UnconvertibleError, join_path
from pyverno.compiler.migration.text import Cel, CelType, Reference, all_of, any_of, compare, literal
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.pattern.anchors import CONDITIONS, Modifier, has_anchor_keys, parse_anchor
from pyverno.value import replace

if TYPE_CHECKING:
    from pyverno.compiler.migration.mutations.place import Place

__all__ = ["merge_list", "note_order"]

_VARIABLES: Final = "ijklmn"
_DIRECTIVE: Final = "$patch"
_ANCHORS: Final = CONDITIONS | {Modifier.ADD_IF_ABSENT}


def merge_list(overlay: Overlay, items: list[JSON], place: Place, path: str) -> Plan:
    """Return the plan of a list in an overlay, below a map that is there."""
    merge = place.merge
    if place.unguarded.value().text in overlay.empty:
        made = fresh([_without_anchors(each) for each in items])
        return Plan((Operation("add", place.pointer, overlay.new(made, path)),)) if made else Plan()
    has_anchors = any(has_anchor_keys(each, _ANCHORS) for each in items)
    if merge is None or not merge.is_merged_list:
        if has_anchors:
            reason = "the list does not merge: elements with anchors would take the place of all others"
            raise UnconvertibleError("anchors-in-plain-list", path, reason, "write the mutation with foreach")
        made = fresh(items)
        return Plan((Operation("add", place.pointer, overlay.new(made, path)),)) if made or not items else Plan()
    if not merge.keys:
        return Plan((_merged_by_value(overlay, items, place, path),))
    return _merged_by_keys(overlay, items, place, path)


def _without_anchors(item: JSON) -> JSON:
    """Return an element of the overlay as it is written into an empty list; one with anchors stands for none."""
    return {} if has_anchor_keys(item, _ANCHORS) else item


def _merged_by_value(overlay: Overlay, items: list[JSON], place: Place, path: str) -> Change:
    """Return the operation that puts values in front of those that the list has."""
    if any(isinstance(each, (dict, list)) for each in items):
        raise UnconvertibleError("patch-directive", path, "the list merges by value and holds maps")
    new = overlay.new(items, path)
    rest = place.value.or_empty().macro("filter", "e", Cel(f"!(e in {new.text})", CelType.BOOL), CelType.LIST)
    if place.value.can_be_null:
        raise UnconvertibleError("null-list", path, "the list can be null")
    return Operation("add", place.pointer, Cel(f"{new.text} + {rest.text}", CelType.LIST))


def _merged_by_keys(overlay: Overlay, items: list[JSON], place: Place, path: str) -> Plan:
    plan, plain = Plan(), []
    anchored = 0
    for number, item in enumerate(items):
        below = f"{path}[{number}]"
        if not isinstance(item, dict):
            raise UnconvertibleError("merged-list", below, "elements of a merged list are maps")
        if item.keys() == {_DIRECTIVE}:
            return _directed(overlay, [each for each in items if each is not item], item[_DIRECTIVE], place, path)
        if _DIRECTIVE in item:
            plan = plan.joined(Plan(_removal(overlay, item, place, below)))
        elif not has_anchor_keys(item, _ANCHORS):
            plain.append((item, below))
        elif any((found := parse_anchor(each)) and found.modifier is Modifier.GLOBAL for each in item):
            plan = plan.joined(Plan((), (_gate(overlay, item, place, below),)))
        else:
            anchored += 1
            plan = plan.joined(_anchored(overlay, item, place, below))
    if anchored > 1 or (anchored and plain):
        reason = "several elements of the overlay may match one element of the list"
        raise UnconvertibleError("several-anchored-elements", path, reason, "write a rule for each of them")
    return plan.joined(_plain_elements(overlay, plain, place, path)) if plain else plan


# ---------------------------------------------------------------------------------------------------- elements by name


def _plain_elements(overlay: Overlay, items: list[tuple[JSONObject, str]], place: Place, path: str) -> Plan:
    identities = [_identity_of(overlay, item, place, below) for item, below in items]
    if len({tuple(each.text for each in one.values()) for one in identities}) != len(identities):
        raise UnconvertibleError("duplicate-names", path, "elements of the overlay have the same name")
    is_ordered = _last_name(place.pointer) not in UNORDERED_LISTS
    if is_ordered and len(items) > 1:
        reason = "the old rule moves the elements that it names to the front, and their order means something"
        raise UnconvertibleError("list-order", path, reason, "write one rule for each element")
    changes: list[Change] = []
    inserted: list[Change] = []
    for (item, below), identity in zip(items, identities, strict=True):
        rest = {field: value for field, value in item.items() if field not in identity}
        variable = _variable(overlay)
        element = place.element(Cel(variable, CelType.INT))
        inner = overlay.inside(overlay.expressions, variable).map(rest, element, below) if rest else Plan()
        if inner.gates:
            raise UnconvertibleError("conditions", below, "a condition in an element that is found by its name")
        moves = (Operation("move", place.pointer.index(literal(0)), source=element.pointer),) if is_ordered else ()
        changes += _each(place, variable, _is_named(element, identity), (*inner.changes, *moves))
        has_it = place.value.value().macro("exists", "e", _is_named(_as_variable(place, "e"), identity))
        new = Operation("add", place.pointer.index(literal(0)), overlay.new(fresh(item), below))
        inserted = [*when(has_it.not_(), [new]), *inserted]
        if inner.changes and not is_ordered:
            note_order(overlay.notes, below)
    made = Operation("add", place.pointer, overlay.new([fresh(item) for item, _ in items], path))
    if _last_name(place.pointer) in MAY_REPEAT:
        text = "where the list names an element twice, the old rule drops one of them"
        overlay.notes.append(Note("repeated-names", path, text))
    return Plan((*changes, *inserted)).under(place.value.is_set(), [made])


def _identity_of(overlay: Overlay, item: JSONObject, place: Place, path: str) -> dict[str, Cel]:
    """Return the merge keys of an element of the overlay with their values."""
    found = {}
    for key in place.merge.keys if place.merge is not None else ():
        name = item.get(key)
        if name is None or name == "" or isinstance(name, (dict, list)):
            reason = f"the list merges by `{key}`, and this element has none"
            raise UnconvertibleError("no-merge-key", path, reason, f"write its `{key}`")
        below = join_path(path, key)
        found[key] = write_text(name, overlay.expressions, below) if has_variable(name) else literal(name)
    return found


def _is_named(element: Place, identity: dict[str, Cel]) -> Cel:
    return all_of(compare(_text_of(element.field(key)), "==", value) for key, value in identity.items())


def _text_of(place: Place) -> Cel:
    return place.value.or_value(literal(""))


def _removal(overlay: Overlay, item: JSONObject, place: Place, path: str) -> tuple[Change, ...]:
    if item[_DIRECTIVE] != "delete":
        reason = f"`$patch: {item[_DIRECTIVE]}` of an element has no form here"
        raise UnconvertibleError("patch-directive", path, reason, "write the whole list")
    identity, variable = _identity_of(overlay, item, place, path), _variable(overlay)
    element = place.element(Cel(variable, CelType.INT))
    found = _each(place, variable, _is_named(element, identity), (Operation("remove", element.pointer),))
    # the old dialect leaves an empty list where there was none
    return when(place.value.is_set(), found, [Operation("add", place.pointer, literal([]))])


def _directed(overlay: Overlay, rest: list[JSON], directive: JSON, place: Place, path: str) -> Plan:
    if directive == "delete":
        return Plan(when(place.value.is_present(), [Operation("remove", place.pointer)]))
    if directive == "replace":
        return Plan((Operation("add", place.pointer, overlay.new(fresh(rest), path)),))
    raise UnconvertibleError("patch-directive", path, f"`$patch: {directive}` of a list has no form here")


# ------------------------------------------------------------------------------------------------ elements with anchors


def _gate(overlay: Overlay, item: JSONObject, place: Place, path: str) -> Cel:
    """Return whether some element fits, or there is none in the list; a missing list does not count as empty."""
    fits = _fits(overlay, item, _as_variable(place, "e"), path)
    one = place.value.value().macro("exists", "e", fits)
    size = compare(place.value.value().method("size", returns=CelType.INT), "==", literal(0))
    return all_of([place.value.is_set(), any_of([size, one])])


def _anchored(overlay: Overlay, item: JSONObject, place: Place, path: str) -> Plan:
    variable = _variable(overlay)
    element = place.element(Cel(variable, CelType.INT))
    conditions = {key: value for key, value in item.items() if key not in without_conditions(item)}
    rest = {key: value for key, value in without_conditions(item).items() if key != "name"}
    fits = _fits(overlay, conditions, element, path)
    additions = _decide(overlay, rest, conditions, place, path)
    inner = overlay.inside(overlay.expressions, variable).map(rest, element, path, additions)
    if not inner.changes:
        return Plan()
    if _last_name(place.pointer) not in UNORDERED_LISTS:
        if fits.text != "true" or inner.gates:
            reason = "the old rule moves the elements that fit to the front, and their order means something"
            raise UnconvertibleError("list-order", path, reason, "write the mutation with foreach and a JSON patch")
    elif fits.text != "true" or inner.gates:
        note_order(overlay.notes, path)
    condition = all_of([fits, *inner.gates])
    return Plan(tuple(_each(place, variable, condition, inner.changes))).under(place.value.is_set())


def _fits(overlay: Overlay, item: JSONObject, element: Place, path: str) -> Cel:
    parts = []
    for key, value in item.items():
        anchor = parse_anchor(key)
        if anchor is None or anchor.modifier not in CONDITIONS:
            raise UnconvertibleError("gate", join_path(path, key), "an element with `<( )` holds conditions only")
        field, below = element.field(anchor.key), join_path(path, key)
        parts.append(all_of([field.value.is_present(), overlay.holds(value, field, below)]))
    return all_of(parts)


def _decide(overlay: Overlay, rest: JSONObject, conditions: JSONObject, place: Place, path: str) -> Additions | None:
    """Return for every `+( )` whether it is added: the first element that reaches it decides for all."""
    found = dict(_additions(rest, path, ()))
    if not found:
        return None
    candidates = place.value.value()
    variable = "e"
    decided: dict[str, Cel] = {}
    for below, names in found.items():
        source = candidates.text
        if len(names) > 1 and conditions:
            fits = _fits(overlay, conditions, _as_variable(place, variable), path)
            if fits.text != "true":
                source = candidates.macro("filter", variable, fits, CelType.LIST).text
        first = _as_variable(place, f"{source}[0]")
        for name in names:
            first = first.field(name)
        decided[below] = first.value.is_present().not_()
    text = "the first element decides for all of the list what `+( )` adds, as in the old rule"
    overlay.notes.append(Note("first-element", path, text))
    return decided


def _additions(value: JSONObject, path: str, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key, each in value.items():
        anchor, below = parse_anchor(key), join_path(path, key)
        name = key if anchor is None else anchor.key
        if anchor is not None and anchor.modifier is Modifier.ADD_IF_ABSENT:
            yield below, (*above, name)
        elif anchor is not None:
            reason = "a condition below `+( )` fields of a list element decides element by element"
            if has_anchor_keys(each, frozenset({Modifier.ADD_IF_ABSENT})) or above:
                raise UnconvertibleError("nested-condition", below, reason, "write the mutation with foreach")
        elif isinstance(each, dict):
            yield from _additions(each, below, (*above, name))
        elif isinstance(each, list) and has_anchor_keys(each, _ANCHORS):
            reason = "elements with anchors inside of elements with anchors disturb each other"
            raise UnconvertibleError("nested-anchored-lists", below, reason, "write the mutation with foreach")


# -------------------------------------------------------------------------------------------------------------- helpers


def _each(place: Place, variable: str, condition: Cel, changes: tuple[Change, ...]) -> list[Change]:
    return [Each(place.value.value(), variable, condition, changes)] if changes else []


def _variable(overlay: Overlay) -> str:
    """Return the name of the number of a loop, another one at each depth."""
    return _VARIABLES[overlay.depth % len(_VARIABLES)]


def _as_variable(place: Place, root: str) -> Place:
    """Return the place of an element under the name of a variable; it is read and never written."""
    element = place.element(Cel("0"))
    return replace(element, value=Reference(root, element.value.root_schema))


def note_order(notes: list[Note], path: str) -> None:
    """Add a note that elements keep their places, which the old dialect moves."""
    text = "the old rule also moves the elements that it changes to the front of the list"
    notes.append(Note("list-order", path, text))


def _last_name(pointer: Pointer) -> str:
    last = pointer.parts[-1]
    return last.rpartition("/")[2] if isinstance(last, str) else ""
