"""Conditions of classes that compare whole objects and properties of both sides."""

from __future__ import annotations

import json
import re

from pyverno.kube.json import JSON
from tests.differential.compare import ABSENT, Difference

__all__ = ["has_empty_process", "keeps_anchors", "reorders"]


def has_empty_process(found: Difference) -> bool:
    """Hold for a deletion whose details are equal but for an empty process and the name of an exception."""
    if found.batch.family != "deletions" or found.aspect != "details":
        return False
    mine, other = (json.loads(each.details) for each in (found.ours, found.theirs))
    mine.get("properties", {}).pop("exceptions", None)
    has_process = other.get("properties", {}).pop("process", None) == ""
    return has_process and (mine.get("properties") or {}) == (other.get("properties") or {})


def keeps_anchors(found: Difference) -> bool:
    """Hold where Kyverno's object is ours but for fields named like a condition: `(metadata)`."""
    if found.key.kind != "object" or found.key.resource == "generated" or ABSENT in (found.ours, found.theirs):
        return False
    mine, other = json.loads(found.ours.text), json.loads(found.theirs.text)
    without = {key: value for key, value in other.items() if not re.fullmatch(r"\(.+\)", key)}
    return without == mine != other


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
