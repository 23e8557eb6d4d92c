"""Capabilities: the Linux capabilities that containers add or keep."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant, container_fields
from pyverno.podsecurity.finding import FieldError, Finding, quoted, sorted_unique
from pyverno.podsecurity.pod import Container, Pod
from pyverno.podsecurity.setters import named_containers
from pyverno.podsecurity.versions import since

__all__ = ["BINDING", "CAPABILITIES", "DEFAULT"]

_ADD = "securityContext.capabilities.add"
_DROP = "securityContext.capabilities.drop"
DEFAULT = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
BINDING = frozenset({"NET_BIND_SERVICE"})


def _judge_baseline(pod: Pod) -> Finding | None:
    errors = _added_beyond(pod, DEFAULT)
    if not errors:
        return None
    names = _names(errors)
    return Finding("non-default capabilities", _adding_detail(errors), errors, names)


def _judge_restricted(pod: Pod) -> Finding | None:
    missing = tuple(_not_dropped(each) for each in pod.containers if "ALL" not in each.security.dropped)
    adding = _added_beyond(pod, BINDING)
    if not missing and not adding:
        return None
    details = []
    if missing:
        details.append(f'{named_containers(_names(missing))} must set {_DROP}=["ALL"]')
    if adding:
        details.append(_adding_detail(adding))
    return Finding("unrestricted capabilities", "; ".join(details), missing + adding, _names(missing or adding))


def _judge_restricted_unless_windows(pod: Pod) -> Finding | None:
    return None if pod.is_windows else _judge_restricted(pod)


def _added_beyond(pod: Pod, allowed: frozenset[str]) -> tuple[FieldError, ...]:
    return tuple(
        FieldError(container.at(_ADD), sorted_unique(forbidden), container=container.name)
        for container in pod.containers
        if (forbidden := [name for name in container.security.added if name not in allowed])
    )


def _not_dropped(container: Container) -> FieldError:
    if container.security.dropped:
        return FieldError(container.at(_DROP), sorted_unique(container.security.dropped), container=container.name)
    return FieldError(container.at(_DROP), required=True, container=container.name)


def _adding_detail(errors: tuple[FieldError, ...]) -> str:
    added = sorted_unique(name for error in errors for name in error.offending_values)
    return f"{named_containers(_names(errors))} must not include {quoted(added)} in {_ADD}"


def _names(errors: tuple[FieldError, ...]) -> tuple[str, ...]:
    return tuple(error.container or "" for error in errors)


CAPABILITIES = Control(
    name="Capabilities",
    title="Capabilities",
    what="Linux capabilities beyond the runtime's default set; at the restricted level all but NET_BIND_SERVICE",
    why="Capabilities split the power of root: NET_RAW forges packets, SYS_ADMIN is close to full control of the node.",
    reach=Reach.CONTAINER,
    fields=(*container_fields(_ADD), *container_fields(_DROP)),
    allowed=(
        f"baseline: add unset or any of {', '.join(sorted(DEFAULT))}; "
        "restricted: drop contains ALL, add unset or NET_BIND_SERVICE"
    ),
    checks=(
        Check("capabilities_baseline", Level.BASELINE, (Variant(since(0), _judge_baseline),)),
        Check(
            "capabilities_restricted",
            Level.RESTRICTED,
            (
                Variant(since(22), _judge_restricted),
                Variant(since(25), _judge_restricted_unless_windows, "pods with spec.os.name windows are exempt"),
            ),
        ),
    ),
)
"""Limits what may be added, and at the restricted level demands `drop: [ALL]`."""
