"""The `status` of policies: readiness conditions and numbers of rules.

The leader writes it after the webhooks, by merge patch of the status subresource, and only when it differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pyverno.compiler.autogen.cel import copies_of
from pyverno.compiler.autogen.patterns import expand, is_autogen_name
from pyverno.compiler.compile import Compiled
from pyverno.controllers.state.permissions import is_scanned
from pyverno.kube.json import JSONObject
from pyverno.policy.cel.imagepolicy import ImageValidatingPolicy
from pyverno.policy.cel.policies import CelPolicy, GeneratingPolicy, MutatingPolicy, ValidatingPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.generate import Generate
from pyverno.policy.mutate import Mutate
from pyverno.policy.rule import Rule, VerifyImages
from pyverno.policy.validate import Validate

__all__ = ["status_of"]

_COUNTED: Final[Mapping[type, str]] = {
    Validate: "validate",
    Generate: "generate",
    Mutate: "mutate",
    VerifyImages: "verifyimages",
}


def status_of(
    compiled: Compiled, *, is_configured: bool, now: str, missing: Sequence[str] = (), refusal: str = ""
) -> JSONObject:
    """Return the status that a policy should have; `now` is a time as Kubernetes writes it.

    `missing` lists the permissions that background reports for the policy lack; `refusal` is the reason why the API
    server rejects its webhook.
    """
    is_ready = not compiled.errors and is_configured and not refusal
    if is_scanned(compiled.written):
        return _cel(compiled.written, _configured(is_ready, refusal), missing, now)
    if not isinstance(compiled.written, ClusterPolicy):
        return {}
    return _legacy(compiled.written, is_ready, refusal, now, missing)


def _legacy(policy: ClusterPolicy, is_ready: bool, refusal: str, now: str, missing: Sequence[str]) -> JSONObject:
    # Kyverno: the only condition concerns the webhook; that objects cannot be scanned is no reason not to be ready
    ready = f"Ready, but not for reporting, missing permissions: {'; '.join(missing)}." if missing else "Ready"
    rules = expand(policy)
    count = dict.fromkeys(_COUNTED.values(), 0)
    for rule in policy.spec.rules:
        count[_COUNTED[type(rule.action)]] += 1
    return {
        "conditions": [
            {
                "type": "Ready",
                "status": "True" if is_ready else "False",
                "reason": "Succeeded" if is_ready else "Failed",
                "message": ready if is_ready else _add_refusal("Not Ready", refusal),
                "lastTransitionTime": now,
            }
        ],
        "autogen": {"rules": _copies(rules)},
        "rulecount": count,
        "validatingadmissionpolicy": {"generated": False, "message": ""},
    }


def _copies(rules: Iterable[Rule]) -> list[JSONObject]:
    return [rule.raw for rule in rules if is_autogen_name(rule.name)]


def _cel(policy: CelPolicy, configured: JSONObject, missing: Sequence[str], now: str) -> JSONObject:
    evaluation = policy.spec.evaluation
    is_scanned = isinstance(policy, GeneratingPolicy) or evaluation.background
    readable = _readable(missing)
    conditions = [readable]
    if evaluation.admission or not (isinstance(policy, MutatingPolicy) or evaluation.background):
        conditions.insert(0, configured)
    for condition in conditions:
        condition["lastTransitionTime"] = now
    # without background scans no permission is needed; the condition only lists what scans would lack
    needed = conditions if is_scanned else [each for each in conditions if each is not readable]
    is_ready = all(condition["status"] == "True" for condition in needed)
    status: JSONObject = {"conditionStatus": {"ready": is_ready, "conditions": conditions, "message": ""}}
    if isinstance(policy, ValidatingPolicy | MutatingPolicy | ImageValidatingPolicy):
        status["autogen"] = _autogen(policy)
    return status


def _add_refusal(text: str, refusal: str) -> str:
    return f"{text.removesuffix('.')}: the API server refuses it: {refusal}" if refusal else text


def _configured(is_configured: bool, refusal: str) -> JSONObject:
    text = "Webhook configured." if is_configured else _add_refusal("Policy is not configured in the webhook.", refusal)
    return _condition("WebhookConfigured", is_configured, text)


def _readable(missing: Sequence[str]) -> JSONObject:
    # COMPAT: recent versions of Kyverno word it in another way where there are no background scans; the policies that
    # Kyverno publishes are tested for this text everywhere
    text = "Policy is ready for reporting."
    if missing:
        text = f"Policy is not ready for reporting, missing permissions: {'; '.join(missing)}."
    return _condition("RBACPermissionsGranted", not missing, text)


def _condition(name: str, holds: bool, message: str) -> JSONObject:
    reason = "Succeeded" if holds else "Failed"
    return {"type": name, "status": "True" if holds else "False", "reason": reason, "message": message}


def _autogen(policy: ValidatingPolicy | MutatingPolicy | ImageValidatingPolicy) -> JSONObject:
    configs = {
        config.name: {
            "targets": [
                {"group": each.group, "version": each.version, "resource": each.resource, "kind": each.kind}
                for each in config.targets
            ],
            "spec": config.policy.spec.raw,
        }
        for config in copies_of(policy)
    }
    return {"configs": configs} if configs else {}
