"""Results from existing reports: PolicyReports of a cluster or of files, of any tool that writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyverno.engine.result import ResourceRef
from pyverno.kube.json import JSON, JSONObject
from pyverno.report.finding import Finding
from pyverno.value import dataclass

__all__ = ["SEVERITIES", "STATUSES", "Collected", "is_report", "rank", "read_report", "worst_first"]

STATUSES: Final = ("fail", "error", "warn", "skip", "pass")
"""From the worst to the best."""

SEVERITIES: Final = ("critical", "high", "medium", "low", "info", "")
"""Severities from the worst to the least; the last stands for policies without one."""

_KINDS: Final = frozenset({"PolicyReport", "ClusterPolicyReport", "Report", "ClusterReport"})
_GROUPS: Final = frozenset({"wgpolicyk8s.io", "openreports.io", "reports.x-k8s.io"})


@dataclass(frozen=True, slots=True)
class Collected:
    """One result of a report: the finding, the tool that it comes from, and when it was made (seconds, 0 = unknown)."""

    finding: Finding
    source: str = ""
    seconds: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        """The identity of a result, which distinguishes new results from known ones."""
        found, ref = self.finding, self.finding.resource
        return (self.source, found.policy, found.rule, ref.kind, ref.namespace, ref.name, found.status)

    def to_json(self) -> JSONObject:
        """Return the result as an object; empty parts are left out."""
        item = self.finding.to_json()
        if self.source:
            item["source"] = self.source
        if self.seconds:
            item["timestamp"] = self.seconds
        return item


def is_report(body: JSON) -> bool:
    """Return whether a document is a report.

    >>> is_report({"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport"})
    True
    """
    if not isinstance(body, dict):
        return False
    group = str(body.get("apiVersion")).rpartition("/")[0]
    kind = body.get("kind")
    return isinstance(kind, str) and kind in _KINDS and group in _GROUPS


def read_report(body: JSONObject) -> Iterator[Collected]:
    """Yield the results of a report; parts of a wrong type count as missing."""
    scope = _object(body.get("scope"))
    own = _object(body.get("metadata"))
    same: dict[JSON, JSON] = {}  # results are alike: what is equal is kept once
    for item in _objects(body.get("results")):
        resources = _objects(item.get("resources")) or _objects(item.get("subjects")) or ([scope] if scope else [{}])
        for resource in resources:
            reference = _reference(resource, own)
            yield _collect(item, same.setdefault(reference, reference), _read_text(body, "source"), same)


def _collect(item: JSONObject, resource: ResourceRef, source: str, same: dict[JSON, JSON]) -> Collected:
    def read(key: str) -> str:
        text = _read_text(item, key)
        found: str = same.setdefault(text, text)
        return found

    status = _read_text(item, "result") or _read_text(item, "status")
    properties = {key: value for key, value in _object(item.get("properties")).items() if isinstance(value, str)}
    finding = Finding(
        policy=read("policy"),
        rule=read("rule"),
        resource=resource,
        status=status if status in STATUSES else "error",
        message=read("message") or read("description"),
        severity=_read_text(item, "severity") if _read_text(item, "severity") in SEVERITIES else "",
        category=read("category"),
        exceptions=tuple(filter(None, properties.get("exceptions", "").split(","))),
        properties=same.setdefault(tuple(sorted(properties.items())), properties),
    )
    return Collected(finding, read("source") or source, _seconds(item.get("timestamp")))


def worst_first(results: Iterable[Collected]) -> Sequence[Collected]:
    """Return results from the worst to the best, then by place, so that two runs have one order."""
    return sorted(results, key=rank)


def rank(result: Collected) -> tuple[int | str, ...]:
    """Return the key by which results are sorted from the worst to the best."""
    found, ref = result.finding, result.finding.resource
    return (
        STATUSES.index(found.status),
        SEVERITIES.index(found.severity),
        found.policy,
        found.rule,
        ref.namespace,
        ref.kind,
        ref.name,
        result.source,
    )


def _reference(body: JSONObject, owner: JSONObject) -> ResourceRef:
    """Return the object of a result. In a report of a namespace it is always of that namespace, even without a name.

    Whoever may write reports in one namespace must not show results of another one, or of the cluster.
    """
    namespace = _read_text(owner, "namespace") or _read_text(body, "namespace")  # guard: results are of their namespace
    return ResourceRef(_read_text(body, "apiVersion"), _read_text(body, "kind"), namespace, _read_text(body, "name"))


def _seconds(value: JSON) -> int:
    found = value.get("seconds") if isinstance(value, dict) else None
    return found if isinstance(found, int) else 0


def _read_text(source: Mapping[str, JSON], key: str) -> str:
    found = source.get(key)
    return found if isinstance(found, str) else ""


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _objects(value: JSON) -> list[JSONObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
