"""Warnings about policies that are valid but probably not what their authors want.

This module must not reject anything.
(Kyverno: pkg/validation/policy, pkg/webhooks)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyverno.compiler.autogen.patterns import ANNOTATION
from pyverno.compiler.validation.conditions import DEPRECATED_OPERATORS, condition_blocks, conditions_of
from pyverno.kube.json import JSON, JSONObject
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.kinds import find_kind
from pyverno.policy.mutate import Mutate
from pyverno.policy.rule import Rule, VerifyImages
from pyverno.policy.validate import Validate

if TYPE_CHECKING:
    from pyverno.policy.cleanup import CleanupPolicy
    from pyverno.policy.exception import PolicyException
    from pyverno.policy.globalcontext import GlobalContextEntry

__all__ = ["deprecation_warning", "exception_warnings", "lint"]

_ACTIONS = "Validation failure actions enforce/audit are deprecated, use Enforce/Audit instead."
_EXCLUDED_CONTROLLERS = (
    "Policies that match Pods apply to all Pods including those created and managed by controllers "
    "excluded from autogen. Use preconditions to exclude the Pods managed by controllers which are "
    "excluded from autogen. Refer to https://kyverno.io/docs/policy-types/cluster-policy/autogen/ for details."
)
_PATCHED_PODS = (
    "Pods managed by workload controllers should not be directly mutated using policies. "
    "Use the autogen feature or write policies that match Pod controllers."
)
_SCALE = "You are matching on replicas but not including the scale subresource in the policy."
_STATUS = "You are matching on status but not including the status subresource in the policy."
_ALL_CONTROLLERS = ["cronjob", "daemonset", "deployment", "job", "statefulset"]


def deprecation_warning(policy: ClusterPolicy | CleanupPolicy | PolicyException | GlobalContextEntry) -> str | None:
    """Return the advice to move to a newer kind, or None.

    Kyverno gives it at admission only; it does not concern the policy itself.
    """
    row = find_kind(policy.api_version.rpartition("/")[0], policy.kind)
    if row is None or not row.replacement:
        return None
    return (
        f"{row.kind} ({row.group}) is deprecated and will be removed in a future release; migrate to "
        f"{row.replacement} (policies.kyverno.io), see https://kyverno.io/docs/guides/migration-to-cel/"
    )


def exception_warnings(exception: PolicyException, *, enabled: bool, namespace: str) -> tuple[str, ...]:
    """Return why an exception will have no effect where it is; at most one reason.

    `namespace` is the one namespace that exceptions may live in, `*` for any and empty for none.
    """
    if not enabled:
        return ("PolicyException resources would not be processed until it is enabled.",)
    if not namespace:
        return ("The exceptionNamespace flag is not set",)
    if namespace not in ("*", exception.namespace):
        return ("PolicyException resource namespace must match the defined namespace.",)
    return ()


def lint(policy: ClusterPolicy, rules: tuple[Rule, ...]) -> tuple[str, ...]:
    """Return the warnings of a policy and its expanded rules, each text once, in upstream's order."""
    found: dict[str, None] = dict.fromkeys(_deprecated_actions(policy))
    for rule in rules:
        found.update(dict.fromkeys(_lint_rule(policy, rule)))
    return tuple(found)


def _deprecated_actions(policy: ClusterPolicy) -> Iterator[str]:
    raw = policy.spec.raw
    blocks = [(raw.get("validationFailureAction"), raw.get("validationFailureActionOverrides"))]
    for rule in policy.spec.rules:
        if isinstance(rule.action, Validate):
            written = rule.action.raw
            blocks.append((written.get("failureAction"), written.get("failureActionOverrides")))
    for action, overrides in blocks:
        words = (action, *(each.get("action") for each in overrides or ()))
        if any(word in ("enforce", "audit") for word in words):
            yield _ACTIONS


def _lint_rule(policy: ClusterPolicy, rule: Rule) -> Iterator[str]:
    action = rule.action
    flat_kinds = rule.match.flat.resources.kinds if rule.match.flat is not None else ()
    if isinstance(action, Mutate) and action.patches_json6902 and "Pod" in flat_kinds:
        yield _PATCHED_PODS
    if {_plain(kind) for kind in rule.match.kinds()} == {"Pod"} and _excludes_controllers(policy):
        yield _EXCLUDED_CONTROLLERS
    yield from _subresources(rule)
    if isinstance(action, VerifyImages):
        for image in action.entries:
            for kind in (each.predicate_type for each in image.attestations if each.predicate_type):
                yield f"predicateType has been deprecated use 'type: {kind}' instead of 'predicateType: {kind}'"
    yield from _deprecated_operators(rule)


def _plain(selector: str) -> str:
    return selector.rsplit("/", maxsplit=1)[-1].split(".", maxsplit=1)[0]


def _excludes_controllers(policy: ClusterPolicy) -> bool:
    written = policy.annotations.get(ANNOTATION)
    return written not in (None, "none") and sorted(str(written).lower().split(",")) != _ALL_CONTROLLERS


def _subresources(rule: Rule) -> Iterator[str]:
    kinds = [kind.lower() for section in (rule.match, rule.exclude) if section is not None for kind in section.kinds()]
    texts: list[JSONObject] = []
    match rule.action:
        case Validate() as validate:
            texts = [_without_conditions(validate.raw)]
        case Mutate() as mutate:
            texts = [mutate.raw]
            kinds += [target.kind.lower() for target in mutate.targets or ()]
        case VerifyImages() as images:
            checks = [image.raw.get("validate") for image in images.entries]
            texts = [_without_conditions(check) for check in checks if check]
    strings = [text for each in texts for text in _strings(each)]
    if any("replicas" in text for text, _ in strings) and not any("scale" in kind for kind in kinds):
        yield _SCALE
    has_status = any(".status" in text or (is_key and text == "status") for text, is_key in strings)
    if has_status and not any("status" in kind for kind in kinds):
        yield _STATUS


def _without_conditions(raw: JSONObject) -> JSONObject:
    return {key: value for key, value in raw.items() if key != "deny"}


def _strings(value: JSON) -> Iterator[tuple[str, bool]]:
    """Yield every string of a document, and whether it is a key; does not recurse."""
    pending: list[JSON] = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, str):
            yield current, False
        elif isinstance(current, dict):
            yield from ((key, True) for key in current)
            pending.extend(current.values())
        elif isinstance(current, list):
            pending.extend(current)


def _deprecated_operators(rule: Rule) -> Iterator[str]:
    if not isinstance(rule.action, Validate | VerifyImages):
        return
    for block, path, _ in condition_blocks(rule):
        if path == (*rule.path, "preconditions"):
            continue  # COMPAT: upstream does not look there
        for condition, _ in conditions_of(block, path):
            operator = condition.get("operator") if isinstance(condition, dict) else None
            if isinstance(operator, str) and operator in DEPRECATED_OPERATORS:
                listed = " ".join(f'"{each}"' for each in DEPRECATED_OPERATORS[operator])
                yield (
                    f"Operator {operator} has been deprecated and will be removed soon. Use these instead: [{listed}]"
                )
