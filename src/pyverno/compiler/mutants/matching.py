"""Changes of the match and exclude blocks: kinds, names, namespaces, selectors, operations, blocks and excludes."""

from __future__ import annotations

from typing import Final

from pyverno.compiler.mutants.mutant import Changes, removed
from pyverno.compiler.mutants.values import format_value
from pyverno.engine.explain.nodes import FieldPath
from pyverno.kube.json import JSON, JSONObject

__all__ = ["constraint_changes", "selection_changes"]

_LISTS: Final = ("kinds", "names", "namespaces", "operations")
_FIELDS: Final = ("name", "names", "namespaces", "operations", "selector", "namespaceSelector", "annotations")
_USERS: Final = ("roles", "clusterRoles", "subjects")
_RULE_LISTS: Final = ("operations", "resources", "apiGroups", "apiVersions", "resourceNames")


def selection_changes(rule: JSONObject, place: FieldPath) -> Changes:
    """Yield the changes of match and exclude of a rule."""
    match, exclude = rule.get("match"), rule.get("exclude")
    if isinstance(match, dict):
        yield from _of_selection(match, (*place, "match"))
    if isinstance(exclude, dict) and exclude:
        yield removed((*place, "exclude"), "exclude is dropped")
        yield from _of_selection(exclude, (*place, "exclude"))


def _of_selection(selection: JSONObject, place: FieldPath) -> Changes:
    groups = [group for group in ("any", "all") if isinstance(selection.get(group), list)]
    if not groups:
        yield from _of_block(selection, place)
    for group in groups:
        blocks = selection[group]
        for index, block in enumerate(blocks if isinstance(blocks, list) else ()):
            if len(blocks) > 1:
                yield removed((*place, group, index), f"a block of `{group}` is dropped")
            if isinstance(block, dict):
                yield from _of_block(block, (*place, group, index))


def _of_block(block: JSONObject, place: FieldPath) -> Changes:
    resources = block.get("resources")
    if isinstance(resources, dict):
        at = (*place, "resources")
        for field in _LISTS:
            yield from _without_one(resources.get(field), (*at, field))
        restricting = [field for field in resources if field in _FIELDS]
        if len(resources) > 1:
            for field in restricting:
                yield removed((*at, field), f"`{field}` is dropped")
    for field in _USERS:
        if field in block and len(block) > 1:
            yield removed((*place, field), f"`{field}` is dropped")
        yield from _without_one(block.get(field), (*place, field))


def _without_one(values: JSON, place: FieldPath) -> Changes:
    """Yield the removal of each element that the others do not include for certain."""
    if isinstance(values, list) and len(values) > 1:
        for index, each in enumerate(values):
            if values.count(each) == 1 and not ("*" in values and each != "*"):
                yield removed((*place, index), f"{format_value(each)} of `{place[-1]}` is dropped")


def constraint_changes(constraints: JSON, place: FieldPath) -> Changes:
    """Yield the changes of `matchConstraints` of policies in CEL."""
    if not isinstance(constraints, dict):
        return
    for name in ("resourceRules", "excludeResourceRules"):
        rules = constraints.get(name)
        if not isinstance(rules, list):
            continue
        for index, rule in enumerate(rules):
            if len(rules) > 1:
                yield removed((*place, name, index), f"an entry of `{name}` is dropped")
            if isinstance(rule, dict):
                for field in _RULE_LISTS:
                    yield from _without_one(rule.get(field), (*place, name, index, field))
    for name in ("excludeResourceRules", "namespaceSelector", "objectSelector"):
        if constraints.get(name):
            yield removed((*place, name), f"`{name}` is dropped")
