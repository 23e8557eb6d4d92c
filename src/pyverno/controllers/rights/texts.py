"""What the text of a namespaced policy reads, as permissions: kinds and names that no variable decides.

Context entries, secrets of registries and keys, parameters and calls of CEL are found wherever they stand; parts that
are data (patterns, patches, generated objects) read nothing. What is not found here is checked when the policy reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.errors import ValueSyntaxError
from pyverno.kube.apipath import parse_api_path
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["TextRead", "reads_of"]

_DATA: Final = frozenset(
    {"data", "pattern", "anyPattern", "patchStrategicMerge", "patchesJson6902", "match", "exclude", "metadata"}
)
_CREDENTIALS: Final = frozenset({"imageRegistryCredentials", "credentials"})
_EXPRESSIONS: Final = frozenset({"expression", "messageExpression", "valueExpression"})
_VARIABLE: Final = regex(r"\{\{.*?\}\}")
_NAME: Final = regex("[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_CALL: Final = regex(r"\bresource\.(Get|List)\(((?:\s*(?:'[^'\\]*'|\"[^\"\\]*\")\s*,?)+)(\)?)")
_LITERAL: Final = regex(r"'([^'\\]*)'|\"([^\"\\]*)\"")
_UNKNOWN: Final = "x-unknown-x"


@dataclass(frozen=True, slots=True)
class TextRead:
    """A read that the text fixes, and the part of the policy that reads."""

    verb: str
    group: str
    resource: str
    name: str
    path: str


def reads_of(policy: JSONObject, namespace: str, kinds: KindTable) -> Iterator[TextRead]:
    """Yield what the spec of a policy of a namespace reads there.

    >>> from pyverno.kube.kinds import BUILTIN_KINDS
    >>> entry = {"name": "a", "apiCall": {"urlPath": "/api/v1/namespaces/{{ request.namespace }}/secrets/b"}}
    >>> found = reads_of({"spec": {"context": [entry]}}, "team", BUILTIN_KINDS)
    >>> [(each.verb, each.resource, each.name, each.path) for each in found]
    [('get', 'secrets', 'b', 'spec.context[0]')]
    """
    spec = policy.get("spec")
    return _walk(spec, "spec", _Place(namespace, kinds))


@dataclass(frozen=True, slots=True)
class _Place:
    namespace: str
    kinds: KindTable

    def is_own(self, namespace: JSON) -> bool:
        """Return whether a namespace is, or may be, that of the policy: others are refused anyway."""
        return not isinstance(namespace, str) or namespace in ("", self.namespace) or "{{" in namespace


def _walk(node: JSON, path: str, place: _Place) -> Iterator[TextRead]:
    if isinstance(node, str) and node.startswith("k8s://"):
        namespace, _, name = node.removeprefix("k8s://").partition("/")
        if place.is_own(namespace):
            yield from _named("secrets", name, path)
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield from _walk(item, f"{path}[{index}]", place)
    elif isinstance(node, dict):
        yield from _of_param(node, path, place)
        for key, value in node.items():
            if key in _DATA:
                continue
            below = f"{path}.{key}"
            if key == "context" and isinstance(value, list):
                for index, entry in enumerate(value):
                    yield from _of_entry(entry, f"{below}[{index}]", place)
            elif key in _CREDENTIALS and isinstance(value, dict):
                yield from _of_credentials(value, below, place)
            elif key == "secret" and isinstance(value, dict) and place.is_own(value.get("namespace")):
                yield from _named("secrets", value.get("name"), below)
            elif key in _EXPRESSIONS and isinstance(value, str):
                yield from _of_expression(value, below, place)
            yield from _walk(value, below, place)


def _of_entry(entry: JSON, path: str, place: _Place) -> Iterator[TextRead]:
    """Yield the reads of a context entry; its credentials are found by the walk."""
    if not isinstance(entry, dict):
        return
    config_map, call = entry.get("configMap"), entry.get("apiCall")
    if isinstance(config_map, dict) and place.is_own(config_map.get("namespace")):
        yield from _named("configmaps", config_map.get("name"), path)
    text = call.get("urlPath") if isinstance(call, dict) else None
    if isinstance(text, str):
        yield from _of_path(text, path, place)


def _of_path(text: str, path: str, place: _Place) -> Iterator[TextRead]:
    try:
        found = parse_api_path(_VARIABLE.sub(_UNKNOWN, text.partition("?")[0]))
    except ValueSyntaxError:
        return
    group, resource, name, subresource = found.place
    is_own = found.namespace == _UNKNOWN or place.is_own(found.namespace)
    if resource and is_own and not subresource and not any(_UNKNOWN in each for each in (group, resource, name)):
        yield TextRead("get" if name else "list", group, resource, name, path)


def _of_credentials(credentials: JSONObject, path: str, place: _Place) -> Iterator[TextRead]:
    listed = credentials.get("secrets")
    for text in listed if isinstance(listed, list) else ():
        namespace, slash, name = str(text).rpartition("/")
        if not slash or place.is_own(namespace):
            yield from _named("secrets", name, f"{path}.secrets")


def _of_param(node: JSONObject, path: str, place: _Place) -> Iterator[TextRead]:
    kind, reference = node.get("paramKind"), node.get("paramRef")
    if not isinstance(kind, dict) or not isinstance(reference, dict) or not place.is_own(reference.get("namespace")):
        return
    info = place.kinds.find(GVK(*parse_api_version(str(kind.get("apiVersion"))), str(kind.get("kind"))))
    if info is not None and info.namespaced:
        name = reference.get("name")
        if not name:
            yield TextRead("list", info.group, info.plural, "", f"{path}.paramRef")
        elif isinstance(name, str) and _NAME.fullmatch(name):
            yield TextRead("get", info.group, info.plural, name, f"{path}.paramRef")


def _of_expression(text: str, path: str, place: _Place) -> Iterator[TextRead]:
    """Yield the calls whose arguments are literals: `resource.Get(apiVersion, resource[, namespace], name)`."""
    for call in _CALL.finditer(text):
        arguments = [single or double for single, double in _LITERAL.findall(call[2])]
        is_get, is_whole = call[1] == "Get", bool(call[3])
        if len(arguments) < 2 or (is_get and not is_whole):
            continue
        group, resource = parse_api_version(arguments[0])[0], arguments[1]
        named = arguments[2:] if is_get else [*arguments[2:3], ""]
        if len(named) == 2 and not place.is_own(named[0]):
            continue
        if "/" not in resource and resource:
            yield TextRead("get" if is_get else "list", group, resource, named[-1] if is_get and named else "", path)


def _named(resource: str, name: JSON, path: str) -> Iterator[TextRead]:
    if isinstance(name, str) and _NAME.fullmatch(name):
        yield TextRead("get", "", resource, name, path)
