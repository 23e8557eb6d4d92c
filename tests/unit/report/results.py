"""Rule results that the tests of reports share."""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.engine.result import FailureAction, ResourceRef, RuleResult, RuleType, Status
from pyverno.engine.rule import Family, PolicyInfo, RuleInfo
from pyverno.errors import Location

POD = ResourceRef("v1", "Pod", "shop", "a")


def result(
    status: Status = Status.FAIL,
    *,
    policy: str = "p",
    namespace: str = "",
    rule: str = "r",
    type: RuleType = RuleType.VALIDATION,
    annotations: Mapping[str, str] | None = None,
    background: bool = True,
    action: FailureAction = FailureAction.AUDIT,
    message: str = "m",
    kind: str = "",
    **more: object,
) -> RuleResult:
    """One result."""
    info = PolicyInfo(
        kind=kind or ("Policy" if namespace else "ClusterPolicy"),
        api_version="kyverno.io/v1",
        name=policy,
        family=Family.RULES,
        namespace=namespace,
        annotations=annotations or {},
        background=background,
    )
    rule_info = RuleInfo(policy=info, name=rule, type=type, location=Location("policy.yaml", 7, 5))
    return RuleResult(rule=rule_info, action=action, status=status, message=message, **more)  # type: ignore[arg-type]
