"""A whole `mutate` block: its patches as mutations of a MutatingPolicy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.compiler.migration.mutations.changes import Change, render_changes
from pyverno.compiler.migration.mutations.configurations import write_configuration
from pyverno.compiler.migration.mutations.foreach import Loops, convert_foreach
from pyverno.compiler.migration.mutations.jsonpatches import json_patches, read_operations
from pyverno.compiler.migration.mutations.lists import merge_list
from pyverno.compiler.migration.mutations.overlays import Overlay, prune
from pyverno.compiler.migration.mutations.place import Place
from pyverno.compiler.migration.mutations.values import Expressions
from pyverno.compiler.migration.outcome import Note, UnconvertibleError
from pyverno.compiler.migration.patterns import holds
from pyverno.compiler.migration.patterns.verdict import Context
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import Cel
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.lang.pattern.anchors import Modifier, has_anchor_keys
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["Mutations", "convert_mutate", "empty_fields", "mutation_of"]

_FIELD: Final = r"request\.(?P<{}>object(?:\.[A-Za-z]+)+)\s*\|\|\s*`(?:\[\]|\{{\}})`"
_LENGTH: Final = regex(
    r"\{\{\s*(?:" + _FIELD.format("path") + r"\s*\|\s*length\(@\)|length\(" + _FIELD.format("inner") + r"\))\s*\}\}"
)
_ANY_ANCHOR: Final = frozenset(Modifier)


@dataclass(frozen=True, slots=True)
class Mutations:
    """The mutations of a rule, the conditions of its patch, which may become match conditions, and notes."""

    entries: tuple[JSONObject, ...]
    conditions: tuple[Cel, ...] = ()
    notes: tuple[Note, ...] = ()


def convert_mutate(
    mutate: JSONObject,
    root: Place,
    expressions: Expressions,
    path: str = "mutate",
    empty: frozenset[str] = frozenset(),
) -> Mutations:
    """Convert the patches of a `mutate` block (`targets` are not looked at); raises UnconvertibleError.

    `root` is what the patch is laid over: the object, or the template of its Pods. `empty` are fields that are missing
    or empty where the rule applies (`empty_fields`).
    """
    notes: list[Note] = []
    if mutate.get("foreach"):
        loops = Loops(root, _holds, notes, empty)
        groups = convert_foreach(mutate["foreach"], loops, expressions, f"{path}.foreach")
        return Mutations(_entries(groups), (), tuple(notes))
    if mutate.get("patchStrategicMerge") is not None:
        conversion = Overlay(expressions, _holds, merge_list, notes, empty)
        return _merge(mutate["patchStrategicMerge"], root, conversion, f"{path}.patchStrategicMerge")
    operations = read_operations(mutate.get("patchesJson6902"), f"{path}.patchesJson6902")
    return Mutations(_entries(json_patches(operations, root, expressions, f"{path}.patchesJson6902")))


def _merge(overlay: JSON, root: Place, conversion: Overlay, path: str) -> Mutations:
    if not isinstance(overlay, dict):
        raise UnconvertibleError("patch", path, "the patch is no map")
    overlay = prune(overlay)
    if not overlay:
        raise UnconvertibleError("empty-patch", path, "the patch changes nothing", "remove the rule")
    configuration = write_configuration(overlay, root, conversion.expressions, path)
    if configuration is not None:
        entry = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": configuration.text}}
        return Mutations((entry,), (), tuple(conversion.notes))
    plan = conversion.map(overlay, root, path)
    if not plan.changes:
        raise UnconvertibleError("empty-patch", path, "the patch changes nothing", "remove the rule")
    return Mutations(_entries([plan.changes]), plan.gates, tuple(conversion.notes))


def empty_fields(preconditions: JSON) -> frozenset[str]:
    """Return the fields of the object that preconditions demand to be missing or empty, as JMESPath writes them.

    >>> key = "{{ request.object.spec.a || `[]` | length(@) }}"
    >>> empty_fields({"all": [{"key": key, "operator": "Equals", "value": 0}]})
    frozenset({'object.spec.a'})
    """
    written = preconditions.get("all") if isinstance(preconditions, dict) and not preconditions.get("any") else None
    found = set()
    for each in written if isinstance(written, list) else preconditions if isinstance(preconditions, list) else ():
        if isinstance(each, dict) and each.get("operator") in ("Equals", "Equal") and each.get("value") in (0, "0"):
            match = _LENGTH.fullmatch(str(each.get("key"))) if each.get("value") is not False else None
            if match is not None:
                found.add(match["path"] or match["inner"])
    return frozenset(found)


def _entries(groups: Sequence[Sequence[Change]]) -> tuple[JSONObject, ...]:
    return tuple(mutation_of(render_changes(group)) for group in groups if group)


def mutation_of(patch: Cel) -> JSONObject:
    """Return a mutation by the expression of its operations."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": patch.text}}


def _holds(pattern: JSON, place: Place, path: str) -> Cel:
    """Return whether a condition of an overlay holds; it compares scalars by their texts."""
    if has_anchor_keys(pattern, _ANY_ANCHOR):
        raise UnconvertibleError("anchor-in-condition", path, "a condition with anchors inside has no form here")
    shape = place.value.schema.shape
    if not isinstance(pattern, (dict, list, str)) and shape in (Shape.STRING, Shape.ANY):
        pattern = encode(pattern)
    return holds(pattern, place.value.assumed(), path, Context(floats=True))
