"""Overview of many results: counts by common properties, and the changes since an earlier collection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.report.collected import SEVERITIES, STATUSES, Collected, worst_first
from pyverno.value import dataclass, field

__all__ = ["GROUPINGS", "Group", "Overview", "overview_of"]


def _resource(result: Collected) -> str:
    ref = result.finding.resource
    return "/".join(part for part in (ref.namespace, ref.kind, ref.name) if part) or "-"


GROUPINGS: Final[Mapping[str, Callable[[Collected], str]]] = {
    "policy": lambda result: result.finding.policy or "-",
    "rule": lambda result: result.finding.rule_id or "-",
    "namespace": lambda result: result.finding.resource.namespace or "(cluster)",
    "severity": lambda result: result.finding.severity or "(none)",
    "category": lambda result: result.finding.category or "(none)",
    "kind": lambda result: result.finding.resource.kind or "-",
    "resource": _resource,
    "source": lambda result: result.source or "-",
}
"""Properties by which results can be grouped."""

_OF_A_POLICY: Final = ("policy", "rule")


@dataclass(frozen=True, slots=True)
class Group:
    """Results with a common property, counted by status."""

    name: str
    counts: Mapping[str, int]
    severity: str = ""
    """The worst severity among its problems."""

    source: str = ""
    """The tool, or the kind of policy, where several policies have this name."""

    @property
    def label(self) -> str:
        """The name, with the source where it alone does not identify the group."""
        return f"{self.name} ({self.source})" if self.source else self.name

    @property
    def problems(self) -> int:
        """The number of results that need attention."""
        return self.counts["fail"] + self.counts["error"] + self.counts["warn"]

    def to_json(self) -> JSONObject:
        """Return name, counts and severity; the source where there is one."""
        source: JSONObject = {"source": self.source} if self.source else {}
        return {"name": self.name, **source, "severity": self.severity, **self.counts}


@dataclass(frozen=True, slots=True)
class Overview:
    """Results, worst first, their counts and groups; `new` and `resolved` against an earlier collection, if any."""

    results: Sequence[Collected]
    counts: Mapping[str, int]
    grouping: str
    groups: Sequence[Group]
    new: Sequence[Collected] = ()
    resolved: Sequence[Collected] = ()
    has_baseline: bool = False
    problems: Sequence[str] = field(default=())
    """Unreadable sources, so that their absence is not taken for a clean result."""

    def to_json(self) -> JSONObject:
        """Return the overview as an object."""
        found: JSONObject = {
            "summary": dict(self.counts),
            "groupedBy": self.grouping,
            "groups": [each.to_json() for each in self.groups],
            "results": [each.to_json() for each in self.results],
        }
        if self.has_baseline:
            found["new"] = [each.to_json() for each in self.new]
            found["resolved"] = [each.to_json() for each in self.resolved]
        if self.problems:
            found["errors"] = list(self.problems)
        return found


def overview_of(
    results: Iterable[Collected],
    grouping: str = "policy",
    baseline: Iterable[Collected] | None = None,
    problems: Collection[str] = (),
) -> Overview:
    """Count and group results; with a `baseline`, problems that it lacks are new, and those it alone has resolved.

    >>> overview_of([]).counts["fail"]
    0
    """
    ordered = worst_first(results)
    groups = sorted(
        _groups(ordered, grouping),
        key=lambda group: (-group.counts["fail"] - group.counts["error"], -group.problems, group.label),
    )
    known = None if baseline is None else worst_first(baseline)
    before = {each.key for each in known or ()}
    now = {each.key for each in ordered}
    return Overview(
        ordered,
        _counts(ordered),
        grouping,
        groups,
        tuple(each for each in ordered if each.finding.is_problem and each.key not in before)
        if known is not None
        else (),
        tuple(each for each in known or () if each.finding.is_problem and each.key not in now),
        has_baseline=known is not None,
        problems=tuple(problems),
    )


def _groups(results: Iterable[Collected], grouping: str) -> Iterator[Group]:
    """Yield the groups; policies of different sources, such as different kinds, may share a name, not a group."""
    key_of = GROUPINGS[grouping]
    by_name: dict[str, dict[str, list[Collected]]] = {}
    for each in results:
        source = each.source if grouping in _OF_A_POLICY else ""
        by_name.setdefault(key_of(each), {}).setdefault(source, []).append(each)
    for name, by_source in by_name.items():
        for source, own in by_source.items():
            yield Group(name, _counts(own), _worst(own), (source or "-") if len(by_source) > 1 else "")


def _counts(results: Iterable[Collected]) -> Mapping[str, int]:
    counts = dict.fromkeys(STATUSES, 0)
    for each in results:
        counts[each.finding.status] += 1
    return counts


def _worst(results: Iterable[Collected]) -> str:
    found = [SEVERITIES.index(each.finding.severity) for each in results if each.finding.is_problem]
    return SEVERITIES[min(found)] if found else ""
