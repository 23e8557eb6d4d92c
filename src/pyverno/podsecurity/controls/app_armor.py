"""AppArmor: profiles that switch the runtime's default confinement off."""

from __future__ import annotations

from pyverno.kube.json import encode
from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant, container_fields
from pyverno.podsecurity.finding import FieldError, Finding, plural, quoted, sorted_unique
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.setters import setters
from pyverno.podsecurity.versions import since

__all__ = ["APP_ARMOR"]

_FIELD = "securityContext.appArmorProfile.type"
_ANNOTATIONS = "metadata.annotations["
_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_ALLOWED = (None, "RuntimeDefault", "Localhost")


def _judge(pod: Pod) -> Finding | None:
    own = pod.security.app_armor_type
    by_pod = () if own in _ALLOWED else (FieldError(f"spec.{_FIELD}", own),)
    by_containers = tuple(
        FieldError(each.at(_FIELD), each.security.app_armor_type, container=each.name)
        for each in pod.containers
        if each.security.app_armor_type not in _ALLOWED
    )
    # Kubernetes lists annotations in no certain order; sorted is one of them.
    by_annotations = tuple(
        FieldError(f"{_ANNOTATIONS}{key}]", value)
        for key, value in sorted(pod.annotations.items())
        if key.startswith(_ANNOTATION) and not _is_allowed_annotation(value)
    )
    errors = by_pod + by_containers + by_annotations
    if not errors:
        return None
    names = tuple(error.container or "" for error in by_containers)
    annotations = (plural("annotation", len(by_annotations)),) if by_annotations else ()
    types = sorted_unique(str(error.value) for error in by_pod + by_containers)
    values = (*types, *(f"{error.field[len(_ANNOTATIONS) : -1]}={encode(error.value)}" for error in by_annotations))
    detail = f"{setters(bool(by_pod), names, *annotations)} must not set AppArmor profile type to {quoted(values)}"
    return Finding(plural("forbidden AppArmor profile", len(values)), detail, errors, names)


def _is_allowed_annotation(profile: str) -> bool:
    return profile in ("", "runtime/default") or profile.startswith("localhost/")


APP_ARMOR = Control(
    name="AppArmor",
    title="AppArmor",
    what="AppArmor profiles other than the runtime's default or one loaded on the node",
    why="The default profile keeps containers away from sensitive parts of the kernel; Unconfined gives that up.",
    reach=Reach.BOTH,
    fields=(f"spec.{_FIELD}", *container_fields(_FIELD), f"metadata.annotations[{_ANNOTATION}*]"),
    allowed="unset, RuntimeDefault, Localhost; annotations: empty, runtime/default, localhost/*",
    checks=(Check("appArmorProfile", Level.BASELINE, (Variant(since(0), _judge),)),),
)
"""Forbids AppArmor profiles other than RuntimeDefault and Localhost."""
