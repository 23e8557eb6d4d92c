"""Privilege Escalation: processes that gain more rights than their parent."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant, container_fields
from pyverno.podsecurity.finding import FieldError, Finding
from pyverno.podsecurity.pod import Container, Pod
from pyverno.podsecurity.setters import named_containers
from pyverno.podsecurity.versions import since

__all__ = ["PRIVILEGE_ESCALATION"]

_FIELD = "securityContext.allowPrivilegeEscalation"


def _judge(pod: Pod) -> Finding | None:
    bad = [container for container in pod.containers if container.security.allow_privilege_escalation is not False]
    if not bad:
        return None
    names = tuple(each.name for each in bad)
    detail = f"{named_containers(names)} must set {_FIELD}=false"
    return Finding("allowPrivilegeEscalation != false", detail, tuple(map(_error, bad)), names)


def _error(container: Container) -> FieldError:
    field = container.at(_FIELD)
    if not container.security.is_set:
        return FieldError(field, required=True, container=container.name)
    # An exclude names an unset field by the value `nil`.
    value = "nil" if container.security.allow_privilege_escalation is None else True
    return FieldError(field, value, container=container.name)


def _judge_unless_windows(pod: Pod) -> Finding | None:
    return None if pod.is_windows else _judge(pod)


PRIVILEGE_ESCALATION = Control(
    name="Privilege Escalation",
    title="Privilege escalation",
    what="Containers that do not forbid privilege escalation",
    why="A set-user-ID program in the image would otherwise turn an ordinary process into root.",
    reach=Reach.CONTAINER,
    fields=container_fields(_FIELD),
    allowed="false",
    checks=(
        Check(
            "allowPrivilegeEscalation",
            Level.RESTRICTED,
            (
                Variant(since(8), _judge),
                Variant(since(25), _judge_unless_windows, "pods with spec.os.name windows are exempt"),
            ),
        ),
    ),
)
"""Demands `allowPrivilegeEscalation: false`."""
