"""The variables, namespaces and subresources of a values file, found by policy, rule and resource.

A run asks for them once for each rule and object: everything is found by its names, however long the file is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass, field

__all__ = ["NamespaceLabels", "PolicyValues", "ResourceValues", "RuleValues", "Subresource", "Values", "variable_parts"]

_OBJECTS: Final = ("request.object.", "request.oldObject.")
"""Prefixes of variables that are parts of an object of the request."""


@dataclass(frozen=True, slots=True)
class Subresource:
    """A kind that is a subresource of another one (`Scale` of Deployment)."""

    gvk: GVK
    name: str
    parent: GVK


@dataclass(frozen=True, slots=True)
class RuleValues:
    """Values of one rule; `foreach_values` are lists, one item per element."""

    name: str
    values: Mapping[str, JSON] = field(default_factory=dict)
    foreach_values: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResourceValues:
    """Values of one resource under one policy."""

    name: str
    values: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolicyValues:
    """Values of one policy."""

    name: str
    rules: tuple[RuleValues, ...] = ()
    resources: tuple[ResourceValues, ...] = ()


@dataclass(frozen=True, slots=True)
class NamespaceLabels:
    """Labels of one namespace."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


class _Index:
    """What a values file says, by the names it is asked for; later parts of the file come later in each list."""

    __slots__ = ("_namespaces", "_resources", "_rules", "everywhere", "labels", "names_objects", "names_operations")

    def __init__(self, values: Values) -> None:
        self.everywhere = nested(_without_operation(values.global_values))
        self._resources: dict[tuple[str, str], list[tuple[int, Mapping[str, JSON]]]] = {}
        self._rules: dict[tuple[str, str], list[tuple[int, Mapping[str, JSON]]]] = {}
        given = [values.global_values]
        place = 0
        for entry in values.policies:
            for own in entry.resources:
                place += 1
                given.append(own.values)
                self._resources.setdefault((entry.name, own.name), []).append((place, own.values))
            for rule in entry.rules:
                place += 1
                each = {name: _first(items) for name, items in rule.foreach_values.items()}
                self._rules.setdefault((entry.name, rule.name), []).append((place, {**rule.values, **each}))
        self.names_objects = any(name.startswith(_OBJECTS) for names in given for name in names)
        self.names_operations = any("request.operation" in names for names in given)
        self._namespaces: dict[JSON, JSONObject] = {}
        for document in values.namespaces:
            metadata = document.get("metadata")
            name = metadata.get("name") if isinstance(metadata, dict) else None
            if isinstance(name, str):
                self._namespaces.setdefault(name, document)
        self.labels: dict[str, Mapping[str, str]] = {}
        for labels in values.namespace_selector:
            self.labels.setdefault(labels.name, labels.labels)

    def of_resource(self, policy: str, resource: str) -> list[tuple[int, Mapping[str, JSON]]]:
        return self._resources.get((policy, resource), [])

    def of_rule(self, policy: str, rule: str) -> list[tuple[int, Mapping[str, JSON]]]:
        return [each for name in (rule, *_origins(rule)) for each in self._rules.get((policy, name), ())]

    def namespace(self, name: str) -> JSONObject | None:
        return self._namespaces.get(name)


@dataclass(frozen=True, slots=True)
class Values:
    """A values file: variables by policy, rule and resource, namespaces, subresources.

    Names with dots (`request.object.x`, `dictionary.data.env`) are paths.
    """

    global_values: Mapping[str, JSON] = field(default_factory=dict)
    policies: tuple[PolicyValues, ...] = ()
    namespace_selector: tuple[NamespaceLabels, ...] = ()
    namespaces: tuple[JSONObject, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    _made: list[_Index] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Make the index on first use: most runs have no values file."""
        object.__setattr__(self, "_made", [])

    def supply(self, policy: str, rule: str, resource: str) -> Mapping[str, JSON]:
        """Return the variables of a rule on a resource as nested values; later sources win."""
        index = self._index
        own = [*index.of_resource(policy, resource), *index.of_rule(policy, rule)]
        if not own:
            return index.everywhere
        # the operation is that of the request itself, see `operation`
        return nested(_without_operation(self._joined(own)))

    def changes(self, policy: str, resource: str) -> Mapping[str, JSON]:
        """Return the changes that variables named `request.object…` and `request.oldObject…` make to an object, nested.

        >>> values = Values(global_values={"request.object.spec.replicas": 2, "other": 1})
        >>> values.changes("p", "web")
        {'object': {'spec': {'replicas': 2}}}
        """
        found = self._variables_of(policy, resource)
        request = nested({name: value for name, value in found.items() if name.startswith(_OBJECTS)}).get("request")
        return request if isinstance(request, dict) else {}

    @property
    def names_objects(self) -> bool:
        """Return whether some variable is a part of an object."""
        return self._index.names_objects

    @property
    def names_operations(self) -> bool:
        """Return whether some `request.operation` is given."""
        return self._index.names_operations

    def operation(self, policy: str, resource: str) -> str:
        """Return `request.operation` for a policy on a resource, `CREATE` by default."""
        found = self._variables_of(policy, resource).get("request.operation")
        return str(found) if found else "CREATE"

    def namespace(self, name: str) -> JSONObject | None:
        """Return a Namespace object, or None when the file holds none of that name."""
        return self._index.namespace(name)

    def labels_of(self, namespace: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace, or None for an unknown one."""
        document = self._index.namespace(namespace)
        if document is None:
            return self._index.labels.get(namespace)
        labels = document["metadata"].get("labels")
        return labels if isinstance(labels, dict) else {}

    @property
    def _index(self) -> _Index:
        if not self._made:
            self._made.append(_Index(self))
        return self._made[0]

    def _variables_of(self, policy: str, resource: str) -> Mapping[str, JSON]:
        """Return the variables of a resource under a policy, without those of single rules; later sources win."""
        own = self._index.of_resource(policy, resource)
        return self._joined(own) if own else self.global_values

    def _joined(self, own: list[tuple[int, Mapping[str, JSON]]]) -> dict[str, JSON]:
        found = dict(self.global_values)
        for _, values in sorted(own, key=lambda each: each[0]):
            found.update(values)
        return found


def _without_operation(values: Mapping[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in values.items() if name != "request.operation"}


def _origins(rule: str) -> tuple[str, ...]:
    """Return the names under which the rule that this one was generated from may be listed."""
    return tuple(rule.removeprefix(prefix) for prefix in ("autogen-cronjob-", "autogen-") if rule.startswith(prefix))


def _first(values: JSON) -> JSON:
    return values[0] if isinstance(values, list) and values else values


def nested(flat: Mapping[str, JSON]) -> dict[str, JSON]:
    """Turn names with dots into nested maps; a part in double quotes may hold dots.

    >>> nested({"a.b": 1, "a.c": 2, 'd."e.f"': 3})
    {'a': {'b': 1, 'c': 2}, 'd': {'e.f': 3}}
    """
    result: dict[str, JSON] = {}
    for name, value in flat.items():
        place = result
        *parents, last = variable_parts(name)
        for part in parents:
            below = place.get(part)
            if not isinstance(below, dict):
                below = {}
                place[part] = below
            place = below
        old = place.get(last)
        place[last] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def variable_parts(name: str) -> list[str]:
    """Return the steps of a variable's name; a part in double quotes may hold dots.

    >>> variable_parts('d."e.f"')
    ['d', 'e.f']
    """
    parts, current, quoted = [], "", False
    for character in name:
        if character == '"':
            quoted = not quoted
        elif character == "." and not quoted:
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]
