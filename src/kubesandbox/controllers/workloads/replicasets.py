"""ReplicaSets: keep `replicas` pods of one template running."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kubesandbox.controllers.conditions import condition, find_condition, set_condition, without_condition
from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.objects import at, is_deleting, labels_of, name_of, number_at
from kubesandbox.controllers.pods import (
    available_in,
    conditions_of,
    deletion_order,
    is_active,
    is_available,
    is_ready,
    pod_from,
)
from kubesandbox.controllers.workloads.rollout import replicas_of
from kubesandbox.storage.store import Key
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["ReplicaSets", "replica_set_status"]

SETS = "replicasets.apps"


class ReplicaSets:
    """Keeps the number of pods of ReplicaSets."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """The sets and their pods."""
        return {SETS: itself, "pods": self._context.owner(SETS, "ReplicaSet")}

    async def reconcile(self, key: Key) -> float | None:
        """Create or delete pods and update the status."""
        context = self._context
        body = context.client.get(SETS, key.name, key.namespace)
        if body is None:
            return None
        pods = [pod for pod in await context.claimed("pods", body, may_adopt=is_active) if is_active(pod)]
        problem: StatusError | None = None
        if not is_deleting(body) and len(pods) != replicas_of(body):
            try:
                await self._scale(body, pods)
            except StatusError as error:
                problem = error
            body = context.client.get(SETS, key.name, key.namespace)
            if body is None:
                return None
            pods = [pod for pod in await context.claimed("pods", body, may_adopt=is_active) if is_active(pod)]
        now = context.clock.now()
        await context.put_status(SETS, body, replica_set_status(body, pods, now, problem))
        if problem is not None:
            raise problem
        least = number_at(body, "spec", "minReadySeconds")
        waits = [available_in(pod, least, now) for pod in pods if is_ready(pod)]
        return min((wait for wait in waits if wait > 0), default=None)

    async def _scale(self, body: JSONObject, pods: Sequence[JSONObject]) -> None:
        excess = len(pods) - replicas_of(body)
        if excess > 0:
            doomed = deletion_order(pods, self._context.clock.now())[:excess]
            await self._context.delete_pods(body, doomed)
        elif excess < 0:
            template = at(body, "spec", "template", default={})
            new = pod_from(template, body, generate_name=f"{name_of(body)}-")
            await self._context.create_pods(body, [new] * -excess)


def replica_set_status(
    body: JSONObject, pods: Sequence[JSONObject], now: datetime, problem: StatusError | None = None
) -> JSONObject:
    """Return the status of a set whose active pods are given; `problem` is why pods could not be made or deleted."""
    least = number_at(body, "spec", "minReadySeconds")
    template = labels_of(at(body, "spec", "template", default={})).items()
    counts = {
        "fullyLabeledReplicas": sum(template <= labels_of(pod).items() for pod in pods),
        "readyReplicas": sum(map(is_ready, pods)),
        "availableReplicas": sum(is_available(pod, least, now) for pod in pods),
        "observedGeneration": number_at(body, "metadata", "generation"),
    }
    status: JSONObject = {"replicas": len(pods), **{field: count for field, count in counts.items() if count}}
    conditions = conditions_of(body)
    if problem is None:
        conditions = without_condition(conditions, "ReplicaFailure")
    else:
        reason = "FailedCreate" if len(pods) < replicas_of(body) else "FailedDelete"
        if (find_condition(conditions, "ReplicaFailure") or {}).get("reason") != reason:
            # the first text stays: names of pods differ from try to try, and each write would be a reason to try again
            failure = condition("ReplicaFailure", "True", now, reason=reason, message=str(problem))
            conditions = set_condition(conditions, failure)
    return {**status, "conditions": conditions} if conditions else status
