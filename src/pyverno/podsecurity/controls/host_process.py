"""HostProcess: Windows containers that run as processes of the node."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant, container_fields
from pyverno.podsecurity.finding import FieldError, Finding
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.setters import setters
from pyverno.podsecurity.versions import since

__all__ = ["HOST_PROCESS"]

_FIELD = "securityContext.windowsOptions.hostProcess"


def _judge(pod: Pod) -> Finding | None:
    errors = [FieldError(f"spec.{_FIELD}", True)] if pod.security.host_process else []
    bad = [container for container in pod.containers if container.security.host_process]
    errors += [FieldError(each.at(_FIELD), True, container=each.name) for each in bad]
    if not errors:
        return None
    names = tuple(each.name for each in bad)
    detail = f"{setters(pod.security.host_process, names)} must not set {_FIELD}=true"
    return Finding("hostProcess", detail, tuple(errors), names)


HOST_PROCESS = Control(
    name="HostProcess",
    title="HostProcess",
    what="Windows HostProcess containers",
    why="A HostProcess container runs with the rights of the Windows node: it sees and changes everything on it.",
    reach=Reach.BOTH,
    fields=(f"spec.{_FIELD}", *container_fields(_FIELD)),
    allowed="unset, false",
    checks=(Check("windowsHostProcess", Level.BASELINE, (Variant(since(0), _judge),)),),
)
"""Forbids `hostProcess: true`."""
