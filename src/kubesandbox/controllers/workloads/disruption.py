"""PodDisruptionBudgets: compute the number of pods that may be evicted now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kubesandbox.controllers.clock import seconds_since
from kubesandbox.controllers.conditions import condition, set_condition
from kubesandbox.controllers.context import ControllerContext, selector_of
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.objects import (
    at,
    controller_of,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    number_at,
)
from kubesandbox.controllers.pods import conditions_of, is_ready, is_terminal
from kubesandbox.controllers.workloads.rollout import replicas_of, scaled
from kubesandbox.local import LocalClient
from kubesandbox.storage.store import Change, Key
from pyverno.kube.json import JSONObject

__all__ = ["DisruptionBudgets", "budget_status"]

BUDGETS = "poddisruptionbudgets.policy"
EVICTION_SECONDS = 120
_SCALED = {
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
}


class DisruptionBudgets:
    """Writes the status of budgets."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Budgets and the pods that they select."""
        return {BUDGETS: itself, "pods": self._of_pod}

    def _of_pod(self, change: Change) -> Iterable[Key]:
        bodies = [change.state.body, *([change.before.body] if change.before else [])]
        return dict.fromkeys(key for body in bodies for key in self._context.selecting(BUDGETS, body))

    async def reconcile(self, key: Key) -> float | None:
        """Count the pods of one budget."""
        context = self._context
        body = context.client.get(BUDGETS, key.name, key.namespace)
        if body is None or is_deleting(body):
            return None
        selects = selector_of(body)
        pods = [
            pod
            for pod in context.client.list("pods", key.namespace)
            if selects(labels_of(pod)) and not is_terminal(pod)
        ]
        now = context.clock.now()
        status = budget_status(body, pods, expected_pods(body, pods, context.client), now)
        await context.put_status(BUDGETS, body, status)
        return float(EVICTION_SECONDS) if status.get("disruptedPods") else None


def expected_pods(body: JSONObject, pods: Sequence[JSONObject], client: LocalClient) -> int:
    """Return the expected number of pods: the existing ones, or those that their controllers want.

    Controllers are read when the budget is a percentage or has `maxUnavailable`.
    """
    least = at(body, "spec", "minAvailable")
    if isinstance(least, int):
        return len(pods)
    wanted: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod)
        resource = _SCALED.get(str(owner.get("kind"))) if owner else None
        if owner is None or resource is None:
            continue
        found = client.get(resource, str(owner["name"]), namespace_of(pod))
        if found is not None:
            wanted[str(owner["uid"])] = replicas_of(found)
    return sum(wanted.values())


def budget_status(body: JSONObject, pods: Sequence[JSONObject], expected: int, now: datetime) -> JSONObject:
    """Return the status of a budget over these pods, given their expected number."""
    least, lacking = at(body, "spec", "minAvailable"), at(body, "spec", "maxUnavailable")
    if lacking is not None:
        desired = max(expected - scaled(lacking, expected, up=True), 0)
    else:
        desired = scaled(least if least is not None else 0, expected, up=True)
    disrupted = {
        name: time
        for name, time in at(body, "status", "disruptedPods", default={}).items()
        if seconds_since(time, now) < EVICTION_SECONDS
        and any(name_of(pod) == name and not is_deleting(pod) for pod in pods)
    }
    healthy = sum(is_ready(pod) and not is_deleting(pod) and name_of(pod) not in disrupted for pod in pods)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    state = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    new = condition("DisruptionAllowed", state[0], now, reason=state[1])
    new["observedGeneration"] = number_at(body, "metadata", "generation")
    status: JSONObject = {
        "observedGeneration": number_at(body, "metadata", "generation"),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": set_condition(conditions_of(body), new),
    }
    return {**status, "disruptedPods": disrupted} if disrupted else status
