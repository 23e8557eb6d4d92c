"""Rewrite test suites to the current schema, and join rows that differ only in their resources.

No rewrite changes the checks of a test.
"""

from __future__ import annotations

from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.offline.clifiles import API_VERSION

__all__ = ["fix_suite"]

_RENAMED = {"status": "result", "patchedResource": "patchedResources"}


def fix_suite(document: JSONObject, *, compress: bool = False) -> tuple[JSONObject, list[str]]:
    """Return a test in the current schema and one warning per change."""
    messages: list[str] = []
    fixed = dict(document)
    for field, value in (("apiVersion", API_VERSION), ("kind", "Test")):
        if not fixed.get(field):
            fixed[field] = value
            messages.append(f"{field} was missing")
    if "name" in fixed:
        name = fixed.pop("name")
        metadata = fixed.get("metadata")
        fixed["metadata"] = {"name": name, **(metadata if isinstance(metadata, dict) else {})}
        messages.append("name is deprecated, moved to metadata.name")
    rows = fixed.get("results")
    if isinstance(rows, list):
        fixed["results"] = [_row(row, messages) if isinstance(row, dict) else row for row in rows]
        if compress:
            fixed["results"] = _compress(fixed["results"], messages)
    ordered = [key for key in ("apiVersion", "kind", "metadata") if key in fixed]
    return {key: fixed[key] for key in (*ordered, *(key for key in fixed if key not in ordered))}, messages


def _row(row: JSONObject, messages: list[str]) -> JSONObject:
    fixed = dict(row)
    for old, new in _RENAMED.items():
        if old in fixed:
            value = fixed.pop(old)
            fixed.setdefault(new, value)
            messages.append(f"{old} is deprecated, renamed to {new}")
    if "resource" in fixed:
        name = fixed.pop("resource")
        if not fixed.get("resources"):
            fixed["resources"] = [name]
        messages.append("resource is deprecated, moved to resources")
    namespace = fixed.pop("namespace", None)
    if namespace is not None:
        if namespace and isinstance(fixed.get("resources"), list):
            fixed["resources"] = [_in_namespace(name, namespace) for name in fixed["resources"]]
        messages.append("namespace is deprecated, put before the names of resources")
    return fixed


def _in_namespace(name: JSON, namespace: JSON) -> JSON:
    return name if not isinstance(name, str) or "/" in name else f"{namespace}/{name}"


def _compress(rows: list[JSON], messages: list[str]) -> list[JSON]:
    """Join rows that differ only in their resources; rows without resources cover all of them and stay as they are."""
    joined: dict[str, JSONObject] = {}
    together: dict[str, list[JSONObject]] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or not isinstance(row.get("resources"), list) or not row["resources"]:
            joined[f"#{number}"] = row
            continue
        key = encode({name: value for name, value in row.items() if name != "resources"})
        first = joined.get(key)
        if first is None:
            joined[key] = row
        else:
            together.setdefault(key, [first]).append(row)
    for key, same in together.items():
        names = {encode(name): name for row in same for name in row["resources"]}
        joined[key] = {**joined[key], "resources": list(names.values())}
    if len(joined) < len(rows):
        messages.append(f"{len(rows)} results were joined into {len(joined)}")
    return list(joined.values())
