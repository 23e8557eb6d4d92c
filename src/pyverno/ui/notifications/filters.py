"""Filters of a target: the grammar of the pages (`where`), and the keys of Policy Reporter (`filter`).

A result of the cluster itself passes Policy Reporter's `namespaces`, as there; `where: namespace=team-*` excludes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final
from urllib.parse import parse_qsl

from pyverno.errors import UsageError, ValueSyntaxError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.selector import LabelTest, compile_selector
from pyverno.kube.wildcard import match
from pyverno.report.collected import SEVERITIES, Collected
from pyverno.ui.store.filters import NO_FILTER, Filter, fits, read_filter
from pyverno.value import dataclass, field

__all__ = ["NoticeFilter", "read_notice_filter"]

_DEFAULT_STATUSES: Final = ("fail", "error", "warn")
_RULES: Final = ("namespaces", "status", "severities", "policies", "sources", "kinds", "reportLabels")


@dataclass(frozen=True, slots=True)
class _Rule:
    """Patterns that include and exclude; without the first everything is included."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def admits(self, fits: Callable[[str], bool]) -> bool:
        """Return whether a pattern of `include` fits, if there is one, and no pattern of `exclude` does."""
        return (not self.include or any(map(fits, self.include))) and not any(map(fits, self.exclude))


@dataclass(frozen=True, slots=True)
class NoticeFilter:
    """The filter of one target; `namespace_labels` tests the labels of a namespace and is judged at delivery."""

    where: Filter = NO_FILTER
    rules: Mapping[str, _Rule] = field(default_factory=dict)
    minimum_severity: str = ""
    sources: tuple[str, ...] = ()
    namespace_labels: LabelTest | None = field(default=None, compare=False)

    def admits(self, result: Collected, status: str, cluster: str, labels: Mapping[str, str]) -> bool:
        """Return whether a result with this status, of a report with these labels, is for the target."""
        found, ref = result.finding, result.finding.resource
        if "status" not in self.rules and "status" not in self.where.fields and status not in _DEFAULT_STATUSES:
            return False
        if self.sources and result.source not in self.sources:
            return False
        if self.minimum_severity:
            most = SEVERITIES.index(self.minimum_severity)
            if not found.severity or SEVERITIES.index(found.severity) > most:
                return False
        values = {
            "namespaces": ref.namespace,
            "status": status,
            "severities": found.severity,
            "policies": found.policy,
            "sources": result.source,
            "kinds": ref.kind,
        }
        for name, rule in self.rules.items():
            if name == "namespaces" and not ref.namespace:
                continue
            fits_one = partial(_has_label, labels) if name == "reportLabels" else partial(_matches, values[name])
            if not rule.admits(fits_one):
                return False
        return self._is_selected(result, status, cluster, labels)

    def _is_selected(self, result: Collected, status: str, cluster: str, labels: Mapping[str, str]) -> bool:
        found, ref = result.finding, result.finding.resource
        values = {
            "cluster": cluster,
            "source": result.source,
            "category": found.category,
            "policy": found.policy,
            "rule": found.rule,
            "severity": found.severity,
            "status": status,
            "namespace": ref.namespace,
            "kind": ref.kind,
            "name": ref.name,
            "apiVersion": ref.api_version,
        }
        where = self.where
        if not all(fits(patterns, values[name]) for name, patterns in where.fields.items()):
            return False
        for patterns_of, texts in ((where.properties, found.properties), (where.labels, labels)):
            for key, patterns in patterns_of.items():
                if key not in texts and any(not pattern.startswith("!") for pattern in patterns):
                    return False
                if not fits(patterns, texts.get(key, "")):
                    return False
        wanted = where.search.lower()
        return not wanted or any(wanted in text.lower() for text in (found.message, ref.name, found.policy, found.rule))


def read_notice_filter(body: JSONObject) -> NoticeFilter:
    """Return the filter of a target's keys `filter`, `where`, `sources` and `minimumSeverity`; raises UsageError."""
    rules: dict[str, _Rule] = {}
    selector: LabelTest | None = None
    found = body.get("filter") or {}
    if not isinstance(found, dict):
        raise UsageError("`filter` must be a mapping")
    for name, value in found.items():
        if name not in _RULES:
            raise UsageError(f"unknown `filter.{name}`: expected {', '.join(_RULES)}")
        if name == "namespaces" and isinstance(value, dict) and value.get("selector"):
            selector = _selector(value["selector"])
        rule = _rule(name, value)
        if rule.include or rule.exclude:
            rules[name] = rule
    minimum = body.get("minimumSeverity") or ""
    if not isinstance(minimum, str) or minimum not in SEVERITIES:
        raise UsageError(f"`minimumSeverity` must be one of {', '.join(SEVERITIES[:-1])}")
    return NoticeFilter(_where(body.get("where")), rules, minimum, _texts("sources", body.get("sources")), selector)


def _where(value: JSON) -> Filter:
    if value is None:
        return NO_FILTER
    if isinstance(value, str):
        pairs = parse_qsl(value, keep_blank_values=True)
    elif isinstance(value, dict):
        pairs = [(key, ",".join(_texts(f"where.{key}", each))) for key, each in value.items()]
    else:
        raise UsageError("`where` must be a filter as in the address of a page, or a mapping of its fields")
    for name, _ in pairs:
        if name in ("state", "since", "until"):
            raise UsageError(f"`where` has `{name}`, which has no meaning for a change")
    return read_filter(pairs, 0)


def _rule(name: str, value: JSON) -> _Rule:
    if not isinstance(value, dict):
        return _Rule(_texts(f"filter.{name}", value))
    for key in value:
        if key not in ("include", "exclude", *(("selector",) if name == "namespaces" else ())):
            raise UsageError(f"unknown `filter.{name}.{key}`: expected include, exclude")
    return _Rule(
        _texts(f"filter.{name}.include", value.get("include")), _texts(f"filter.{name}.exclude", value.get("exclude"))
    )


def _selector(value: JSON) -> LabelTest:
    if not isinstance(value, dict):
        raise UsageError("`filter.namespaces.selector` must be a mapping of labels or a label selector")
    is_whole = any(isinstance(each, dict | list) for each in value.values())
    try:
        return compile_selector(value if is_whole else {"matchLabels": value}, wildcards=True)
    except ValueSyntaxError as error:
        raise UsageError(f"`filter.namespaces.selector` is wrong: {error.message}") from error


def _matches(value: str, pattern: str) -> bool:
    return match(pattern, value)


def _has_label(labels: Mapping[str, str], text: str) -> bool:
    """Return whether `key:pattern` fits a label; a key alone fits each of its values."""
    key, _, pattern = text.partition(":")
    value = labels.get(key.strip())
    return value is not None and match(pattern.strip() or "*", value)


def _texts(name: str, value: JSON) -> tuple[str, ...]:
    items: Sequence[JSON] = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(each, str) for each in items):
        raise UsageError(f"`{name}` must be a list of texts")
    return tuple(str(each) for each in items)
