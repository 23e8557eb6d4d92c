"""StatefulSets: pods with fixed names, made in order, each with its own claims.

What comes next is worked out in `statefulpods`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kubesandbox.controllers.context import ControllerContext, is_namespace_ending
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.objects import (
    at,
    is_deleting,
    name_of,
    namespace_of,
    number_at,
    owner_reference,
    owners_of,
    uid_of,
)
from kubesandbox.controllers.pods import available_in, is_available, is_ready, is_terminal
from kubesandbox.controllers.workloads.revision import drop_history, keep_revisions
from kubesandbox.controllers.workloads.rollout import replicas_of
from kubesandbox.controllers.workloads.statefulpods import (
    claims_of,
    needs_current,
    next_step,
    ordinal_of,
    pod_of,
    revision_label,
)
from kubesandbox.storage.store import Key
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["StatefulSets"]

SETS = "statefulsets.apps"
CLAIMS = "persistentvolumeclaims"


class StatefulSets:
    """Keeps the pods of StatefulSets."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """The sets and their pods."""
        return {SETS: itself, "pods": self._context.owner(SETS, "StatefulSet")}

    async def reconcile(self, key: Key) -> float | None:
        """Take one step and update the status."""
        context = self._context
        body = context.client.get(SETS, key.name, key.namespace)
        if body is None or is_deleting(body):
            return None
        revisions = await keep_revisions(context, body, hash_label="controller.kubernetes.io/hash")
        newest = revisions[-1]
        current_name = at(body, "status", "currentRevision") or name_of(newest)
        current = next((item for item in revisions if name_of(item) == current_name), newest)
        pods = await self._pods(body)
        step = next_step(body, pods, name_of(newest), context.clock.now())
        try:
            for ordinal in step.create:
                await self._make(body, ordinal, current if needs_current(body, ordinal) else newest)
            for pod in step.delete:
                await self._remove(body, pod)
        finally:
            now = context.clock.now()
            pods = await self._pods(body)
            body = context.client.get(SETS, key.name, key.namespace) or body
            status = stateful_status(body, pods, current=name_of(current), newest=name_of(newest), now=now)
            await context.put_status(SETS, body, status)
        live = {status["currentRevision"], status["updateRevision"], *map(revision_label, pods)}
        await drop_history(context, body, revisions, live)
        least = number_at(body, "spec", "minReadySeconds")
        waits = [available_in(pod, least, now) for pod in pods if is_ready(pod)]
        return min((wait for wait in waits if wait > 0), default=None)

    async def _pods(self, body: JSONObject) -> list[JSONObject]:
        def is_member(pod: JSONObject) -> bool:
            return ordinal_of(body, pod) >= 0

        return [pod for pod in await self._context.claimed("pods", body, may_adopt=is_member) if is_member(pod)]

    async def _make(self, body: JSONObject, ordinal: int, revision: JSONObject) -> None:
        context, pod = self._context, pod_of(body, ordinal, revision)
        subject = f"Pod {name_of(pod)} in StatefulSet {name_of(body)}"
        for claim in claims_of(body, ordinal):
            if context.client.get(CLAIMS, name_of(claim), namespace_of(claim)) is None:
                await self._create(body, CLAIMS, claim, f"Claim {name_of(claim)} {subject}", "success")
        await self._create(body, "pods", pod, subject, "successful")

    async def _create(self, body: JSONObject, resource: str, wanted: JSONObject, subject: str, well: str) -> None:
        events = self._context.events
        try:
            await self._context.client.create(resource, wanted)
        except StatusError as error:
            if is_namespace_ending(error):
                return
            events.warning(body, "FailedCreate", f"create {subject} failed error: {error}")
            raise
        events.normal(body, "SuccessfulCreate", f"create {subject} {well}")

    async def _remove(self, body: JSONObject, pod: JSONObject) -> None:
        context = self._context
        last = at(body, "spec", "ordinals", "start", default=0) + replicas_of(body)
        policy = at(body, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled", default="Retain")
        if policy == "Delete" and ordinal_of(body, pod) >= last:
            await self._give_claims_to(body, pod)
        subject = f"Pod {name_of(pod)} in StatefulSet {name_of(body)}"
        try:
            await context.client.delete("pods", name_of(pod), namespace_of(pod), uid=uid_of(pod))
        except StatusError as error:
            if error.reason == "NotFound":
                return
            context.events.warning(body, "FailedDelete", f"delete {subject} failed error: {error}")
            raise
        reason = "RecreatingTerminatedPod" if is_terminal(pod) else "SuccessfulDelete"
        text = f"StatefulSet {namespace_of(body)}/{name_of(body)} is recreating terminated Pod {name_of(pod)}"
        context.events.normal(body, reason, text if is_terminal(pod) else f"delete {subject} successful")

    async def _give_claims_to(self, body: JSONObject, pod: JSONObject) -> None:
        """Let the claims of a pod that is scaled away go with it."""
        client = self._context.client
        for claim in claims_of(body, ordinal_of(body, pod)):
            found = client.get(CLAIMS, name_of(claim), namespace_of(claim))
            if found is not None and all(owner.get("uid") != uid_of(pod) for owner in owners_of(found)):
                owners = [owner_reference(pod, is_controller=False)]
                patch = {"metadata": {"ownerReferences": owners}}
                await client.patch(CLAIMS, name_of(claim), namespace_of(claim), patch)


def stateful_status(
    body: JSONObject, pods: Sequence[JSONObject], *, current: str, newest: str, now: datetime
) -> JSONObject:
    """Return the status of a set with these pods; `current` and `newest` are names of revisions."""
    live = [pod for pod in pods if not is_deleting(pod) and not is_terminal(pod)]
    least = number_at(body, "spec", "minReadySeconds")
    updated = sum(revision_label(pod) == newest for pod in live)
    ready = sum(map(is_ready, pods))
    older = sum(revision_label(pod) == current for pod in live)
    kind = at(body, "spec", "updateStrategy", "type", default="RollingUpdate")
    if kind == "RollingUpdate" and updated == len(pods) == replicas_of(body) and ready == len(pods):
        current, older = newest, updated
    counts = {
        "observedGeneration": number_at(body, "metadata", "generation"),
        "readyReplicas": ready,
        "currentReplicas": older,
        "updatedReplicas": updated,
    }
    status: JSONObject = {"replicas": len(pods), **{field: count for field, count in counts.items() if count}}
    status["availableReplicas"] = sum(is_available(pod, least, now) for pod in live)
    status |= {"currentRevision": current, "updateRevision": newest}
    status["collisionCount"] = number_at(body, "status", "collisionCount")
    return status
