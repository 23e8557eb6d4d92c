"""Host Probes and Lifecycle Hooks: probes and handlers that the kubelet sends to another host."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant, container_fields
from pyverno.podsecurity.finding import Finding, plural, quoted, sorted_unique
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.setters import named_containers
from pyverno.podsecurity.versions import since

__all__ = ["HOST_PROBES"]

_HANDLERS = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop")


def _judge(pod: Pod) -> Finding | None:
    bad = [container for container in pod.containers if container.handler_hosts]
    if not bad:
        return None
    names = sorted_unique(each.name for each in bad)
    hosts = sorted_unique(host for each in bad for host in each.handler_hosts)
    uses = "uses" if len(names) == 1 else "use"
    detail = f"{named_containers(names)} {uses} {plural('probe or lifecycle host', len(hosts))} {quoted(hosts)}"
    # COMPAT: Kyverno's build of the check lists no field errors, and no control name covers it.
    return Finding("probe or lifecycle host", detail, ())


HOST_PROBES = Control(
    name="",
    title="Host probes and lifecycle hooks",
    what="Probes and lifecycle handlers that name a host",
    why="The kubelet sends them from the node, so a host of the author's choice makes it a proxy into other networks.",
    reach=Reach.CONTAINER,
    fields=tuple(
        field
        for handler in _HANDLERS
        for action in ("httpGet", "tcpSocket")
        for field in container_fields(f"{handler}.{action}.host")
    ),
    allowed="unset, empty",
    checks=(Check("hostProbesAndHostLifecycle", Level.BASELINE, (Variant(since(34), _judge),)),),
)
"""Forbids `host` in probes and lifecycle handlers."""
