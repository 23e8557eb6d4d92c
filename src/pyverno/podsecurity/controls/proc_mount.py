"""/proc Mount Type: the masks over /proc."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant, container_fields
from pyverno.podsecurity.finding import FieldError, Finding, quoted, sorted_unique
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.setters import named_containers
from pyverno.podsecurity.versions import since

__all__ = ["PROC_MOUNT"]

_FIELD = "securityContext.procMount"


def _judge(pod: Pod) -> Finding | None:
    # Kubernetes 1.34 relaxes this for pods in a user namespace only behind a feature gate, which Kyverno leaves off.
    bad = [container for container in pod.containers if container.security.proc_mount not in (None, "Default")]
    if not bad:
        return None
    names = tuple(each.name for each in bad)
    errors = tuple(FieldError(each.at(_FIELD), each.security.proc_mount or "", container=each.name) for each in bad)
    values = sorted_unique(str(error.value) for error in errors)
    return Finding("procMount", f"{named_containers(names)} must not set {_FIELD} to {quoted(values)}", errors, names)


PROC_MOUNT = Control(
    name="/proc Mount Type",
    title="/proc mount type",
    what="An unmasked /proc",
    why="The default masks hide files under /proc that leak secrets of the kernel or change the node.",
    reach=Reach.CONTAINER,
    fields=container_fields(_FIELD),
    allowed="unset, Default",
    checks=(Check("procMount", Level.BASELINE, (Variant(since(0), _judge),)),),
)
"""Forbids every `procMount` but `Default`."""
