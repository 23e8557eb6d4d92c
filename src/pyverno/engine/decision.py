"""Allow or deny: what the results of all rules together mean for the request.

Evaluation and action are separate: rules only give pass, fail, error or skip; here Audit, Enforce and failurePolicy
are judged, once, last, and for every front door alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from pyverno.engine.faults import fault_of
from pyverno.engine.request import Request
from pyverno.engine.result import (
    MAX_MESSAGE,
    CelDetail,
    FailureAction,
    Fault,
    ResourceRef,
    RuleResult,
    RuleType,
    Status,
)
from pyverno.engine.rule import Family
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass

__all__ = ["Decision", "decide", "denial_message"]

_BAD = (Status.FAIL, Status.ERROR)
_QUIET = (Status.PASS, Status.SKIP)
_MAX_BLOCK: Final = 4 * MAX_MESSAGE
"""Characters of all texts in the block of a denial, eight times what a response shows of it."""

_CHECKS = (RuleType.VALIDATION, RuleType.IMAGE_VERIFY)
_CEL = (Family.CEL, Family.IMAGES)
_BEFORE_ADMISSION = (RuleType.MUTATION, RuleType.IMAGE_VERIFY)


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to an admission request.

    `message` is the text of a denial, word for word what a cluster shows behind the webhook's name. `warnings` go to
    the user of an allowed request. `patch` is the RFC 6902 patch from the object of the request to the object after all
    rules. `fault` is the bug that prevented the message or the patch.
    """

    allowed: bool
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: tuple[JSONObject, ...] = ()
    fault: Fault | None = None


_UNCHANGED: Final = Decision(allowed=True)


def decide(request: Request, resource: JSON, results: Iterable[RuleResult]) -> Decision:
    """Judge the results of a review; whatever goes wrong with it, what should be denied is denied."""
    results = tuple(results)
    try:
        return _judge(request, resource, results)
    except Exception as error:
        return _unworded(request, resource, results, fault_of(error))


def _unworded(request: Request, resource: JSON, results: Iterable[RuleResult], fault: Fault) -> Decision:
    """Return the answer that needs neither text nor patch: as strict as the results, and without half a change.

    An object that rules changed is refused when one of them fails closed, because its patch cannot be sent.
    """
    is_changed = resource is not None and resource is not request.object
    refusing = [
        result
        for result in results
        if (result.status in _BAD and (result.action is FailureAction.ENFORCE or result.rule.type in _BEFORE_ADMISSION))
        or (is_changed and result.patched is not None)
    ]
    denies = any(result.status is Status.FAIL or result.rule.policy.failure_policy == "Fail" for result in refusing)
    names = ", ".join(dict.fromkeys(f"{result.rule.policy.key}/{result.rule.name}" for result in refusing))
    text = f"internal error: the answer of these rules cannot be given ({fault.code}): {names}"
    return Decision(allowed=not denies, message=text if denies else "", fault=fault)


def _judge(request: Request, resource: JSON, results: Iterable[RuleResult]) -> Decision:
    # results that passed do not matter here, and most did
    spoken = [result for result in results if result.status not in _QUIET or result.rule.policy.emit_warning]
    if not spoken and (resource is None or resource is request.object):
        return _UNCHANGED
    results = _in_order(spoken)
    if any(_blocks(result) for result in results):
        message = denial_message(request, results)
        return Decision(allowed=False, message=message, warnings=tuple(_cel_warnings(results)))
    patch: tuple[JSONObject, ...] = ()
    if resource is not None and resource is not request.object:
        # imported here and below, because most reviews change nothing and deny nothing
        from pyverno.kube.patch.jsondiff import create_patch

        patch = tuple(create_patch(request.object, resource))
    return Decision(allowed=True, warnings=(*_warnings(results), *_cel_warnings(results)), patch=patch)


def _in_order(results: Iterable[RuleResult]) -> tuple[RuleResult, ...]:
    """Return results with the validations of each family by policy: a fast tier answers before rules without one."""
    groups = groupby(results, lambda result: (result.rule.policy.family, result.rule.type is RuleType.VALIDATION))
    return tuple(
        result
        for (_, validates), group in groups
        for result in (sorted(group, key=_policy_order) if validates else group)
    )


def _policy_order(result: RuleResult) -> tuple[str, str]:
    return result.rule.policy.name, result.rule.policy.namespace


def denial_message(request: Request, results: Iterable[RuleResult]) -> str:
    """Return the text of a denial, as the first admission webhook or policy to deny the request would word it.

    A failed mutation ends a request before anything is validated. Denials of ValidatingAdmissionPolicies, of rules and
    of CEL policies are listed together: a cluster evaluates them in parallel and shows one of them.
    """
    results = tuple(results)
    mutations = _admission_mutation_error(results) or _mutation_errors(request, results)
    if mutations:
        return mutations
    denials = (_admission_denial(results), _block(request, results), _cel_denials(results))
    return "\n".join(text for text in denials if text)


def _block(request: Request, results: Iterable[RuleResult]) -> str:
    """Return the text about rules: every rule that neither passed nor was skipped, by policy.

    Kyverno: pkg/utils/engine/response - the text begins with two line ends and names KIND/NAMESPACE/NAME.
    """
    failures: dict[str, dict[str, str]] = {}
    is_blocked, room = False, _MAX_BLOCK
    for result in results:
        if result.status not in _BAD or not _is_in_block(result):
            continue
        blocks = _blocks(result)
        is_blocked = is_blocked or blocks
        if result.rule.can_deny or blocks:
            message = result.message if len(result.message) <= room else f"{result.message[:room]}..."
            failures.setdefault(result.rule.policy.name, {})[result.rule.name] = message
            room = max(room - len(message), 0)
    if not is_blocked:
        return ""
    from pyverno.kube.yaml.writer import dump_yaml

    ref = ResourceRef.of(request.subject)
    kind = request.gvk.kind or ref.kind
    # in a request of the API server a Namespace is in itself; as an object it is in none
    namespace = "" if kind == "Namespace" else ref.namespace or request.namespace
    where = f"{kind}/{namespace}/{ref.name or request.name}"
    return f"\n\nresource {where} was blocked due to the following policies \n\n{dump_yaml(failures)}"


def _admission_mutation_error(results: Iterable[RuleResult]) -> str:
    """Return the text about the first MutatingAdmissionPolicy that failed.

    Kubernetes: the name is quoted in another way when there is no binding to name.
    """
    for result in results:
        if _is_admission(result) and result.rule.type is RuleType.MUTATION and _blocks(result):
            name, detail = result.rule.policy.name, result.detail
            binding = detail.binding if isinstance(detail, CelDetail) else ""
            who = f"'{name}' with binding '{binding}'" if binding else f'"{name}"'
            return f"policy {who} denied request: {result.message}"
    return ""


def _mutation_errors(request: Request, results: Iterable[RuleResult]) -> str:
    """Return the text about mutations in CEL that failed, in the words of MutatingPolicy."""
    failed = [
        result for result in results if _is_cel(result) and result.rule.type is RuleType.MUTATION and _blocks(result)
    ]
    if not failed:
        return ""
    ref = ResourceRef.of(request.subject)
    where = f"{ref.namespace or request.namespace}/{ref.name or request.name}"
    messages = " ".join(f"Policy {result.rule.policy.name}: {result.message}" for result in failed)
    return f"Resource: {where}, Kind: {request.gvk.kind or ref.kind}, Errors: [{messages}]"


def _admission_denial(results: Iterable[RuleResult]) -> str:
    """Kubernetes: only the first of several denials is reported."""
    return next(
        (
            f"{_format_policy(result)} denied request: {result.message}"
            for result in _admission(results)
            if _blocks(result)
        ),
        "",
    )


def _admission(results: Iterable[RuleResult]) -> Iterator[RuleResult]:
    return (result for result in results if result.status in _BAD and _is_admission_check(result))


def _format_policy(result: RuleResult) -> str:
    policy = result.rule.policy
    name = f"{policy.kind} '{policy.name}'"
    binding = result.detail.binding if isinstance(result.detail, CelDetail) else ""
    return f"{name} with binding '{binding}'" if binding else name


def _cel_denials(results: Iterable[RuleResult]) -> str:
    return "; ".join(_format_cel_result(result) for result in results if _is_cel_check(result) and _blocks(result))


def _is_cel_check(result: RuleResult) -> bool:
    return result.status in _BAD and _is_cel(result) and result.rule.type in _CHECKS


def _format_cel_result(result: RuleResult) -> str:
    verb = "failed" if result.status is Status.FAIL else "error"
    return f"Policy {result.rule.policy.name} {verb}: {result.message}"


def _cel_warnings(results: Iterable[RuleResult]) -> Iterator[str]:
    """Yield the warnings of the action Warn; they are also part of a response that denies."""
    for result in results:
        if _is_cel_check(result) and result.rule.policy.emit_warning:
            yield _format_cel_result(result)
    for result in _admission(results):
        if isinstance(result.detail, CelDetail) and "Warn" in result.detail.actions:
            yield f"Validation failed for {_format_policy(result)}: {result.message}"


def _is_cel(result: RuleResult) -> bool:
    return result.rule.policy.family in _CEL


def _is_admission(result: RuleResult) -> bool:
    return result.rule.policy.family is Family.ADMISSION


def _is_admission_check(result: RuleResult) -> bool:
    return _is_admission(result) and result.rule.type is RuleType.VALIDATION


def _is_in_block(result: RuleResult) -> bool:
    """Return whether a denial lists the result in the block of rules, and not in a sentence of its policy kind."""
    words_itself = _is_cel(result) or _is_admission(result)
    return not words_itself or result.rule.type not in (*_CHECKS, RuleType.MUTATION)


def _blocks(result: RuleResult) -> bool:
    if _is_admission_check(result) and isinstance(result.detail, CelDetail):
        return result.status in _BAD and "Deny" in result.detail.actions
    if result.status is Status.FAIL:
        return result.action is FailureAction.ENFORCE
    return result.status is Status.ERROR and _is_enforced(result)


def _is_enforced(result: RuleResult) -> bool:
    """Return whether an error of this rule counts against the request."""
    if result.rule.policy.failure_policy != "Fail":
        return False
    # rules that change objects or check images run before an object is admitted, whatever their failure action
    return result.action is FailureAction.ENFORCE or result.rule.type in _BEFORE_ADMISSION


def _warnings(results: Iterable[RuleResult]) -> Iterable[str]:
    for result in results:
        policy = result.rule.policy
        if not policy.emit_warning or not _is_in_block(result):
            continue
        if result.status in (Status.FAIL, Status.ERROR, Status.WARN) or (
            result.rule.type is RuleType.MUTATION and result.status is not Status.SKIP
        ):
            yield f"policy {policy.name}.{result.rule.name}: {result.message}"
