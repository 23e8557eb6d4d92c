"""Deployments: one ReplicaSet per version of the template, replaced step by step or at once.

Sizes come from `rollout`, the status from `deploymentstatus`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubesandbox.controllers.conditions import find_condition
from kubesandbox.controllers.context import ControllerContext, is_namespace_ending
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.objects import (
    annotations_of,
    at,
    controller_of,
    is_deleting,
    is_owned_by,
    name_of,
    namespace_of,
    number_at,
    owner_reference,
    uid_of,
    with_metadata,
)
from kubesandbox.controllers.pods import conditions_of, is_terminal
from kubesandbox.controllers.workloads import rollout
from kubesandbox.controllers.workloads.deploymentstatus import (
    deadline_in,
    deployment_status,
    is_complete,
    with_progress,
)
from kubesandbox.controllers.workloads.revision import short_hash
from kubesandbox.controllers.workloads.rollout import DESIRED, MAX, Sizes, max_surge, replicas_of
from kubesandbox.storage.store import Change, Key
from pyverno.kube.json import JSONObject, equal
from pyverno.kube.status import StatusError

__all__ = ["REVISION", "Deployments", "find_new", "new_replica_set", "revised_annotations", "unneeded"]

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MAX,
        "deprecated.deployment.rollback.to",
    }
)
DEPLOYMENTS = "deployments.apps"
SETS = "replicasets.apps"


class Deployments:
    """Keeps the ReplicaSets of Deployments."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Deployments, their ReplicaSets, and pods, whose end a recreation waits for."""
        return {
            DEPLOYMENTS: itself,
            SETS: self._context.owner(DEPLOYMENTS, "Deployment"),
            "pods": self._of_pod,
        }

    def _of_pod(self, change: Change) -> Iterable[Key]:
        owner = controller_of(change.state.body)
        if change.kind != "DELETED" or owner is None or owner.get("kind") != "ReplicaSet":
            return ()
        replica_set = self._context.client.get(SETS, str(owner["name"]), change.state.key.namespace)
        above = controller_of(replica_set) if replica_set else None
        if above is None or above.get("kind") != "Deployment":
            return ()
        return (Key(DEPLOYMENTS, change.state.key.namespace, str(above["name"])),)

    async def reconcile(self, key: Key) -> float | None:
        """Take one step of a rollout or a scaling, and record the progress in the status."""
        context = self._context
        body = context.client.get(DEPLOYMENTS, key.name, key.namespace)
        if body is None:
            return None
        sets = await context.claimed(SETS, body)
        if is_deleting(body):
            return await self._status(body, sets, is_rollout=False)
        body = await self._mark_pause(body)
        is_rolling = rollout.is_rolling(body)
        if at(body, "spec", "paused", default=False) or (is_rolling and _was_scaled(body, sets)):
            body, sets = await self._revise(body, sets, may_create=False)
            sizes = self._scale(body, sets)
            sets = await self._resize(body, sets, sizes)
            return await self._status(body, sets, is_rollout=False)
        step = self._roll if is_rolling else self._recreate
        return await step(body, sets)

    async def _roll(self, body: JSONObject, sets: Sequence[JSONObject]) -> float | None:
        body, sets = await self._revise(body, sets, may_create=True)
        new = find_new(body, sets)
        if new is None:
            return await self._status(body, sets)
        size = rollout.new_size(body, sets, new)
        if size != replicas_of(new):
            sets = await self._resize(body, sets, {name_of(new): size})
            return await self._status(body, sets)
        old = _others(sets, new)
        sets = await self._resize(body, sets, rollout.old_sizes(body, rollout.active(old), new))
        return await self._status(body, sets)

    async def _recreate(self, body: JSONObject, sets: Sequence[JSONObject]) -> float | None:
        body, sets = await self._revise(body, sets, may_create=False)
        new = find_new(body, sets)
        old = _others(sets, new)
        if rollout.active(old):
            sets = await self._resize(body, sets, dict.fromkeys(map(name_of, old), 0))
            return await self._status(body, sets)
        if self._has_pods(old):
            return await self._status(body, sets)
        body, sets = await self._revise(body, sets, may_create=True)
        new = find_new(body, sets)
        if new is not None:
            sets = await self._resize(body, sets, {name_of(new): replicas_of(body)})
        return await self._status(body, sets)

    def _has_pods(self, sets: Iterable[JSONObject]) -> bool:
        owners = {uid_of(item): namespace_of(item) for item in sets}
        return any(
            (controller_of(pod) or {}).get("uid") in owners and not is_terminal(pod)
            for namespace in set(owners.values())
            for pod in self._context.client.list("pods", namespace)
        )

    def _scale(self, body: JSONObject, sets: Sequence[JSONObject]) -> Sizes:
        new = find_new(body, sets)
        old = _others(sets, new)
        only = rollout.active_or_latest(new, old)
        if only is not None:
            return {name_of(only): replicas_of(body)}
        if rollout.is_saturated(body, new):
            return dict.fromkeys(map(name_of, rollout.active(old)), 0)
        return rollout.proportional_sizes(body, sets) if rollout.is_rolling(body) else {}

    async def _revise(
        self, body: JSONObject, sets: Sequence[JSONObject], *, may_create: bool
    ) -> tuple[JSONObject, list[JSONObject]]:
        """Give the newest ReplicaSet its number and the annotations of the Deployment, or make it."""
        new = find_new(body, sets)
        number = max((_revision(item) for item in _others(sets, new)), default=0) + 1
        if new is None:
            if not may_create:
                return body, list(sets)
            body, new = await self._make(body, sets, number)
            if new is None:
                return body, list(sets)
            sets = [*sets, new]
        else:
            changed = with_metadata(new, annotations=revised_annotations(body, new, number))
            changed = _with_spec(changed, minReadySeconds=at(body, "spec", "minReadySeconds", default=0) or None)
            if not equal(changed, new):
                changed = await self._context.client.update(SETS, changed)
                sets, new = _replace(sets, changed), changed
        revision = annotations_of(new).get(REVISION)
        if revision is not None and annotations_of(body).get(REVISION) != revision:
            body = with_metadata(body, annotations={**annotations_of(body), REVISION: revision})
            # upstream writes it with the status, which webhooks of deployments do not see
            body = await self._context.client.update(DEPLOYMENTS, body, subresource="status")
        if at(body, "spec", "progressDeadlineSeconds") and find_condition(conditions_of(body), "Progressing") is None:
            message = f'Found new replica set "{name_of(new)}"'
            status = with_progress(body, "True", "FoundNewReplicaSet", message, self._context.clock.now())
            body = await self._context.put_status(DEPLOYMENTS, body, status)
        return body, list(sets)

    async def _make(
        self, body: JSONObject, sets: Sequence[JSONObject], number: int
    ) -> tuple[JSONObject, JSONObject | None]:
        context = self._context
        wanted = new_replica_set(body, sets, number)
        has_deadline = at(body, "spec", "progressDeadlineSeconds") is not None
        try:
            new = await context.client.create(SETS, wanted)
        except StatusError as error:
            if error.reason == "AlreadyExists":
                return await self._collide(body, wanted, error)
            if is_namespace_ending(error):
                return body, None
            message = f'Failed to create new replica set "{name_of(wanted)}": {error}'
            if has_deadline:
                status = with_progress(body, "False", "ReplicaSetCreateError", message, context.clock.now())
                await context.put_status(DEPLOYMENTS, body, status)
            context.events.warning(body, "ReplicaSetCreateError", message)
            raise
        if replicas_of(new) > 0:
            message = f"Scaled up replica set {name_of(new)} from 0 to {replicas_of(new)}"
            context.events.normal(body, "ScalingReplicaSet", message)
        if has_deadline:
            message = f'Created new replica set "{name_of(new)}"'
            status = with_progress(body, "True", "NewReplicaSetCreated", message, context.clock.now())
            body = await context.put_status(DEPLOYMENTS, body, status)
        return body, new

    async def _collide(
        self, body: JSONObject, wanted: JSONObject, error: StatusError
    ) -> tuple[JSONObject, JSONObject | None]:
        """Use the ReplicaSet that has the name if it is ours; else count a collision, so that the next hash differs."""
        found = self._context.client.get(SETS, name_of(wanted), namespace_of(wanted))
        if found is not None and is_owned_by(found, body) and _same_template(body, found):
            return body, found
        count = number_at(body, "status", "collisionCount") + 1
        status = {**at(body, "status", default={}), "collisionCount": count}
        await self._context.put_status(DEPLOYMENTS, body, status)
        raise error

    async def _resize(self, body: JSONObject, sets: Sequence[JSONObject], sizes: Sizes) -> list[JSONObject]:
        """Write sizes, and the inputs of their computation on every ReplicaSet with pods."""
        found = []
        for item in sets:
            before, after = replicas_of(item), sizes.get(name_of(item), replicas_of(item))
            changed = item
            if name_of(item) in sizes:
                notes = {DESIRED: str(replicas_of(body)), MAX: str(replicas_of(body) + max_surge(body))}
                changed = with_metadata(item, annotations={**annotations_of(item), **notes})
                changed = _with_spec(changed, replicas=after)
            if not equal(changed, item):
                changed = await self._context.client.update(SETS, changed)
            if before != after:
                verb = "up" if after > before else "down"
                message = f"Scaled {verb} replica set {name_of(item)} from {before} to {after}"
                self._context.events.normal(body, "ScalingReplicaSet", message)
            found.append(changed)
        return found

    async def _mark_pause(self, body: JSONObject) -> JSONObject:
        if at(body, "spec", "progressDeadlineSeconds") is None:
            return body
        reason = (find_condition(conditions_of(body), "Progressing") or {}).get("reason")
        is_paused = bool(at(body, "spec", "paused", default=False))
        if reason == "ProgressDeadlineExceeded" or is_paused == (reason == "DeploymentPaused"):
            return body
        found = ("DeploymentPaused", "Deployment is paused")
        if not is_paused:
            found = ("DeploymentResumed", "Deployment is resumed")
        status = with_progress(body, "Unknown", *found, self._context.clock.now())
        return await self._context.put_status(DEPLOYMENTS, body, status)

    async def _status(self, body: JSONObject, sets: Sequence[JSONObject], *, is_rollout: bool = True) -> float | None:
        new = find_new(body, sets)
        now = self._context.clock.now()
        status = deployment_status(body, sets, new, now, is_rollout=is_rollout)
        if not is_deleting(body) and is_complete(body, status):
            for item in unneeded(body, _others(sets, new)):
                await self._context.client.delete(SETS, name_of(item), namespace_of(item), uid=uid_of(item))
        await self._context.put_status(DEPLOYMENTS, body, status)
        return deadline_in(body, status, now) if is_rollout else None


def find_new(deployment: JSONObject, sets: Iterable[JSONObject]) -> JSONObject | None:
    """Return the oldest ReplicaSet that has the template of the Deployment."""
    found = [item for item in sets if _same_template(deployment, item)]
    return min(found, key=lambda item: str(at(item, "metadata", "creationTimestamp", default="")), default=None)


def new_replica_set(deployment: JSONObject, sets: Sequence[JSONObject], number: int) -> JSONObject:
    """Return the ReplicaSet to create for the template of a Deployment; `number` is its revision."""
    template: JSONObject = at(deployment, "spec", "template", default={})
    digest = short_hash(template, number_at(deployment, "status", "collisionCount"))
    selector: JSONObject = at(deployment, "spec", "selector", default={})
    labels = {**at(template, "metadata", "labels", default={}), HASH: digest}
    body: JSONObject = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name_of(deployment)}-{digest}",
            "namespace": namespace_of(deployment),
            "labels": labels,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": rollout.new_size(deployment, sets, None) if sets else replicas_of(deployment),
            "selector": {**selector, "matchLabels": {**selector.get("matchLabels", {}), HASH: digest}},
            "template": {**template, "metadata": {**template.get("metadata", {}), "labels": labels}},
        },
    }
    ready: int = at(deployment, "spec", "minReadySeconds", default=0)
    if ready:
        body["spec"]["minReadySeconds"] = ready
    most = replicas_of(deployment) + max_surge(deployment)
    notes = {DESIRED: str(replicas_of(deployment)), MAX: str(most)}
    return with_metadata(body, annotations={**revised_annotations(deployment, body, number), **notes})


def revised_annotations(deployment: JSONObject, replica_set: JSONObject, number: int) -> dict[str, str]:
    """Return the annotations of the newest ReplicaSet: the Deployment's, and its number with those it had before."""
    before = annotations_of(replica_set)
    copied = {key: value for key, value in annotations_of(deployment).items() if key not in _NOT_COPIED}
    found = {**before, **copied}
    old = before.get(REVISION)
    if int(old or 0) < number:
        found[REVISION] = str(number)
        if old:
            found[HISTORY] = ",".join(part for part in (before.get(HISTORY, ""), old) if part)
    return found


def unneeded(deployment: JSONObject, old: Sequence[JSONObject]) -> list[JSONObject]:
    """Return the old ReplicaSets beyond the history limit that have no pods."""
    limit = number_at(deployment, "spec", "revisionHistoryLimit", default=10)
    cleanable = sorted((item for item in old if not is_deleting(item)), key=_revision)
    return [item for item in cleanable[: max(len(cleanable) - limit, 0)] if _is_empty(item)]


def _is_empty(item: JSONObject) -> bool:
    observed = number_at(item, "metadata", "generation") <= number_at(item, "status", "observedGeneration")
    return replicas_of(item) == 0 and number_at(item, "status", "replicas") == 0 and observed


def _was_scaled(deployment: JSONObject, sets: Iterable[JSONObject]) -> bool:
    wanted = str(replicas_of(deployment))
    return any(annotations_of(item).get(DESIRED, wanted) != wanted for item in rollout.active(sets))


def _same_template(deployment: JSONObject, replica_set: JSONObject) -> bool:
    return equal(_bare(at(deployment, "spec", "template")), _bare(at(replica_set, "spec", "template")))


def _bare(template: JSONObject | None) -> JSONObject:
    """Return a template without the hash label and empty metadata."""
    template = template or {}
    metadata = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (metadata.pop("labels", None) or {}).items() if key != HASH}
    metadata = {key: value for key, value in metadata.items() if value}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _revision(replica_set: JSONObject) -> int:
    text = annotations_of(replica_set).get(REVISION, "")
    return int(text) if text.isdigit() else 0


def _others(sets: Iterable[JSONObject], new: JSONObject | None) -> list[JSONObject]:
    return [item for item in sets if new is None or uid_of(item) != uid_of(new)]


def _replace(sets: Iterable[JSONObject], new: JSONObject) -> list[JSONObject]:
    return [new if uid_of(item) == uid_of(new) else item for item in sets]


def _with_spec(body: JSONObject, **changes: int | None) -> JSONObject:
    spec = {key: value for key, value in {**body["spec"], **changes}.items() if value is not None}
    return {**body, "spec": spec}
