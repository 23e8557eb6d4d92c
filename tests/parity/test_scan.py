"""The report of a background scan and `pyverno apply --policy-report` hold the same results for equal objects."""

from __future__ import annotations

import pytest

from pyverno.controllers.reports.evaluation import Evaluator, ReportFilter, ScanContext
from pyverno.controllers.reports.plan import make_plan
from pyverno.engine.host import Host
from pyverno.engine.match import IndexKey
from pyverno.engine.request import DEFAULT_SETTINGS
from pyverno.engine.result import RuleResult, Status
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.resource import Resource
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.report.policyreport import plain_result
from tests.cases.case import Case, all_cases
from tests.parity.doors import blind_spot, judged_by_apply

CASES = [
    pytest.param(case, id=case.name)
    for case in all_cases()
    if not blind_spot("live-scan", case)
    and not blind_spot("apply", case)
    and not any((case.has(name)) for name in ("values.yaml", "crds.yaml"))
]


def scan(case: Case, body: JSONObject, host: Host) -> list[JSONObject]:
    """Return the results that a scan reports for an object."""
    view = Resource(body)
    info = KNOWN_KINDS.find(view.gvk)
    gvr = GVR(view.group, view.version, "unknown") if info is None else info.gvr
    namespace: JSONObject | None = None
    if view.namespace:
        # a cluster has the namespaces of its objects, with the label that names them
        labels = {"kubernetes.io/metadata.name": view.namespace}
        metadata = {"name": view.namespace, "labels": labels}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    plan = make_plan(case.compilation.policies, case.compilation.exceptions, KNOWN_KINDS)
    key = IndexKey(view.gvk, "", "CREATE", view.namespace, background=True, gvr=gvr)
    context = ScanContext(plan, key, gvr, namespace, DEFAULT_SETTINGS)
    return Evaluator(ReportFilter()).evaluate(body, context, host).items(0)


def is_shown(result: RuleResult) -> bool:
    """Return whether reports of a cluster show a result: not what match conditions of a ValidatingPolicy left out."""
    is_left_out = result.status is Status.SKIP and not result.exceptions
    return not (is_left_out and result.rule.policy.kind.endswith("ValidatingPolicy"))


@pytest.mark.parametrize("case", CASES)
def test_a_scan_reports_what_apply_reports(case: Case) -> None:
    """Result by result, with message, severity, category and properties."""
    for judged in judged_by_apply(case):
        expected = [plain_result(result, 0) for result in judged.results if is_shown(result)]
        actual = scan(case, judged.manifest, case.host)
        assert sorted(map(repr, expected)) == sorted(map(repr, actual))


def test_many_cases_are_compared() -> None:
    """Most cases about objects are not left out."""
    assert len(CASES) >= 40
