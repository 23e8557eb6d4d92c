"""The kubelet of all nodes: sets pods to Running, ends those that are not restarted, and lets deleted ones go.

No container runs. The statuses are made in `podstatus`, `podends` and `podwaits`. A status that another client has
written is kept, so that tests can simulate a real node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys
from kubesandbox.controllers.nodes.addresses import Addresses
from kubesandbox.controllers.nodes.node import HOST
from kubesandbox.controllers.nodes.podends import (
    exit_codes,
    finished_status,
    run_seconds,
    stopped_status,
    will_finish,
)
from kubesandbox.controllers.nodes.podstatus import is_changed, running_status
from kubesandbox.controllers.nodes.podwaits import Problems, find_problems, waiting_status
from kubesandbox.controllers.objects import at, is_deleting, name_of, namespace_of, uid_of
from kubesandbox.controllers.pods import is_terminal, phase_of
from kubesandbox.storage.store import Change, Key
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["Kubelet"]

POD_NETWORK = "10.244.0.0/16"


class Kubelet:
    """Plays the life of pods."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context
        self._addresses = Addresses(POD_NETWORK, self._assigned_addresses)
        self._ends: dict[Key, datetime] = {}
        self._waiting: set[Key] = set()

    @property
    def watches(self) -> Mapping[str, Keys]:
        """The pods that have a node, and the ConfigMaps and Secrets that pods may wait for."""
        return {"pods": _on_node, "configmaps": self._waiting_beside, "secrets": self._waiting_beside}

    def _waiting_beside(self, change: Change) -> Iterable[Key]:
        return [key for key in self._waiting if key.namespace == change.state.key.namespace]

    def _assigned_addresses(self) -> Iterable[str]:
        pods = self._context.client.list("pods")
        return [address for pod in pods if (address := at(pod, "status", "podIP"))]

    async def reconcile(self, key: Key) -> float | None:
        """Move a pod to its next state."""
        pod = self._context.client.get("pods", key.name, key.namespace)
        if pod is None or is_deleting(pod) or is_terminal(pod):
            self._ends.pop(key, None)
            self._waiting.discard(key)
        if pod is None:
            return None
        try:
            if is_deleting(pod):
                await self._end(pod)
            elif is_terminal(pod) or self._context.client.get("nodes", at(pod, "spec", "nodeName", default="")) is None:
                return None
            elif phase_of(pod) in ("", "Pending") or is_changed(pod) or _gates_moved(pod):
                await self._run(key, pod)
            elif will_finish(pod):
                now = self._context.clock.now()
                if key in self._ends and now < self._ends[key]:
                    return (self._ends[key] - now).total_seconds()
                status = finished_status(pod, exit_codes(pod), now)
                await self._context.put_status("pods", pod, status)
        except StatusError as error:
            if error.reason != "NotFound":
                raise
        return None

    async def _run(self, key: Key, pod: JSONObject) -> None:
        client = self._context.client
        problems = find_problems(pod, lambda resource, name: client.get(resource, name, namespace_of(pod)))
        if problems:
            self._waiting.add(key)
        else:
            self._waiting.discard(key)
        address = at(pod, "status", "podIP") or self._addresses.next()
        now = self._context.clock.now()
        said = {item["name"]: item.get("containerID") for item in _statuses(pod)}
        status = running_status(pod, address=address, host=HOST, now=now)
        if problems:
            status = waiting_status(pod, status, problems, now)
            if status != pod.get("status"):
                self._warn(pod, problems)
        elif will_finish(pod):
            self._ends.setdefault(key, now + timedelta(seconds=run_seconds(pod)))
        after = await self._context.put_status("pods", pod, status)
        for item in _statuses(after):
            if item.get("containerID") and said.get(item["name"]) != item["containerID"]:
                self._record_start(pod, item["name"])

    def _warn(self, pod: JSONObject, problems: Problems) -> None:
        events = self._context.events
        if problems.mount:
            events.warning(pod, "FailedMount", problems.mount)
            return
        for group in ("initContainers", "containers"):
            for container in at(pod, "spec", group, default=[]):
                text = problems.containers.get(container["name"])
                if text:
                    events.warning(pod, "Failed", f"Error: {text}", field=f"spec.{group}{{{container['name']}}}")

    def _record_start(self, pod: JSONObject, name: str) -> None:
        events = self._context.events
        for group in ("initContainers", "containers", "ephemeralContainers"):
            for container in at(pod, "spec", group, default=[]):
                if container["name"] == name:
                    field = f"spec.{group}{{{name}}}"
                    image = container.get("image", "")
                    events.normal(pod, "Pulled", f'Container image "{image}" already present on machine', field=field)
                    events.normal(pod, "Created", "Container created", field=field)
                    events.normal(pod, "Started", "Container started", field=field)

    async def _end(self, pod: JSONObject) -> None:
        if not at(pod, "metadata", "deletionGracePeriodSeconds") and at(pod, "metadata", "finalizers"):
            return  # other finalizers keep the pod
        if not is_terminal(pod):
            for container in at(pod, "spec", "containers", default=[]):
                name = container["name"]
                field = f"spec.containers{{{name}}}"
                self._context.events.normal(pod, "Killing", f"Stopping container {name}", field=field)
            if at(pod, "metadata", "finalizers"):
                # clients that wait for the pod see its final status
                await self._context.put_status("pods", pod, stopped_status(pod, self._context.clock.now()))
        await self._context.client.delete("pods", name_of(pod), namespace_of(pod), uid=uid_of(pod), grace=0)


def _statuses(pod: JSONObject) -> list[JSONObject]:
    groups = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return [item for group in groups for item in at(pod, "status", group, default=[])]


def _gates_moved(pod: JSONObject) -> bool:
    """Return whether the readiness gates disagree with the condition `Ready`."""
    gates = at(pod, "spec", "readinessGates", default=[])
    if not gates:
        return False
    states = {item["type"]: item["status"] for item in at(pod, "status", "conditions", default=[])}
    is_open = all(states.get(gate["conditionType"]) == "True" for gate in gates)
    return is_open != (states.get("Ready") == "True")


def _on_node(change: Change) -> Iterable[Key]:
    return (change.state.key,) if at(change.state.body, "spec", "nodeName") else ()
