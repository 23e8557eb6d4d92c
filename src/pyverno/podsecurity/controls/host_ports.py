"""Host Ports: ports of the node bound by containers."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant, container_fields
from pyverno.podsecurity.finding import FieldError, Finding, plural, sorted_unique
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.setters import named_containers
from pyverno.podsecurity.versions import since

__all__ = ["HOST_PORTS"]


def _judge(pod: Pod) -> Finding | None:
    bad = [container for container in pod.containers if container.host_ports]
    if not bad:
        return None
    errors = tuple(
        FieldError(each.at(f"ports[{index}].hostPort"), port, container=each.name)
        for each in bad
        for index, port in each.host_ports
    )
    ports = sorted_unique(str(error.value) for error in errors)
    uses = "uses" if len(bad) == 1 else "use"
    names = [each.name for each in bad]
    detail = f"{named_containers(names)} {uses} {plural('hostPort', len(ports))} {', '.join(ports)}"
    return Finding("hostPort", detail, errors)


HOST_PORTS = Control(
    name="Host Ports",
    title="Host ports",
    what="Container ports that are bound on the node",
    why="A host port steps around network policies and can take over a port that a service of the node uses.",
    reach=Reach.CONTAINER,
    fields=container_fields("ports[*].hostPort"),
    allowed="unset, 0",
    checks=(Check("hostPorts", Level.BASELINE, (Variant(since(0), _judge),)),),
)
"""Forbids `hostPort`."""
