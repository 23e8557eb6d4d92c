"""`mutate.foreach`: a patch for each element of a list, as a loop over the numbers of the elements.

Patches of the elements pile up in the old dialect. Here they are operations of one list, so an element may only change
what no other element looks at: itself, and entries of maps that are there for sure or are added before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.compiler.migration.mutations.changes import Change, Each, Operation, When
from pyverno.compiler.migration.mutations.jsonpatches import json_patches, read_operations
from pyverno.compiler.migration.mutations.lists import merge_list, note_order
from pyverno.compiler.migration.mutations.overlays import Holds, Overlay, Plan, prune
from pyverno.compiler.migration.mutations.place import Place
from pyverno.compiler.migration.mutations.values import Expressions
from pyverno.compiler.migration.outcome import Note, UnconvertibleError
from pyverno.compiler.migration.schema import ANY
from pyverno.compiler.migration.text import TRUE, Cel, CelType, Level, Reference, all_of, compare, literal
from pyverno.kube.json import JSON, JSONObject
from pyverno.lazyregex import regex
from pyverno.value import dataclass, replace

__all__ = ["Loops", "convert_foreach"]

_VARIABLES: Final = "ijklmn"
_NAME: Final = regex(r"\{\{-?\s*element[0-9]*\.name\s*\}\}")


@dataclass(frozen=True, slots=True)
class Loops:
    """The common part of all loops of a rule: the object, tests of conditions, notes."""

    root: Place
    holds: Holds
    notes: list[Note]
    empty: frozenset[str] = frozenset()


def convert_foreach(
    entries: Sequence[JSONObject], loops: Loops, expressions: Expressions, path: str, depth: int = 0
) -> list[tuple[Change, ...]]:
    """Return the changes of the entries, one tuple for each mutation; raises UnconvertibleError."""
    found: list[tuple[Change, ...]] = []
    for number, entry in enumerate(entries):
        found += _entry(entry, loops, expressions, f"{path}[{number}]", depth)
    return found


def _entry(
    entry: JSONObject, loops: Loops, expressions: Expressions, path: str, depth: int
) -> list[tuple[Change, ...]]:
    elements, place = expressions.list_of(str(entry.get("list") or ""), f"{path}.list")
    variable = _VARIABLES[depth % len(_VARIABLES)]
    index = Cel(variable, CelType.INT)
    schema = ANY if place is None else place.schema.element
    root = elements if place is None else place.value()
    element = Reference(f"{root.within(Level.PRIMARY)}[{variable}]", schema)
    inner = expressions.within(element, index, depth)
    if entry.get("context"):
        inner = inner.with_context(entry["context"], f"{path}.context")
    condition = TRUE
    if entry.get("preconditions") is not None:
        condition = inner.conditions(entry["preconditions"], f"{path}.preconditions")
    merges = entry.get("patchStrategicMerge") is not None
    is_descending = entry.get("order") == "Descending" or (entry.get("order") is None and merges)

    def loop(changes: Sequence[Change], *, is_reversed: bool = False) -> Each:
        return Each(elements, variable, condition, tuple(changes), is_reversed, root)

    if entry.get("foreach"):
        nested = convert_foreach(entry["foreach"], loops, inner, f"{path}.foreach", depth + 1)
        if len(nested) > 1:
            raise UnconvertibleError("nested-foreach", path, "several nested entries depend on each other")
        return [(loop(nested[0]),)] if nested else []
    if merges:
        conversion = Overlay(inner, loops.holds, merge_list, loops.notes, loops.empty, [], variable, depth + 1)
        return _merges(entry["patchStrategicMerge"], loops.root, conversion, f"{path}.patchStrategicMerge", loop(()))
    operations = read_operations(entry.get("patchesJson6902"), f"{path}.patchesJson6902")
    groups = json_patches(operations, loops.root, inner, f"{path}.patchesJson6902")
    if not all(_is_own(change, variable) for group in groups for change in group):
        _refuse_shared(path)
    if len(groups) > 1:
        reason = "the operations for one element depend on each other"
        raise UnconvertibleError("foreach-operations", path, reason, "write an entry of foreach for each operation")
    return [(loop(groups[0], is_reversed=is_descending),)] if groups else []


def _merges(overlay: JSON, root: Place, conversion: Overlay, path: str, loop: Each) -> list[tuple[Change, ...]]:
    """Return the changes of a merge for each element; `loop` is the loop without changes."""
    if not isinstance(overlay, dict):
        raise UnconvertibleError("patch", path, "the patch is no map")
    own = _own_element(overlay, root, loop, path)
    if own is not None:
        place, rest, below = own
        plan = conversion.map(rest, place, below)
        if plan.changes:
            note_order(conversion.notes, path)
        return _gated(loop, plan)
    plan = conversion.map(prune(overlay), root, path)
    if not plan.changes:
        return []
    if any(isinstance(each, (When, Each)) for each in plan.changes):
        _refuse_shared(path)
    conditional = (change for change in conversion.ensured or () if isinstance(change, When))
    ensured = tuple(When(all_of([change.condition, _some(loop)]), change.then) for change in conditional)
    return [*([ensured] if ensured else []), *_gated(replace(loop, is_reversed=True), plan)]


def _some(each: Each) -> Cel:
    if each.condition.text == TRUE.text:
        return compare(each.elements.method("size", returns=CelType.INT), ">", literal(0))
    size = Cel(f"lists.range({each.elements.text}.size())", CelType.LIST)
    return size.macro("exists", each.variable, each.condition)


def _gated(loop: Each, plan: Plan) -> list[tuple[Change, ...]]:
    condition = all_of([loop.condition, *plan.gates])
    return [(replace(loop, condition=condition, changes=plan.changes),)] if plan.changes else []


def _own_element(overlay: JSONObject, root: Place, loop: Each, path: str) -> tuple[Place, JSONObject, str] | None:
    """Return the element itself where the overlay names it by `{{ element.name }}` in the list of the loop."""
    place, below = root, path
    value: JSON = overlay
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        place, below = place.field(key), f"{below}.{key}"
    if not (isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict)):
        return None
    item = prune(value[0])
    key = next((each for each in ("name", "(name)") if each in item), "")
    if place.value.value().text != loop.items.text or not key or not _NAME.fullmatch(str(item[key])):
        return None
    if place.merge is None or place.merge.keys != ("name",):
        return None
    rest = {name: field for name, field in item.items() if name != key}
    if key == "name" and _has_any_anchor(rest):
        # elements with anchors stand for all elements of the list, whatever their name
        return None
    if any(name.startswith("+(") for name in rest):
        return None
    return place.element(Cel(loop.variable, CelType.INT)), rest, f"{below}[0]"


def _has_any_anchor(value: JSON) -> bool:
    from pyverno.lang.pattern.anchors import CONDITIONS, Modifier, has_anchor_keys

    return has_anchor_keys(value, CONDITIONS | {Modifier.ADD_IF_ABSENT})


def _is_own(change: Change, variable: str) -> bool:
    """Return whether a change only touches the element of the loop."""
    match change:
        case Operation():
            return change.path.mentions(variable)
        case When():
            return all(_is_own(each, variable) for each in (*change.then, *change.otherwise))
        case Each():
            return all(_is_own(each, variable) for each in change.changes)


def _refuse_shared(path: str) -> None:
    reason = "the patches of the elements depend on each other: they change a part that all of them look at"
    raise UnconvertibleError(
        "foreach-shared", path, reason, "change the element itself, or write the expression by hand"
    )
