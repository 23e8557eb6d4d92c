"""The one node of the sandbox: its registration, its conditions and its lease."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from kubesandbox.controllers.clock import stamp, stamp_micro
from kubesandbox.controllers.conditions import condition, has_condition
from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys
from kubesandbox.controllers.objects import owner_reference
from kubesandbox.controllers.pods import conditions_of
from kubesandbox.storage.store import Change, Key
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["HOST", "NODE", "THE_NODE", "NodeKeeper"]

NODE = "sandbox"
THE_NODE = Key("nodes", "", NODE)
HOST = "172.18.0.2"
LEASE_SECONDS = 40
RENEW_SECONDS = 10
LEASES = "leases.coordination.k8s.io"

_ROOM = {
    "cpu": "64",
    "ephemeral-storage": "1Ti",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
    "memory": "256Gi",
    "pods": "4096",
}


class NodeKeeper:
    """Registers the node, keeps its status and renews its lease."""

    def __init__(self, context: ControllerContext, *, kube_version: str) -> None:
        """Take the tools, and the version that the kubelet reports."""
        self._context = context
        self._version = kube_version
        self._is_registered = False

    @property
    def watches(self) -> Mapping[str, Keys]:
        """The node, and its namespace, which may come later."""
        return {"nodes": _only_node, "namespaces": _only_lease_namespace}

    async def reconcile(self, key: Key) -> float | None:
        """Register, report and renew; a deleted node registers again, as if its kubelet were restarted."""
        context = self._context
        now = context.clock.now()
        node = context.client.get("nodes", key.name)
        if node is None:
            if self._is_registered:
                self._is_registered = False
                return RENEW_SECONDS
            node = await context.client.create("nodes", node_object(key.name, self._version))
        self._is_registered = True
        if not has_condition(conditions_of(node), "Ready"):
            node = await context.put_status("nodes", node, node_status(key.name, self._version, now))
            context.events.normal(node, "NodeReady", f"Node {key.name} status is now: NodeReady")
        await self._renew(node, now)
        return RENEW_SECONDS

    async def _renew(self, node: JSONObject, now: datetime) -> None:
        client = self._context.client
        if client.get("namespaces", "kube-node-lease") is None:
            return
        wanted = lease_of(node, now)
        found = client.get(LEASES, NODE, "kube-node-lease")
        try:
            if found is None:
                await client.create(LEASES, wanted)
            elif stamp_micro(now) != found["spec"].get("renewTime"):
                await client.update(LEASES, {**found, "spec": {**found["spec"], **wanted["spec"]}})
        except StatusError as error:
            # a conflict: the next renewal follows soon
            if error.reason not in ("Conflict", "AlreadyExists", "NotFound"):
                raise


def node_object(name: str, kube_version: str) -> JSONObject:
    """Return the node as a kubelet registers it."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": {
            "podCIDR": "10.244.0.0/16",
            "podCIDRs": ["10.244.0.0/16"],
            "providerID": f"sandbox://{name}",
        },
        "status": {"capacity": _ROOM, "allocatable": _ROOM, "nodeInfo": _info(kube_version)},
    }


def node_status(name: str, kube_version: str, now: datetime) -> JSONObject:
    """Return the status of a healthy node."""
    states = (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    )
    return {
        "capacity": _ROOM,
        "allocatable": _ROOM,
        "conditions": [
            {**condition(kind, status, now, reason=reason, message=message), "lastHeartbeatTime": stamp(now)}
            for kind, status, reason, message in states
        ],
        "addresses": [{"type": "InternalIP", "address": HOST}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _info(kube_version),
    }


def lease_of(node: JSONObject, now: datetime) -> JSONObject:
    """Return the lease that a node renews as its heartbeat."""
    name = node["metadata"]["name"]
    owner = owner_reference(node, is_controller=False)
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": [owner]},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": stamp_micro(now)},
    }


def _info(kube_version: str) -> JSONObject:
    return {
        "machineID": "5a6d0b0c7d3f4b8e9a1c2d3e4f5a6b7c",
        "systemUUID": "5a6d0b0c-7d3f-4b8e-9a1c-2d3e4f5a6b7c",
        "bootID": "0d1c2b3a-4f5e-4d6c-8b7a-9f8e7d6c5b4a",
        "kernelVersion": "6.1.0-sandbox",
        "osImage": "Sandbox (nothing runs here)",
        "containerRuntimeVersion": "containerd://2.1.4",
        "kubeletVersion": f"v{kube_version}" + (".0" if kube_version.count(".") == 1 else ""),
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def _only_node(change: Change) -> Iterable[Key]:
    return (change.state.key,) if change.state.key.name == NODE else ()


def _only_lease_namespace(change: Change) -> Iterable[Key]:
    return (THE_NODE,) if change.state.key.name == "kube-node-lease" else ()
