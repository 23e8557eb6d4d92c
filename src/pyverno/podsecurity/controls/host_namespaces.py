"""Host Namespaces: the node's network, process and IPC namespaces."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant
from pyverno.podsecurity.finding import FieldError, Finding
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.versions import since

__all__ = ["HOST_NAMESPACES"]


def _judge(pod: Pod) -> Finding | None:
    if not pod.host_namespaces:
        return None
    errors = tuple(FieldError(f"spec.{name}", True) for name in pod.host_namespaces)
    return Finding("host namespaces", ", ".join(f"{name}=true" for name in pod.host_namespaces), errors)


HOST_NAMESPACES = Control(
    name="Host Namespaces",
    title="Host namespaces",
    what="Sharing the network, PID or IPC namespace of the node",
    why="A pod in a namespace of the node can watch traffic, signal processes or read memory of other workloads.",
    reach=Reach.POD,
    fields=("spec.hostNetwork", "spec.hostPID", "spec.hostIPC"),
    allowed="unset, false",
    checks=(Check("hostNamespaces", Level.BASELINE, (Variant(since(0), _judge),)),),
)
"""Forbids `hostNetwork`, `hostPID` and `hostIPC`."""
