"""Comparing an expected object with an actual one as `test` does, and showing the differences."""

from __future__ import annotations

import difflib

from pyverno.kube.json import JSON
from pyverno.kube.yaml.writer import dump_yaml

__all__ = ["tidy", "yaml_diff"]

_GENERATE_PREFIX = "generate.kyverno.io/"
_MANAGED_BY = "app.kubernetes.io/managed-by"


def tidy(document: JSON) -> JSON:
    """Return the object without nulls, empty maps and lists, and without the labels of generated objects.

    >>> tidy({"a": None, "b": {"c": []}, "d": 1})
    {'d': 1, 'metadata': {'labels': {'app.kubernetes.io/managed-by': 'kyverno'}}}
    """
    if not isinstance(document, dict):
        return document
    metadata = document.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    labels = metadata.get("labels")
    kept = {
        key: value
        for key, value in (labels if isinstance(labels, dict) else {}).items()
        if not key.startswith(_GENERATE_PREFIX)
    }
    kept[_MANAGED_BY] = "kyverno"
    metadata["labels"] = kept
    return _without_empty({**document, "metadata": metadata})


def _without_empty(value: JSON) -> JSON:
    if isinstance(value, dict):
        cleaned = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if not _is_empty(item)}
    if isinstance(value, list):
        return [item for item in (_without_empty(item) for item in value) if not _is_empty(item)]
    return value


def _is_empty(value: JSON) -> bool:
    return value is None or value in ({}, [])


def yaml_diff(expected: JSON, actual: JSON) -> str:
    """Return the lines in which two objects differ, `<` for expected and `>` for actual."""
    before = dump_yaml(tidy(expected)).splitlines()
    after = dump_yaml(tidy(actual)).splitlines()
    lines = []
    for line in difflib.ndiff(before, after):
        if line.startswith("- "):
            lines.append(f"< {line[2:]}")
        elif line.startswith("+ "):
            lines.append(f"> {line[2:]}")
    return "\n".join(lines)
