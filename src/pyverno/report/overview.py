"""Overview of many results: counts by common properties, and the changes since an earlier collection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.report.collected import SEVERITIES, STATUSES, Collected, worst_first
from pyverno.report.finding import Finding
from pyverno.value import dataclass, field

__all__ = ["GROUPINGS", "Group", "Overview", "Tallies", "overview_of"]


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
        return {key: [*value] if isinstance(value, Iterator) else value for key, value in self.fields().items()}

    def fields(self) -> JSONObject:
        """Return the fields of the object, with the results one by one: there may be very many."""
        found: JSONObject = {
            "summary": dict(self.counts),
            "groupedBy": self.grouping,
            "groups": [each.to_json() for each in self.groups],
            "results": (each.to_json() for each in self.results),
        }
        if self.has_baseline:
            found["new"] = (each.to_json() for each in self.new)
            found["resolved"] = (each.to_json() for each in self.resolved)
        if self.problems:
            found["errors"] = list(self.problems)
        return found


class _Tally:
    """The counts of a group while its results are read."""

    __slots__ = ("counts", "worst")

    def __init__(self) -> None:
        self.counts = dict.fromkeys(STATUSES, 0)
        self.worst = len(SEVERITIES) - 1

    def add(self, each: Finding) -> None:
        if each.is_problem:
            self.worst = min(self.worst, SEVERITIES.index(each.severity))
        self.counts[each.status] += 1


class Tallies:
    """Counts of results, in total and by group, while they are read.

    Policies of different sources, such as different kinds, may share a name, not a group.
    """

    def __init__(self, grouping: str = "policy") -> None:
        self._name_of = GROUPINGS[grouping]
        self._is_of_policy = grouping in _OF_A_POLICY
        self._groups: dict[str, dict[str, _Tally]] = {}
        self._all = _Tally()

    def add(self, each: Collected) -> None:
        """Count one result."""
        by_source = self._groups.setdefault(self._name_of(each), {})
        source = each.source if self._is_of_policy else ""
        by_source.setdefault(source, _Tally()).add(each.finding)
        self._all.add(each.finding)

    @property
    def counts(self) -> Mapping[str, int]:
        """The counts of all results by status."""
        return self._all.counts

    def groups(self) -> Sequence[Group]:
        """Return the groups, those with most failures first."""
        found = [
            Group(name, tally.counts, SEVERITIES[tally.worst], (source or "-") if len(by_source) > 1 else "")
            for name, by_source in self._groups.items()
            for source, tally in by_source.items()
        ]
        return sorted(
            found, key=lambda group: (-group.counts["fail"] - group.counts["error"], -group.problems, group.label)
        )


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
    tallies = Tallies(grouping)
    for each in ordered:
        tallies.add(each)
    known = None if baseline is None else worst_first(baseline)
    before = {each.key for each in known or ()}
    now = {each.key for each in ordered}
    return Overview(
        ordered,
        tallies.counts,
        grouping,
        tallies.groups(),
        tuple(each for each in ordered if each.finding.is_problem and each.key not in before)
        if known is not None
        else (),
        tuple(each for each in known or () if each.finding.is_problem and each.key not in now),
        has_baseline=known is not None,
        problems=tuple(problems),
    )
