"""Running as Non-root: the promise that no container starts as root."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant, container_fields
from pyverno.podsecurity.finding import FieldError, Finding
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.setters import named_containers, setters
from pyverno.podsecurity.versions import since

__all__ = ["RUN_AS_NON_ROOT"]

_FIELD = "securityContext.runAsNonRoot"


def _judge(pod: Pod) -> Finding | None:
    own = pod.security.run_as_non_root
    by_pod = (FieldError(f"spec.{_FIELD}", False),) if own is False else ()
    explicit = tuple(each for each in pod.containers if each.security.run_as_non_root is False)
    implicit = () if own else tuple(each for each in pod.containers if each.security.run_as_non_root is None)
    if not by_pod and not explicit and not implicit:
        return None
    explicit_names, implicit_names = (tuple(each.name for each in group) for group in (explicit, implicit))
    details = []
    if by_pod or explicit:
        details.append(f"{setters(bool(by_pod), explicit_names)} must not set {_FIELD}=false")
    if implicit:
        details.append(f"pod or {named_containers(implicit_names)} must set {_FIELD}=true")
    # Kyverno's build of the check reports both groups, where Kubernetes stops at the first.
    errors = (
        *by_pod,
        *(FieldError(each.at(_FIELD), False, container=each.name) for each in explicit),
        *(FieldError(each.at(_FIELD), required=True, container=each.name) for each in implicit),
    )
    return Finding("runAsNonRoot != true", "\n".join(details), errors, explicit_names or implicit_names)


RUN_AS_NON_ROOT = Control(
    name="Running as Non-root",
    title="Running as non-root",
    what="Pods that do not promise to run as a user other than root",
    why="Root in a container is root on the node as soon as anything else fails.",
    reach=Reach.BOTH,
    fields=(f"spec.{_FIELD}", *container_fields(_FIELD)),
    allowed="true; unset on a container if the pod sets true",
    checks=(Check("runAsNonRoot", Level.RESTRICTED, (Variant(since(0), _judge),)),),
)
"""Demands `runAsNonRoot: true`."""
