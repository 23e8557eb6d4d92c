"""Allow or deny: what the results of all rules together mean for the request.

Evaluation and action are two things: rules only say pass, fail, error or skip; here Audit, Enforce and failurePolicy
are judged, once, last, and for every front door alike. This module must never evaluate a rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyverno.engine.request import Request
from pyverno.engine.result import FailureAction, ResourceRef, RuleResult, RuleType, Status
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.jsonpatch import create_patch
from pyverno.kube.yamlwriter import dump_yaml

__all__ = ["Decision", "decide", "denial_message"]

_BAD = (Status.FAIL, Status.ERROR)
_BEFORE_ADMISSION = (RuleType.MUTATION, RuleType.IMAGE_VERIFY)


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to an admission request.

    `message` is the text of a denial, word for word what a cluster shows behind the webhook's name. `warnings` go to
    the user of an allowed request. `patch` is the RFC 6902 patch from the object that came to the object as it left.
    """

    allowed: bool
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: tuple[JSONObject, ...] = ()


def decide(request: Request, resource: JSON, results: Iterable[RuleResult]) -> Decision:
    """Judge the results of a review."""
    results = tuple(results)
    if any(_blocks(result) for result in results):
        return Decision(allowed=False, message=denial_message(request, results))
    patch: tuple[JSONObject, ...] = ()
    if resource is not None and resource is not request.object:
        patch = tuple(create_patch(request.object, resource))
    return Decision(allowed=True, warnings=tuple(_warnings(results)), patch=patch)


def denial_message(request: Request, results: Iterable[RuleResult]) -> str:
    """Return the text of a denial: every rule that neither passed nor was skipped, by policy.

    Kyverno: pkg/utils/engine/response - the text begins with two line ends and names KIND/NAMESPACE/NAME.
    """
    ref = ResourceRef.of(request.subject)
    failures: dict[str, dict[str, str]] = {}
    for result in results:
        if result.status in _BAD and (result.rule.can_deny or _blocks(result)):
            failures.setdefault(result.rule.policy.name, {})[result.rule.name] = result.message
    kind = request.gvk.kind or ref.kind
    where = f"{kind}/{ref.namespace or request.namespace}/{ref.name or request.name}"
    return f"\n\nresource {where} was blocked due to the following policies \n\n{dump_yaml(failures)}"


def _blocks(result: RuleResult) -> bool:
    if result.status is Status.FAIL:
        return result.action is FailureAction.ENFORCE
    return result.status is Status.ERROR and _is_enforced(result)


def _is_enforced(result: RuleResult) -> bool:
    """Tell whether an error of this rule counts against the request."""
    if result.rule.policy.failure_policy != "Fail":
        return False
    # rules that change objects or check images run before an object is admitted, whatever their failure action
    return result.action is FailureAction.ENFORCE or result.rule.type in _BEFORE_ADMISSION


def _warnings(results: Iterable[RuleResult]) -> Iterable[str]:
    for result in results:
        policy = result.rule.policy
        if not policy.emit_warning:
            continue
        if result.status in (Status.FAIL, Status.ERROR, Status.WARN) or (
            result.rule.type is RuleType.MUTATION and result.status is not Status.SKIP
        ):
            yield f"policy {policy.name}.{result.rule.name}: {result.message}"
