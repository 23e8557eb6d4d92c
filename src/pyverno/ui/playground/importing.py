"""Reads links and export files of Kyverno's playground as texts of this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.clifiles import API_VERSION
from pyverno.ui.playground.lzstring import decompress

__all__ = ["import_text"]

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "policies": ("policies", "policy", "vapBindings"),
    "resources": ("resources", "resource"),
    "oldResources": ("oldResources", "oldResource"),
    "clusterResources": ("clusterResources", "clutserResources"),
    "exceptions": ("exceptions", "policyExceptions"),
    "crds": ("customResourceDefinitions",),
}
"""Names of our texts and of theirs; here, bindings stand beside policies. Their files do write `clutserResources`."""

_LEFT_OUT: Final = {"config": "the configuration of Kyverno", "imageData": "the data of images"}
_MOST_PROFILES: Final = 100


def import_text(text: str) -> JSONObject:
    """Return `profiles`, each with `name`, `state` (texts by input) and `notes` on what was left out.

    `text` is a link, the content of one, or an export file. Raises UsageError for anything else.
    """
    stripped = text.strip()
    profiles = _read_file(stripped) if "\n" in stripped or "profiles:" in stripped else [_read_link(stripped)]
    return {"profiles": [_profile(each) for each in profiles[:_MOST_PROFILES]]}


def _read_link(text: str) -> JSONObject:
    _, found, query = text.partition("content=")
    content = parse_qs(f"content={query}").get("content", [""])[0] if found else text
    # a `+` that was not encoded is read as a space
    content = decompress(content.replace(" ", "+"))
    try:
        value = decode(content)
    except PyvernoError:
        raise UsageError("the link is damaged: it may have been cut") from None
    if not isinstance(value, dict):
        raise UsageError("the link is none of Kyverno's playground")
    return value


def _read_file(text: str) -> list[JSONObject]:
    documents = load_documents(text, file="import")
    value = documents[0].value if len(documents) == 1 else None
    profiles = value.get("profiles") if isinstance(value, dict) else None
    if not isinstance(profiles, list) or not all(isinstance(each, dict) for each in profiles):
        raise UsageError("the file is no export of Kyverno's playground: it has no list `profiles`")
    return profiles


def _profile(found: JSONObject) -> JSONObject:
    state = {
        name: "---\n".join(texts)
        for name, names in _NAMES.items()
        if (
            texts := [
                _with_end(found[each]) for each in names if isinstance(found.get(each), str) and found[each].strip()
            ]
        )
    }
    notes = [f"{what} is left out" for name, what in _LEFT_OUT.items() if found.get(name)]
    try:
        state.update(_context(found.get("context"), state.get("resources", "")))
    except PyvernoError as error:
        notes.append(f"the context is left out: {error.message}")
    return {"name": str(found.get("name") or "imported"), "state": state, "notes": notes}


def _with_end(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def _context(text: JSON, resources: str) -> dict[str, str]:
    """Return user, values and operation of the text that describes the request."""
    if not isinstance(text, str) or not text.strip():
        return {}
    (document,) = load_documents(text, file="context")[:1] or (None,)
    value = document.value if document is not None else None
    if not isinstance(value, dict):
        raise UsageError("expected a mapping")
    found: dict[str, str] = {}
    request = _part(value, "context", dict)
    user = {name: request[name] for name in ("username", "groups") if request.get(name)}
    roles = {name: request[name] for name in ("roles", "clusterRoles") if request.get(name)}
    if user or roles:
        found["userInfo"] = _file("UserInfo", {**roles, **({"userInfo": user} if user else {})})
    values: JSONObject = {}
    if variables := _part(value, "variables", dict):
        values["globalValues"] = variables
    if labels := _part(request, "namespaceLabels", dict):
        values["namespaceSelector"] = [{"name": name, "labels": labels} for name in _namespaces(resources)]
    if values:
        found["values"] = _file("Values", values)
    if operation := _part(request, "operation", str):
        found["operation"] = operation
    return found


def _part(value: JSONObject, name: str, kind: Callable[[], Any]) -> Any:
    found = value.get(name)
    if found is None:
        return kind()
    if not isinstance(found, type(kind())):
        raise UsageError(f"`{name}` has another form")
    return found


def _file(kind: str, fields: JSONObject) -> str:
    return dump_yaml(
        {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": kind.lower()}, **fields}, sort_keys=False
    )


def _namespaces(resources: str) -> list[str]:
    """Return the namespaces of resources: the labels of a request are those of its namespace."""
    found: dict[str, None] = {}
    for document in load_documents(resources, file="resources"):
        metadata = document.value.get("metadata") if isinstance(document.value, dict) else None
        name = metadata.get("namespace") if isinstance(metadata, dict) else None
        found[name if isinstance(name, str) and name else "default"] = None
    return list(found)
