"""Running as Non-root user: user id 0 requested by number."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant, container_fields
from pyverno.podsecurity.finding import FieldError, Finding
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.setters import setters
from pyverno.podsecurity.versions import since

__all__ = ["RUN_AS_USER"]

_FIELD = "securityContext.runAsUser"


def _judge(pod: Pod) -> Finding | None:
    by_pod = (FieldError(f"spec.{_FIELD}", 0),) if pod.security.run_as_user == 0 else ()
    bad = [container for container in pod.containers if container.security.run_as_user == 0]
    if not by_pod and not bad:
        return None
    names = tuple(each.name for each in bad)
    errors = (*by_pod, *(FieldError(each.at(_FIELD), 0, container=each.name) for each in bad))
    return Finding("runAsUser=0", f"{setters(bool(by_pod), names)} must not set runAsUser=0", errors, names)


RUN_AS_USER = Control(
    name="Running as Non-root user",
    title="Running as non-root user",
    what="Pods and containers that ask for user id 0",
    why="User 0 is root, whatever else the security context sets.",
    reach=Reach.BOTH,
    fields=(f"spec.{_FIELD}", *container_fields(_FIELD)),
    allowed="unset, any number but 0",
    checks=(Check("runAsUser", Level.RESTRICTED, (Variant(since(23), _judge),)),),
)
"""Forbids `runAsUser: 0`."""
