"""The reports of `apply --policy-report`, written piece by piece while results come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pyverno.kube.json import JSONObject, encode
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.report.formats.ordered import OrderedTexts
from pyverno.report.policyreport import OPEN_REPORTS, ReportEntry, result_object
from pyverno.report.rendered import no_bug, rendered
from pyverno.report.summary import Summary

__all__ = ["merged_reports"]

_CLI_SCOPE_KIND = "ClusterReport"


class _Report:
    """One report while its results are read."""

    def __init__(self, kind: str, name: str, namespace: str = "") -> None:
        metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
        self._head: JSONObject = {"apiVersion": OPEN_REPORTS, "kind": kind, "metadata": metadata}
        self.results = OrderedTexts()
        self.summary = Summary()

    def _tail(self) -> JSONObject:
        # Kyverno: the report has results of several sources, and its field none
        return {"source": "", "summary": self.summary.to_json()}

    def yaml(self) -> Iterator[str]:
        yield dump_yaml(self._head)
        yield "results:\n" if self.results else "results: []\n"
        yield from self.results
        yield dump_yaml(self._tail())

    def json(self) -> Iterator[str]:
        yield encode(self._head)[:-1] + ',"results":['
        for number, text in enumerate(self.results):
            yield f",{text}" if number else text
        yield "]," + encode(self._tail())[1:]


def merged_reports(
    entries: Iterable[ReportEntry],
    *,
    form: str = "yaml",
    audit_warn: bool = False,
    lost: Callable[[ReportEntry, Exception], None] = no_bug,
) -> Iterator[str]:
    """Yield one report of all cluster policies, then one per namespaced policy, in YAML or JSON.

    Results are sorted as Kyverno sorts them. The first report is written even without results, unless namespaced
    policies have results. `lost` takes results that cannot be written.

    >>> print(*merged_reports([], form="json"), sep="", end="")
    {"apiVersion":"openreports.io/v1alpha1","kind":"ClusterReport","metadata":{"name":"merged"},"results":[],\
"source":"","summary":{"error":0,"fail":0,"pass":0,"skip":0,"warn":0}}
    """
    cluster = _Report(_CLI_SCOPE_KIND, "merged")
    namespaced: dict[tuple[str, str], _Report] = {}

    def take(entry: ReportEntry) -> None:
        item = result_object(entry, audit_warn=audit_warn)
        policy = entry.result.rule.policy
        report = cluster
        if policy.namespace:
            key = policy.namespace, policy.name
            report = namespaced.get(key) or namespaced.setdefault(key, _Report("PolicyReport", key[1], key[0]))
        report.results.add(entry, encode(item) if form == "json" else dump_yaml([item]))
        report.summary.count(entry.result, audit_warn=audit_warn)

    for _ in rendered(entries, take, lost):
        pass
    reports = [report for _, report in sorted(namespaced.items(), key=lambda each: each[0])]
    if cluster.results or not reports:
        reports.insert(0, cluster)
    for report in reports:
        if report is not cluster:
            yield "---\n"
        yield from report.json() if form == "json" else report.yaml()
        yield "\n"
