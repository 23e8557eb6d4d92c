"""Conditions of classes that compare whole objects and properties of both sides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pyverno.kube.json import JSON
from tests.differential.compare import ABSENT, Difference

__all__ = [
    "drops_items",
    "has_empty_process",
    "is_unselected",
    "keeps_anchors",
    "loses_items",
    "reorders",
    "replaces_lists",
]


def has_empty_process(found: Difference) -> bool:
    """Hold for a deletion whose details are equal but for an empty process and the name of an exception."""
    if found.batch.family != "deletions" or found.aspect != "details":
        return False
    mine, other = (json.loads(each.details) for each in (found.ours, found.theirs))
    mine.get("properties", {}).pop("exceptions", None)
    has_process = other.get("properties", {}).pop("process", None) == ""
    return has_process and (mine.get("properties") or {}) == (other.get("properties") or {})


def keeps_anchors(found: Difference) -> bool:
    """Hold where Kyverno's object is ours but for fields named like a condition, its patterns, or its empty list."""
    if found.key.kind != "object" or found.key.resource == "generated" or ABSENT in (found.ours, found.theirs):
        return False
    mine, other = json.loads(found.ours.text), json.loads(found.theirs.text)
    without = {key: value for key, value in other.items() if not re.fullmatch(r"\(.+\)", key)}
    spec = found.policy.get("spec", {})
    lists = set(re.findall(r'"\((\w+)\)": \[', json.dumps(spec)))
    return mine != other and _differs_by(_without_lists(mine, without, lists), without, _conditional_values(spec))


def _without_lists(mine: JSON, other: JSON, names: set[str]) -> JSON:
    """Return a value with those of the named lists empty that are empty in the other one."""
    if isinstance(mine, dict) and isinstance(other, dict):
        return {
            key: [] if key in names and other.get(key) == [] else _without_lists(each, other.get(key), names)
            for key, each in mine.items()
        }
    return mine


def _conditional_values(value: JSON, *, is_condition: bool = False) -> list[JSON]:
    """Return the texts and numbers inside of all parts named `(x)`."""
    if isinstance(value, dict):
        return [
            leaf
            for key, each in value.items()
            for leaf in _conditional_values(each, is_condition=is_condition or bool(re.fullmatch(r"\(.+\)", key)))
        ]
    if isinstance(value, list):
        return [leaf for each in value for leaf in _conditional_values(each, is_condition=is_condition)]
    return [value] if is_condition else []


def _differs_by(mine: JSON, other: JSON, values: list[JSON]) -> bool:
    """Hold where two values are equal but for leaves, or lists of leaves, that are of the values in the other one."""
    if isinstance(mine, dict) and isinstance(other, dict) and mine.keys() <= other.keys():
        return all(
            _differs_by(mine[key], each, values) if key in mine else each in values for key, each in other.items()
        )
    if isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
        return all(_differs_by(one, two, values) for one, two in zip(mine, other, strict=True))
    leaves = other if isinstance(other, list) and other else [other]
    return mine == other or all(not isinstance(each, dict | list) and each in values for each in leaves)


def drops_items(found: Difference) -> bool:
    """Hold where Kyverno's object lacks items of a list that a patch with several conditional elements changes."""
    if found.key.kind != "object" or found.batch.family != "mutate" or ABSENT in (found.ours, found.theirs):
        return False
    lists = set(_lists_of_conditions(found.policy.get("spec", {})))
    return bool(lists) and _lacks_items(json.loads(found.ours.text), json.loads(found.theirs.text), lists)


def _lists_of_conditions(value: JSON, name: str = "") -> Iterator[str]:
    """Yield the names of lists of several elements, one of which at least has anchors."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _lists_of_conditions(each, re.sub(r"^\+?\((.+)\)$", r"\1", key))
    elif isinstance(value, list):
        if len(value) > 1 and re.search(r'"\+?\(\w+\)":', json.dumps(value)):
            yield name
        for each in value:
            yield from _lists_of_conditions(each, name)


def _lacks_items(mine: JSON, other: JSON, lists: set[str], name: str = "") -> bool:
    """Hold where two values are equal but for the lists, of which the other one has parts."""
    if isinstance(mine, dict) and isinstance(other, dict):
        return mine.keys() == other.keys() and all(_lacks_items(mine[key], other[key], lists, key) for key in mine)
    if isinstance(mine, list) and isinstance(other, list) and name in lists:
        plain = [each for each in other if not _has_anchor(each)]
        return len(plain) <= len(mine) and all(any(_is_part(each, item) for item in mine) for each in plain)
    return mine == other


def loses_items(found: Difference) -> bool:
    """Hold where Kyverno's object lacks items of a list whose items have no names, or equal ones."""
    if found.key.kind != "object" or found.batch.family != "mutate" or ABSENT in (found.ours, found.theirs):
        return False
    patches = [
        rule.get("mutate", {}).get("patchStrategicMerge") for rule in found.policy.get("spec", {}).get("rules", ())
    ]
    patched = {name for patch in patches for name in _lists_without_names(patch)}
    has_merge = any(patch is not None for patch in patches)
    return has_merge and _loses_unnamed(json.loads(found.ours.text), json.loads(found.theirs.text), patched)


def _lists_without_names(value: JSON, name: str = "") -> Iterator[str]:
    """Yield the names of lists with items that are no maps or have no name."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _lists_without_names(each, key)
    elif isinstance(value, list):
        if any(not isinstance(each, dict) or not {"name", "(name)"} & each.keys() for each in value):
            yield name
        for each in value:
            yield from _lists_without_names(each, name)


def _loses_unnamed(mine: JSON, other: JSON, patched: set[str], name: str = "") -> bool:
    """Hold where two values are equal but for lists with unnamed items, of which the other one has a part.

    `patched` are the names of lists of which a patch has unnamed items.
    """
    if isinstance(mine, dict) and isinstance(other, dict):
        return mine.keys() == other.keys() and all(_loses_unnamed(mine[key], other[key], patched, key) for key in mine)
    if isinstance(mine, list) and isinstance(other, list) and mine != other:
        keys = ("port", "containerPort") if name == "ports" else ("name",)
        names = [
            next((each[key] for key in keys if key in each), None) if isinstance(each, dict) else None for each in mine
        ]
        is_ambiguous = None in names or len({*map(str, names)}) < len(names) or name in patched
        return (
            is_ambiguous
            and len(other) < len(mine)
            and all(any(_has_all(item, each) for item in mine) for each in other)
        )
    return mine == other


def _has_all(whole: JSON, part: JSON) -> bool:
    """Hold where an item has all fields of another one, which a later patch may have made."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return part.items() <= whole.items() if whole else not part
    return whole == part


def _has_anchor(item: JSON) -> bool:
    return isinstance(item, dict) and any(re.fullmatch(r"\+?\(.+\)", key) for key in item)


def _is_part(part: JSON, whole: JSON) -> bool:
    """Hold where items of lists are equal but for fields that one of them lacks; names are equal."""
    if not isinstance(part, dict) or not isinstance(whole, dict):
        return part == whole
    return part.keys() <= whole.keys() and part.get("name") == whole.get("name")


def replaces_lists(found: Difference) -> bool:
    """Hold where an ApplyConfiguration replaced lists of objects, so that items of ours have more fields."""
    if found.policy.get("kind") != "MutatingAdmissionPolicy" or ABSENT in (found.ours, found.theirs):
        return False
    if found.key.kind != "object" or "ApplyConfiguration" not in json.dumps(found.policy):
        return False
    return _has_more(json.loads(found.ours.text), json.loads(found.theirs.text), is_item=False)


def _has_more(mine: JSON, other: JSON, *, is_item: bool) -> bool:
    if isinstance(mine, dict) and isinstance(other, dict) and (is_item or mine.keys() == other.keys()):
        return other.keys() <= mine.keys() and all(
            _has_more(mine[key], each, is_item=is_item) for key, each in other.items()
        )
    if isinstance(mine, list) and isinstance(other, list):
        named = {each["name"]: each for each in mine if isinstance(each, dict) and "name" in each}
        return mine == other or all(
            isinstance(each, dict) and _has_more(named.get(each.get("name")), each, is_item=True) for each in other
        )
    return mine == other


_PLURALS = {
    "Pod": "pods",
    "Deployment": "deployments",
    "CronJob": "cronjobs",
    "Service": "services",
    "ConfigMap": "configmaps",
    "Namespace": "namespaces",
    "Widget": "widgets",
}


def is_unselected(found: Difference) -> bool:
    """Hold for an object that the constraints of an admission policy with a binding leave out."""
    is_bound = any(item["spec"].get("policyName") == found.key.policy for item in found.batch.policies)
    policy = next((item for item in found.batch.policies if item["metadata"]["name"] == found.key.policy), {})
    constraints = policy.get("spec", {}).get("matchConstraints", {})
    resource = found.resource or next(
        (item for item in found.batch.resources if item["metadata"]["name"] == found.key.resource), {}
    )
    group = resource.get("apiVersion", "").rpartition("/")[0]
    is_kind = any(
        (group in rule["apiGroups"] or "*" in rule["apiGroups"])
        and (_PLURALS.get(resource.get("kind", "")) in rule["resources"] or "*" in rule["resources"])
        for rule in constraints.get("resourceRules", ())
    )
    selector = constraints.get("objectSelector", {})
    labels = resource.get("metadata", {}).get("labels") or {}
    has_labels = selector.get("matchLabels", {}).items() <= labels.items() and all(
        (each["key"] in labels) is (each["operator"] == "Exists") for each in selector.get("matchExpressions", ())
    )
    return is_bound and not (is_kind and has_labels)


def reorders(found: Difference) -> bool:
    """Hold where a strategic merge gives the same object but for the order of items."""
    if found.key.kind != "object" or found.batch.family != "mutate" or ABSENT in (found.ours, found.theirs):
        return False
    mine, other = (_in_order(json.loads(text)) for text in (found.ours.text, found.theirs.text))
    return mine == other and "patchStrategicMerge" in json.dumps(found.policy)


def _in_order(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {key: _in_order(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((_in_order(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value
