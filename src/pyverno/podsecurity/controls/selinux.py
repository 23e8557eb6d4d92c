"""SELinux: types beyond the container types, and custom users or roles."""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.podsecurity.control import Check, Control, Judge, Level, Reach, Variant, container_fields
from pyverno.podsecurity.finding import FieldError, Finding, plural, quoted, sorted_unique
from pyverno.podsecurity.pod import Pod, SELinuxOptions
from pyverno.podsecurity.setters import setters
from pyverno.podsecurity.versions import since

__all__ = ["SELINUX"]

_FIELD = "securityContext.seLinuxOptions"
_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_TYPES_1_31 = _TYPES | {"container_engine_t"}


def _judge_by(types: frozenset[str]) -> Judge:
    def judge(pod: Pod) -> Finding | None:
        by_pod = tuple(_errors(pod.security.selinux, f"spec.{_FIELD}", None, types))
        by_containers = tuple(
            error
            for each in pod.containers
            for error in _errors(each.security.selinux, each.at(_FIELD), each.name, types)
        )
        errors = by_pod + by_containers
        if not errors:
            return None
        bad = _bad_containers(pod, types)
        detail = f"{setters(bool(by_pod), bad)} set forbidden {_FIELD}: {_data(errors)}"
        return Finding("seLinuxOptions", detail, errors)

    return judge


def _errors(
    options: SELinuxOptions | None, field: str, container: str | None, types: frozenset[str]
) -> Iterator[FieldError]:
    if options is None:
        return
    if options.type not in types:
        yield FieldError(f"{field}.type", options.type, container=container)
    if options.user:
        yield FieldError(f"{field}.user", options.user, container=container)
    if options.role:
        yield FieldError(f"{field}.role", options.role, container=container)


def _bad_containers(pod: Pod, types: frozenset[str]) -> tuple[str, ...]:
    return tuple(each.name for each in pod.containers if any(_errors(each.security.selinux, "", None, types)))


def _data(errors: tuple[FieldError, ...]) -> str:
    bad_types = sorted_unique(str(error.value) for error in errors if error.field.endswith(".type"))
    data = [f"{plural('type', len(bad_types))} {quoted(bad_types)}"] if bad_types else []
    data += [
        f"{part} may not be set" for part in ("user", "role") if any(each.field.endswith(f".{part}") for each in errors)
    ]
    return "; ".join(data)


SELINUX = Control(
    name="SELinux",
    title="SELinux",
    what="SELinux types other than the container types, and any custom SELinux user or role",
    why="Another type or user takes the container out of the confinement that the node's policy gives to containers.",
    reach=Reach.BOTH,
    fields=tuple(
        field
        for part in ("type", "user", "role")
        for field in (f"spec.{_FIELD}.{part}", *container_fields(f"{_FIELD}.{part}"))
    ),
    allowed=(
        "type: unset, container_t, container_init_t, container_kvm_t, since v1.31 container_engine_t; user, role: unset"
    ),
    checks=(
        Check(
            "seLinuxOptions",
            Level.BASELINE,
            (
                Variant(since(0), _judge_by(_TYPES)),
                Variant(since(31), _judge_by(_TYPES_1_31), "container_engine_t is allowed"),
            ),
        ),
    ),
)
"""Forbids unusual SELinux types and every custom user or role."""
