"""Evicts pods from nodes with `NoExecute` taints, at once or when the time of their tolerations is over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from kubesandbox.controllers.conditions import condition, set_condition
from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys
from kubesandbox.controllers.nodes.fitting import tolerates
from kubesandbox.controllers.objects import at, is_deleting, key_of, name_of, namespace_of, uid_of
from kubesandbox.controllers.pods import conditions_of
from kubesandbox.storage.store import Change, ChangeKind, Key
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["TaintEviction", "toleration_seconds"]


class TaintEviction:
    """Deletes the pods that do not tolerate the taints of their node."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context
        self._since: dict[Key, tuple[str, datetime]] = {}

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Pods on a node, and the pods of a node whose taints change."""
        return {"pods": _on_node, "nodes": self._of_node}

    def _of_node(self, change: Change) -> Iterable[Key]:
        before = _taints(change.before.body) if change.before is not None else []
        if change.kind is ChangeKind.DELETED or before == _taints(change.state.body):
            return ()
        name = name_of(change.state.body)
        return [key_of("pods", pod) for pod in self._context.client.list("pods") if at(pod, "spec", "nodeName") == name]

    async def reconcile(self, key: Key) -> float | None:
        """Evict one pod, wait for the end of its tolerations, or leave it alone."""
        client, events = self._context.client, self._context.events
        pod = client.get("pods", key.name, key.namespace)
        if pod is None or is_deleting(pod):
            self._since.pop(key, None)
            return None
        node = client.get("nodes", at(pod, "spec", "nodeName", default=""))
        seconds = toleration_seconds(at(pod, "spec", "tolerations", default=[]), _taints(node or {}))
        place = f"{namespace_of(pod)}/{name_of(pod)}"
        if seconds is None:
            if self._since.pop(key, None) is not None:
                events.normal(pod, "TaintManagerEviction", f"Cancelling deletion of Pod {place}")
            return None
        now = self._context.clock.now()
        known, since = self._since.get(key, ("", now))
        if known != uid_of(pod):
            since = now
        left = seconds - (now - since).total_seconds()
        if left > 0:
            self._since[key] = uid_of(pod), since
            return left
        self._since.pop(key, None)
        events.normal(pod, "TaintManagerEviction", f"Marking for deletion Pod {place}")
        await self._evict(pod, now)
        return None

    async def _evict(self, pod: JSONObject, now: datetime) -> None:
        reason, message = "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
        new = condition("DisruptionTarget", "True", now, reason=reason, message=message)
        conditions = set_condition(conditions_of(pod), new)
        try:
            await self._context.put_status("pods", pod, {**(pod.get("status") or {}), "conditions": conditions})
            await self._context.client.delete("pods", name_of(pod), namespace_of(pod), uid=uid_of(pod))
        except StatusError as error:
            if error.reason != "NotFound":
                raise


def toleration_seconds(tolerations: list[JSONObject], taints: list[JSONObject]) -> float | None:
    """Return the seconds until a pod leaves a node with these `NoExecute` taints; None if it may stay.

    >>> taint = {"key": "a", "effect": "NoExecute"}
    >>> toleration_seconds([], [taint]), toleration_seconds([{"operator": "Exists"}], [taint])
    (0.0, None)
    """
    used: list[float] = []
    for taint in taints:
        matching = next((each for each in tolerations if tolerates((each,), taint)), None)
        if matching is None:
            return 0.0
        if matching.get("tolerationSeconds") is not None:
            used.append(max(float(matching["tolerationSeconds"]), 0.0))
    return min(used, default=None)


def _taints(node: JSONObject) -> list[JSONObject]:
    return [taint for taint in at(node, "spec", "taints", default=[]) if taint.get("effect") == "NoExecute"]


def _on_node(change: Change) -> Iterable[Key]:
    return (change.state.key,) if at(change.state.body, "spec", "nodeName") else ()
