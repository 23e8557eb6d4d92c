"""The decision that the results of all rules lead to, and the message format of each policy kind."""

from __future__ import annotations

import pytest

from pyverno.engine.decision import decide
from pyverno.engine.request import Request
from pyverno.engine.result import CelDetail, FailureAction, RuleResult, RuleType, Status
from pyverno.engine.rule import Family, PolicyInfo, RuleInfo
from pyverno.errors import NOWHERE
from pyverno.value import replace

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}}
REQUEST = Request.from_manifest(POD)


def family(kind: str) -> Family:
    """The family that the compiler gives to policies of a kind."""
    if "AdmissionPolicy" in kind:
        return Family.ADMISSION
    if kind.endswith("ImageValidatingPolicy"):
        return Family.IMAGES
    return Family.RULES if kind in ("ClusterPolicy", "Policy") else Family.CEL


def result(
    status: Status,
    *,
    kind: str = "ClusterPolicy",
    name: str = "p",
    rule: str = "r",
    enforce: bool = True,
    rule_type: RuleType = RuleType.VALIDATION,
    detail: CelDetail | None = None,
    failure_policy: str = "Fail",
    warns: bool = False,
) -> RuleResult:
    """One result of a policy of some kind."""
    policy = PolicyInfo(kind, "v1", name, family(kind), failure_policy=failure_policy, emit_warning=warns)
    info = RuleInfo(policy, rule, rule_type, NOWHERE, can_deny=enforce)
    action = FailureAction.ENFORCE if enforce else FailureAction.AUDIT
    return RuleResult(info, action, status, "because", detail)


def bound(*actions: str) -> CelDetail:
    """Detail of a ValidatingAdmissionPolicy result for the binding `b`."""
    return CelDetail(0, "b", actions)


BLOCK = "\n\nresource Pod/shop/a was blocked due to the following policies \n\np:\n  r: because\n"
DENIED = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: because"


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([result(Status.FAIL)], BLOCK),
        ([result(Status.ERROR)], BLOCK),
        ([result(Status.FAIL, kind="ValidatingPolicy")], "Policy p failed: because"),
        (
            [
                result(Status.FAIL, kind="ValidatingPolicy"),
                result(Status.ERROR, kind="NamespacedValidatingPolicy", name="q"),
            ],
            "Policy p failed: because; Policy q error: because",
        ),
        ([result(Status.FAIL, kind="ValidatingAdmissionPolicy", detail=bound("Audit", "Deny"))], DENIED),
        (
            [
                result(Status.FAIL, kind="ValidatingAdmissionPolicy", detail=bound("Deny")),
                result(Status.FAIL, kind="ValidatingAdmissionPolicy", name="q", detail=bound("Deny")),
            ],
            DENIED,
        ),
        (
            [result(Status.FAIL, kind="ValidatingAdmissionPolicy", detail=CelDetail(0, "", ("Deny",)))],
            "ValidatingAdmissionPolicy 'p' denied request: because",
        ),
        (
            [
                result(Status.ERROR, kind="MutatingPolicy", enforce=False, rule_type=RuleType.MUTATION),
                result(Status.ERROR, kind="MutatingPolicy", name="q", enforce=False, rule_type=RuleType.MUTATION),
                result(Status.FAIL),
            ],
            "Resource: shop/a, Kind: Pod, Errors: [Policy p: because Policy q: because]",
        ),
        (
            [
                result(Status.ERROR, kind="MutatingAdmissionPolicy", rule_type=RuleType.MUTATION, detail=bound("Deny")),
                result(Status.FAIL),
            ],
            "policy 'p' with binding 'b' denied request: because",
        ),
        (
            [result(Status.ERROR, kind="MutatingAdmissionPolicy", rule_type=RuleType.MUTATION)],
            'policy "p" denied request: because',
        ),
        (
            [result(Status.FAIL), result(Status.FAIL, kind="ValidatingPolicy", name="q")],
            f"{BLOCK}\nPolicy q failed: because",
        ),
    ],
)
def test_each_kind_denies_in_its_own_words(results: list[RuleResult], message: str) -> None:
    """The texts are those that a cluster shows."""
    decision = decide(REQUEST, POD, results)
    assert (False, message) == (decision.allowed, decision.message)


@pytest.mark.parametrize(
    "result_",
    [
        result(Status.FAIL, enforce=False),
        result(Status.FAIL, kind="ValidatingPolicy", enforce=False),
        result(Status.FAIL, kind="ValidatingAdmissionPolicy", detail=bound("Audit")),
        result(Status.ERROR, kind="ValidatingAdmissionPolicy", detail=bound("Warn")),
        result(Status.ERROR, enforce=False),
        result(Status.ERROR, failure_policy="Ignore"),
        result(Status.SKIP),
        result(Status.PASS),
    ],
)
def test_what_is_not_enforced_lets_a_request_pass(result_: RuleResult) -> None:
    """Also the denial of a binding that only audits or warns, next to the rule's own failure action."""
    assert decide(REQUEST, POD, [result_]).allowed


@pytest.mark.parametrize(
    ("result_", "warnings"),
    [
        (result(Status.FAIL, enforce=False, warns=True), ("policy p.r: because",)),
        (result(Status.FAIL, enforce=False), ()),
        (result(Status.FAIL, kind="ValidatingPolicy", enforce=False, warns=True), ("Policy p failed: because",)),
        (result(Status.ERROR, kind="ValidatingPolicy", warns=True), ("Policy p error: because",)),
        (
            result(Status.FAIL, kind="ValidatingAdmissionPolicy", detail=bound("Warn", "Audit")),
            ("Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': because",),
        ),
        (result(Status.FAIL, kind="ValidatingAdmissionPolicy", detail=bound("Audit")), ()),
    ],
)
def test_warnings_are_reported_also_next_to_a_denial(result_: RuleResult, warnings: tuple[str, ...]) -> None:
    """The action Warn of the CEL kinds, `emitWarning` of rules (only when the request is allowed)."""
    assert warnings == decide(REQUEST, POD, [result_]).warnings


def test_the_patch_leads_from_the_object_that_came_to_the_one_that_left() -> None:
    """RFC 6902; none when nothing was changed."""
    changed = {**POD, "spec": {}}
    assert ({"op": "add", "path": "/spec", "value": {}},) == decide(REQUEST, changed, []).patch
    assert () == decide(REQUEST, REQUEST.object, []).patch


def test_a_denial_is_worded_alike_in_whatever_order_the_rules_ran() -> None:
    """Policies with a fast tier answer first, and a plan has the fast tiers that are compiled by then."""
    failed = [result(Status.FAIL, kind="ValidatingPolicy", name=name, warns=True) for name in "abc"]
    decisions = [decide(REQUEST, POD, order) for order in (failed, failed[::-1])]
    assert "Policy a failed: because; Policy b failed: because; Policy c failed: because" == decisions[0].message
    assert decisions[0] == decisions[1]


def test_a_denied_namespace_lives_in_no_namespace() -> None:
    """The API server puts the name of a Namespace into the request as its namespace too."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    request = replace(Request.from_manifest(body), namespace="shop")
    denied = decide(request, body, [result(Status.FAIL)])
    assert "\n\nresource Namespace//shop was blocked" == denied.message.partition(" due")[0]
