"""The ConfigMap `kyverno`: settings that an administrator changes while the controllers run.

Every key is read separately: an invalid one keeps its default and is listed in `problems`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pyverno.engine.request import DEFAULT_SETTINGS, EvaluationSettings
from pyverno.errors import DocumentError, ValueSyntaxError
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.kube.labelsyntax import label_key_problems, label_value_problems
from pyverno.kube.quantity import parse_quantity
from pyverno.kube.selector import compile_selector
from pyverno.lazyregex import regex
from pyverno.webhook.filters import ExcludedUsers, ResourceFilter, read_resource_filters, read_user_list

# trust rows: settings-map

__all__ = ["Configuration"]

_LABEL = "[A-Za-z0-9_][A-Za-z0-9_-]{0,62}"
_REGISTRY = regex(rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?(?:/[a-z0-9._/-]+)?")
_MAX_KINDS = 1024
_MAX_DIGITS = 18
_MAX_PROBLEM = 256
_MAX_ANNOTATIONS = 256 << 10


@dataclass(frozen=True, slots=True)
class Configuration:
    """All settings of the ConfigMap, with their defaults.

    `evaluation` applies to every rule. `success_event_actions` is empty for all actions. `problems` lists the invalid
    keys with the reasons.

    >>> Configuration.read({"excludeGroups": "system:nodes", "maxContextSize": "x"}).problems
    ('maxContextSize: `x` is no quantity',)
    """

    resource_filters: tuple[ResourceFilter, ...] = ()
    excluded: ExcludedUsers = field(default_factory=ExcludedUsers)
    namespace_selector: JSONObject | None = None
    object_selector: JSONObject | None = None
    webhook_annotations: Mapping[str, str] = field(default_factory=dict)
    webhook_labels: Mapping[str, str] = field(default_factory=dict)
    match_conditions: tuple[JSONObject, ...] = ()
    generates_success_events: bool = False
    success_event_actions: tuple[str, ...] = ()
    update_request_threshold: int = 1000
    evaluation: EvaluationSettings = DEFAULT_SETTINGS
    problems: tuple[str, ...] = ()
    _filters: dict[tuple[GVK, str], tuple[ResourceFilter, ...]] = field(default_factory=dict, repr=False, compare=False)

    def filters_of(self, kind: GVK, subresource: str) -> tuple[ResourceFilter, ...]:
        """Return the resource filters that match a kind; memoised, because every request needs them."""
        key = kind, subresource
        found = self._filters.get(key)
        if found is None:
            if len(self._filters) >= _MAX_KINDS:  # callers choose the kinds: they must not fill the memory
                self._filters.clear()
            found = tuple(each for each in self.resource_filters if each.kind.matches(kind, subresource))
            self._filters[key] = found
        return found

    @classmethod
    def read(cls, data: Mapping[str, str]) -> Configuration:
        """Read the `data` of the ConfigMap; unknown keys are ignored."""
        found: dict[str, Any] = {}
        problems: list[str] = []
        for key, read in _READERS.items():
            text = data.get(key)
            if text is None:
                continue
            try:
                found.update(read(text))
            except (DocumentError, ValueSyntaxError) as error:
                problems.append(f"{key}: {error}"[:_MAX_PROBLEM])  # the text is logged at every change
        excluded = ExcludedUsers(**{name: found.pop(name) for name in _USERS if name in found})
        settings = {name: found.pop(name) for name in _EVALUATION if name in found}
        evaluation = EvaluationSettings(**settings) if settings else DEFAULT_SETTINGS
        return replace(cls(**found), excluded=excluded, evaluation=evaluation, problems=tuple(problems))


_USERS = tuple(item.name for item in fields(ExcludedUsers))
_EVALUATION = ("default_registry", "mutates_registry", "context_bytes")


def _selectors(text: str) -> dict[str, JSON]:
    value = _object(text)
    return {
        name: _selector(value[key], key)
        for key, name in (("namespaceSelector", "namespace_selector"), ("objectSelector", "object_selector"))
        if value.get(key) is not None
    }


def _selector(value: JSON, name: str) -> JSONObject:
    """Return a selector that an API server takes: it would refuse every webhook with another one."""
    if not isinstance(value, dict):
        raise ValueSyntaxError(f"`{name}` must be a map")
    try:
        compile_selector(value)
    except ValueSyntaxError as error:
        raise ValueSyntaxError(f"`{name}`: {error.message}") from None
    return value


def _object(text: str) -> JSONObject:
    value = decode(text)
    if not isinstance(value, dict):
        raise ValueSyntaxError("must be one JSON object")
    return value


def _texts(text: str) -> Mapping[str, str]:
    value = {} if text.strip() == "null" else _object(text)
    if not all(isinstance(item, str) for item in value.values()):
        raise ValueSyntaxError("must be a JSON map of texts")
    return value


def _labels(text: str) -> Mapping[str, str]:
    """Return labels that an API server takes: it would refuse every configuration with others."""
    found = _texts(text)
    for key, value in found.items():
        for problem in (*label_key_problems(key), *label_value_problems(value)):
            raise ValueSyntaxError(f"`{key}`: {problem}")
    return found


def _annotations(text: str) -> Mapping[str, str]:
    found = _texts(text)
    for key in found:
        for problem in label_key_problems(key.lower()):
            raise ValueSyntaxError(f"`{key}`: {problem}")
    if len(text.encode("utf-8", "replace")) > _MAX_ANNOTATIONS:
        raise ValueSyntaxError(f"must have at most {_MAX_ANNOTATIONS} bytes")
    return found


def _conditions(text: str) -> tuple[JSONObject, ...]:
    value = decode(text)
    if not isinstance(value, list):
        raise ValueSyntaxError("must be a JSON list of conditions")
    for item in value:
        if not isinstance(item, dict) or not all(isinstance(item.get(key), str) for key in ("name", "expression")):
            raise ValueSyntaxError("each condition must have the texts `name` and `expression`")
    return tuple(value)


def _bool(text: str) -> bool:
    match text.strip().lower():
        case "true" | "1" | "t":
            return True
        case "false" | "0" | "f":
            return False
    raise ValueSyntaxError(f"`{text}` is neither true nor false")


def _registry(text: str) -> str:
    """Return a registry, with its path if there is one."""
    if not _REGISTRY.fullmatch(text):
        raise ValueSyntaxError(f"`{text}` is no registry")
    return text


def _size(text: str) -> int:
    """Return a number of bytes; 0 stands for no limit."""
    try:
        value = math.ceil(parse_quantity(text).value)
    except ValueSyntaxError:
        raise ValueSyntaxError(f"`{text}` is no quantity") from None
    if value < 0:
        raise ValueSyntaxError(f"`{text}` is negative")
    return value or sys.maxsize


def _count(text: str) -> int:
    if not text.strip().isascii() or not text.strip().isdigit() or len(text) > _MAX_DIGITS:
        raise ValueSyntaxError(f"`{text}` is no whole number")
    return int(text)


def _list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _into(name: str, read: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    return lambda text: {name: read(text)}


_READERS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "resourceFilters": _into("resource_filters", read_resource_filters),
    "excludeGroups": _into("groups", read_user_list),
    "excludeUsernames": _into("usernames", read_user_list),
    "excludeRoles": _into("roles", read_user_list),
    "excludeClusterRoles": _into("cluster_roles", read_user_list),
    "webhooks": _selectors,
    "webhookAnnotations": _into("webhook_annotations", _annotations),
    "webhookLabels": _into("webhook_labels", _labels),
    "matchConditions": _into("match_conditions", _conditions),
    "defaultRegistry": _into("default_registry", _registry),
    "enableDefaultRegistryMutation": _into("mutates_registry", _bool),
    "generateSuccessEvents": _into("generates_success_events", _bool),
    "successEventActions": _into("success_event_actions", _list),
    "updateRequestThreshold": _into("update_request_threshold", _count),
    "maxContextSize": _into("context_bytes", _size),
}
