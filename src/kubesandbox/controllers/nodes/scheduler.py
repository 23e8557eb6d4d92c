"""The scheduler: binds each waiting pod to the first node that fits, or reports why none does.

`fitting` decides which pods fit on which nodes. The scheduler changes only the binding of a pod and its condition
`PodScheduled`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesandbox.controllers.conditions import condition, find_condition, set_condition
from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys
from kubesandbox.controllers.nodes.fitting import no_room_message, unfit_reason
from kubesandbox.controllers.nodes.node import NODE
from kubesandbox.controllers.objects import at, is_deleting, key_of, name_of, namespace_of, uid_of
from kubesandbox.controllers.pods import conditions_of, is_terminal
from kubesandbox.storage.store import Change, ChangeKind, Key
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["Scheduler", "binding_of", "waits"]

NAME = "default-scheduler"


class Scheduler:
    """Binds pods to nodes."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Watches waiting pods, and the nodes and claims that they wait for."""
        return {"pods": self._of_pod, "nodes": self._all, "persistentvolumeclaims": self._all}

    def _of_pod(self, change: Change) -> Iterable[Key]:
        is_waiting = waits(change.state.body) and change.kind is not ChangeKind.DELETED
        return (change.state.key,) if is_waiting else ()

    def _all(self, change: Change) -> Iterable[Key]:
        if change.state.key.resource == "nodes" and not _is_news_of_node(change):
            return ()
        return self._waiting()

    def _waiting(self) -> Iterable[Key]:
        return [key_of("pods", pod) for pod in self._context.client.list("pods") if waits(pod)]

    async def reconcile(self, key: Key) -> float | None:
        """Bind one pod, or record why it cannot be bound."""
        context = self._context
        pod = context.client.get("pods", key.name, key.namespace)
        if pod is None or not waits(pod):
            return None
        problem = self._claims_problem(pod)
        reasons = []
        if not problem:
            for node in sorted(context.client.list("nodes"), key=lambda item: name_of(item) != NODE):
                reason = unfit_reason(pod, node)
                if not reason:
                    await self._bind(pod, name_of(node))
                    return None
                reasons.append(reason)
        await self._report_unschedulable(pod, problem or no_room_message(reasons))
        return None

    def _claims_problem(self, pod: JSONObject) -> str:
        for volume in at(pod, "spec", "volumes", default=[]):
            name = at(volume, "persistentVolumeClaim", "claimName")
            if not name:
                continue
            claim = self._context.client.get("persistentvolumeclaims", name, namespace_of(pod))
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if at(claim, "status", "phase") != "Bound":
                return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    async def _bind(self, pod: JSONObject, node: str) -> None:
        context = self._context
        try:
            await context.client.create("pods", binding_of(pod, node), subresource="binding", name=name_of(pod))
        except StatusError as error:
            if error.reason == "NotFound":
                return
            raise
        message = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to {node}"
        context.events.normal(pod, "Scheduled", message)

    async def _report_unschedulable(self, pod: JSONObject, message: str) -> None:
        context = self._context
        old = find_condition(conditions_of(pod), "PodScheduled") or {}
        if old.get("message") == message and old.get("reason") == "Unschedulable":
            return
        context.events.warning(pod, "FailedScheduling", message)
        new = condition("PodScheduled", "False", context.clock.now(), reason="Unschedulable", message=message)
        conditions = set_condition(conditions_of(pod), {**new, "lastProbeTime": None})
        await context.put_status("pods", pod, {**(pod.get("status") or {}), "conditions": conditions})


def waits(pod: JSONObject) -> bool:
    """Return whether a pod is for this scheduler and has no node yet."""
    spec: JSONObject = pod.get("spec") or {}
    if spec.get("nodeName") or spec.get("schedulingGates") or is_deleting(pod) or is_terminal(pod):
        return False
    return bool(spec.get("schedulerName", NAME) == NAME)


def binding_of(pod: JSONObject, node: str) -> JSONObject:
    """Return the object that puts a pod on a node."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name_of(pod), "namespace": namespace_of(pod), "uid": uid_of(pod)},
        "target": {"kind": "Node", "name": node},
    }


def _is_news_of_node(change: Change) -> bool:
    if change.before is None:
        return True
    old, new = change.before.body, change.state.body
    return any(at(old, *path) != at(new, *path) for path in (("spec",), ("metadata", "labels")))
