"""Privileged Containers: containers with all rights of the node."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant, container_fields
from pyverno.podsecurity.finding import FieldError, Finding
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.setters import named_containers
from pyverno.podsecurity.versions import since

__all__ = ["PRIVILEGED_CONTAINERS"]

_FIELD = "securityContext.privileged"


def _judge(pod: Pod) -> Finding | None:
    bad = [container for container in pod.containers if container.security.privileged]
    if not bad:
        return None
    names = tuple(each.name for each in bad)
    errors = tuple(FieldError(each.at(_FIELD), True, container=each.name) for each in bad)
    return Finding("privileged", f"{named_containers(names)} must not set {_FIELD}=true", errors, names)


PRIVILEGED_CONTAINERS = Control(
    name="Privileged Containers",
    title="Privileged containers",
    what="Containers that run privileged",
    why="Privileged mode switches most isolation off: an attacker in the container controls the node.",
    reach=Reach.CONTAINER,
    fields=container_fields(_FIELD),
    allowed="unset, false",
    checks=(Check("privileged", Level.BASELINE, (Variant(since(0), _judge),)),),
)
"""Forbids `privileged: true`."""
