"""Seccomp: profiles that let every system call through."""

from __future__ import annotations

from pyverno.kube.json import encode
from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant, container_fields
from pyverno.podsecurity.finding import FieldError, Finding, plural, quoted, sorted_unique
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.setters import named_containers, setters
from pyverno.podsecurity.versions import since

__all__ = ["SECCOMP"]

_FIELD = "securityContext.seccompProfile.type"
_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
_CONTAINER_ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/"
_ALLOWED = ("RuntimeDefault", "Localhost")
_ALLOWED_OR_UNSET = (None, *_ALLOWED)


def _judge_annotations(pod: Pod) -> Finding | None:
    # Several containers of one name share an annotation, and each of them reports it.
    keys = (_POD_ANNOTATION, *(_CONTAINER_ANNOTATION + each.name for each in pod.containers))
    bad = sorted(key for key in keys if key in pod.annotations and not _is_allowed_annotation(pod.annotations[key]))
    if not bad:
        return None
    errors = tuple(FieldError(f"metadata.annotations[{key}]", pod.annotations[key]) for key in bad)
    texts = sorted_unique(f"{key}={encode(pod.annotations[key])}" for key in bad)
    return Finding("seccompProfile", f"forbidden {plural('annotation', len(texts))} {', '.join(texts)}", errors)


def _judge_baseline(pod: Pod) -> Finding | None:
    own = pod.security.seccomp_type
    by_pod = () if own in _ALLOWED_OR_UNSET else (FieldError(f"spec.{_FIELD}", own),)
    by_containers = tuple(
        FieldError(each.at(_FIELD), each.security.seccomp_type, container=each.name)
        for each in pod.containers
        if each.security.seccomp_type not in _ALLOWED_OR_UNSET
    )
    errors = by_pod + by_containers
    if not errors:
        return None
    names = tuple(error.container or "" for error in by_containers)
    values = sorted_unique(str(error.value) for error in errors)
    detail = f"{setters(bool(by_pod), names)} must not set {_FIELD} to {quoted(values)}"
    return Finding("seccompProfile", detail, errors, names)


def _judge_restricted(pod: Pod) -> Finding | None:
    explicit = _judge_baseline(pod)
    if explicit is not None or pod.security.seccomp_type in _ALLOWED:
        return explicit
    bad = [container for container in pod.containers if container.security.seccomp_type is None]
    if not bad:
        return None
    names = tuple(each.name for each in bad)
    errors = tuple(FieldError(each.at(_FIELD), required=True, container=each.name) for each in bad)
    detail = f'pod or {named_containers(names)} must set {_FIELD} to "RuntimeDefault" or "Localhost"'
    return Finding("seccompProfile", detail, errors, names)


def _judge_restricted_unless_windows(pod: Pod) -> Finding | None:
    return None if pod.is_windows else _judge_restricted(pod)


def _is_allowed_annotation(profile: str) -> bool:
    return profile in ("runtime/default", "docker/default") or profile.startswith("localhost/")


SECCOMP = Control(
    name="Seccomp",
    title="Seccomp",
    what="Unconfined seccomp profiles; at the restricted level also a profile that is not set",
    why="The kernel's system calls are its largest attack surface; a profile closes those that no container needs.",
    reach=Reach.BOTH,
    fields=(
        f"spec.{_FIELD}",
        *container_fields(_FIELD),
        f"metadata.annotations[{_POD_ANNOTATION}]",
        f"metadata.annotations[{_CONTAINER_ANNOTATION}*]",
    ),
    allowed=(
        "baseline: unset, RuntimeDefault, Localhost; restricted: RuntimeDefault, Localhost, "
        "unset on a container if the pod sets one; annotations: runtime/default, docker/default, localhost/*"
    ),
    checks=(
        Check(
            "seccompProfile_baseline",
            Level.BASELINE,
            (
                Variant(since(0), _judge_annotations, "the alpha annotations are judged"),
                Variant(since(19), _judge_baseline, "the fields are judged instead of the annotations"),
            ),
        ),
        Check(
            "seccompProfile_restricted",
            Level.RESTRICTED,
            (
                Variant(since(19), _judge_restricted),
                Variant(since(25), _judge_restricted_unless_windows, "pods with spec.os.name windows are exempt"),
            ),
        ),
    ),
)
"""Forbids Unconfined, and at the restricted level demands a profile."""
