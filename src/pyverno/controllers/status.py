"""What policies say of themselves in `status`: whether they are ready, and how many rules they have.

Written by the leader after the webhooks are in place, by merge patch of the status subresource, and only when it
differs. This module must never change a spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pyverno.compiler.autogen import expand, is_autogen_name
from pyverno.compiler.compile import Compiled
from pyverno.kube.json import JSONObject
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.generate import Generate
from pyverno.policy.mutate import Mutate
from pyverno.policy.rule import Rule, VerifyImages
from pyverno.policy.validate import Validate

__all__ = ["status_of", "status_patch"]

_COUNTED: Final[Mapping[type, str]] = {
    Validate: "validate",
    Generate: "generate",
    Mutate: "mutate",
    VerifyImages: "verifyimages",
}


def status_of(compiled: Compiled, *, is_configured: bool, now: str) -> JSONObject:
    """Return the status that a policy should have; `now` is a time as Kubernetes writes it."""
    if isinstance(compiled.written, ClusterPolicy):
        return _legacy(compiled.written, not compiled.errors and is_configured, now)
    return _cel(not compiled.errors and is_configured, now)


def _legacy(policy: ClusterPolicy, is_ready: bool, now: str) -> JSONObject:
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
                "message": "Ready" if is_ready else "Not Ready",
                "lastTransitionTime": now,
            }
        ],
        "autogen": {"rules": _copies(rules)},
        "rulecount": count,
    }


def _copies(rules: Iterable[Rule]) -> list[JSONObject]:
    return [rule.raw for rule in rules if is_autogen_name(rule.name)]


def _cel(is_configured: bool, now: str) -> JSONObject:
    message = "Webhook configured." if is_configured else "Policy is not configured in the webhook."
    condition = {
        "type": "WebhookConfigured",
        "status": "True" if is_configured else "False",
        "reason": "Succeeded" if is_configured else "Failed",
        "message": message,
        "lastTransitionTime": now,
    }
    return {"conditionStatus": {"ready": is_configured, "conditions": [condition], "message": ""}}


def status_patch(found: JSONObject, wanted: JSONObject) -> JSONObject | None:
    """Return the merge patch that makes a status what it should be, None when it is; times of old transitions stay."""
    known = {each.get("type"): each for each in _conditions(found)}
    for condition in _conditions(wanted):
        before = known.get(condition["type"])
        if before is not None and before.get("status") == condition["status"]:
            condition["lastTransitionTime"] = before.get("lastTransitionTime", condition["lastTransitionTime"])
    changed = {key: value for key, value in wanted.items() if found.get(key) != value}
    return {"status": changed} if changed else None


def _conditions(status: JSONObject) -> list[JSONObject]:
    found = status.get("conditions") or (status.get("conditionStatus") or {}).get("conditions") or ()
    return [each for each in found if isinstance(each, dict)]
