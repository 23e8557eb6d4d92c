"""DaemonSets: one pod on every node that fits. `daemonpods` computes the next actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.objects import at, is_deleting, key_of, labels_of, number_at
from kubesandbox.controllers.pods import available_in, is_ready
from kubesandbox.controllers.workloads.daemonpods import HASH, daemon_pod, daemon_status, plan
from kubesandbox.controllers.workloads.revision import drop_history, keep_revisions
from kubesandbox.storage.store import Change, Key

__all__ = ["DaemonSets"]

SETS = "daemonsets.apps"


class DaemonSets:
    """Keeps the pods of DaemonSets."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Watches the sets, their pods, and nodes whose existence, labels or taints change."""
        return {SETS: itself, "pods": self._context.owner(SETS, "DaemonSet"), "nodes": self._of_node}

    def _of_node(self, change: Change) -> Iterable[Key]:
        if change.kind == "MODIFIED" and change.before is not None:
            old, new = change.before.body, change.state.body
            paths = (("spec",), ("metadata", "labels"))
            if all(at(old, *path) == at(new, *path) for path in paths):
                return ()
        return [key_of(SETS, body) for body in self._context.client.list(SETS)]

    async def reconcile(self, key: Key) -> float | None:
        """Create and delete pods, and update the status."""
        context = self._context
        body = context.client.get(SETS, key.name, key.namespace)
        if body is None or is_deleting(body):
            return None
        revisions = await keep_revisions(context, body, hash_label=HASH)
        digest = labels_of(revisions[-1]).get(HASH, "")
        nodes = context.client.list("nodes")
        now = context.clock.now()
        found = plan(body, nodes, await context.claimed("pods", body), digest, now)
        try:
            await context.delete_pods(body, found.delete)
            await context.create_pods(body, [daemon_pod(body, node, digest) for node in found.create])
        finally:
            pods = await context.claimed("pods", body)
            body = context.client.get(SETS, key.name, key.namespace) or body
            await context.put_status(SETS, body, daemon_status(body, nodes, pods, digest, now))
        used = {labels_of(pod).get(HASH) for pod in pods} | {digest}
        live = [item["metadata"]["name"] for item in revisions if labels_of(item).get(HASH) in used]
        await drop_history(context, body, revisions, live)
        least = number_at(body, "spec", "minReadySeconds")
        waits = [available_in(pod, least, now) for pod in pods if is_ready(pod)]
        return min((wait for wait in waits if wait > 0), default=None)
