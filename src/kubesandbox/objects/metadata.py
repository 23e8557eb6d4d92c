"""Metadata of objects: how it is filled in by the server, and what is wrong with it.

Texts are those of apimachinery. Names are not judged here, each kind has its own rules for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from kubesandbox.parsing.requests import go_quote
from pyverno.kube.json import JSON, JSONObject, encode, equal
from pyverno.kube.labelsyntax import label_key_problems, label_value_problems
from pyverno.kube.status import FieldError

__all__ = [
    "SYSTEM_FIELDS",
    "generated_name",
    "is_same",
    "is_same_but_metadata",
    "metadata_errors",
    "metadata_of",
    "metadata_update_errors",
    "ordered",
    "timestamp",
    "with_metadata",
]

NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SYSTEM_FIELDS = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
    "selfLink",
)
"""Metadata that only the server sets."""
_LONGEST_BASE = 58
_RANDOM_LETTERS = 5
_MAX_ANNOTATIONS = 256 * 1024
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_LENIENT_GROUPS = frozenset({"policy", "coordination.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io"})
"""Groups whose finalizers, like those of custom resources, need no domain."""
_BAD_OWNERS = frozenset({("v1", "Event")})
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_VERSION_FORM = re.compile(r"(?:[^/]+/)?[^/]+")


def timestamp(moment: datetime) -> str:
    """Write a moment (UTC) as Kubernetes writes times: in whole seconds.

    >>> from datetime import UTC
    >>> timestamp(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC))
    '2026-01-02T03:04:05Z'
    """
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def generated_name(base: str, choose: Callable[[str], str]) -> str:
    """Return a name that begins with `generateName`; `choose` picks one of the letters of a text.

    >>> generated_name("web-", lambda letters: letters[0])
    'web-bbbbb'
    """
    return base[:_LONGEST_BASE] + "".join(choose(NAME_ALPHABET) for _ in range(_RANDOM_LETTERS))


def metadata_of(body: JSONObject) -> JSONObject:
    """Return the metadata of an object, empty where there is none."""
    found: JSON = body.get("metadata")
    return found if isinstance(found, dict) else {}


def with_metadata(body: JSONObject, **changes: JSON) -> JSONObject:
    """Return an object with changed metadata; None takes a field away.

    >>> with_metadata({"metadata": {"name": "a", "uid": "1"}}, uid=None, generation=2)
    {'metadata': {'name': 'a', 'generation': 2}}
    """
    metadata = {**metadata_of(body), **changes}
    return {**body, "metadata": {key: value for key, value in metadata.items() if value is not None}}


def ordered(body: JSONObject, api_version: str, kind: str) -> JSONObject:
    """Return an object whose first fields are apiVersion, kind and metadata, which the writing of lists relies on.

    >>> ordered({"spec": {}, "metadata": {}}, "v1", "Pod")
    {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {}, 'spec': {}}
    """
    head: JSONObject = {"apiVersion": api_version, "kind": kind, "metadata": metadata_of(body)}
    return head | {key: value for key, value in body.items() if key not in head}


def is_same_but_metadata(before: JSONObject, after: JSONObject, *, but: Iterable[str] = ()) -> bool:
    """Return whether two objects want the same: everything besides metadata and the fields `but` is equal."""
    ignored = {"metadata", "apiVersion", "kind", *but}
    return all(is_same(before.get(key), after.get(key)) for key in {*before, *after} - ignored)


def is_same(before: JSON, after: JSON) -> bool:
    """Return whether two values are equal, however deep they are."""
    try:
        return bool(before == after)
    except RecursionError:
        return equal(before, after)


def metadata_errors(body: JSONObject) -> list[FieldError]:
    """Return the errors in the metadata of an object, except for its name."""
    return [*_note_errors(metadata_of(body)), *_finalizer_errors(body)]


def _note_errors(metadata: JSONObject) -> list[FieldError]:
    return [*_label_errors(metadata), *_annotation_errors(metadata), *_owner_errors(metadata)]


def metadata_update_errors(body: JSONObject, old: JSONObject) -> list[FieldError]:
    """Return what an update may not do to the metadata of an object.

    Upstream judges metadata twice or three times then, by the kind, and reports each cause as often.
    """
    changed, kind = _change_errors(body, old), body.get("kind")
    noted = _note_errors(metadata_of(body))
    errors = [*changed, *noted]
    if kind != "PodDisruptionBudget":
        errors += [*([] if kind in _JUDGED_LESS else changed), *noted]
    return [*errors, *metadata_errors(body)] if kind in _JUDGED_WHOLE else errors


_JUDGED_LESS = frozenset(
    {
        *("PersistentVolume", "LimitRange", "EndpointSlice"),
        *("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
    }
)
_JUDGED_WHOLE = frozenset(
    {
        *("ConfigMap", "Secret", "ServiceAccount", "Pod", "Namespace", "Node", "Endpoints", "Job"),
        *("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"),
        *("NetworkPolicy", "Ingress", "IngressClass", "StorageClass", "PersistentVolume", "PersistentVolumeClaim"),
    }
)


def _change_errors(body: JSONObject, old: JSONObject) -> list[FieldError]:
    new, before = metadata_of(body), metadata_of(old)
    errors: list[FieldError] = []
    if before.get("deletionTimestamp"):
        known = before.get("finalizers") or []
        added = [name for name in new.get("finalizers") or [] if name not in known]
        if added:
            shown = "{" + ", ".join(map(go_quote, sorted(added))) + "}"
            why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{shown}"
            errors.append(FieldError("metadata.finalizers", "Forbidden", why))
    for field in _IMMUTABLE:
        if new.get(field) != before.get(field):
            shown = encode(new[field]) if field in new else '""'
            errors.append(FieldError(f"metadata.{field}", "Invalid value", "field is immutable", shown))
    return errors


def _label_errors(metadata: JSONObject) -> Iterable[FieldError]:
    for key, value in sorted((metadata.get("labels") or {}).items()):
        for problem in label_key_problems(key):
            yield FieldError("metadata.labels", "Invalid value", problem, go_quote(key))
        for problem in label_value_problems(value):
            yield FieldError("metadata.labels", "Invalid value", problem, go_quote(value))


def _annotation_errors(metadata: JSONObject) -> Iterable[FieldError]:
    annotations: dict[str, Any] = metadata.get("annotations") or {}
    for key in sorted(annotations):
        # upstream: annotation keys are judged in lower case
        for problem in label_key_problems(key.lower()):
            yield FieldError("metadata.annotations", "Invalid value", problem, go_quote(key))
    if sum(_size(key) + _size(value) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
        yield FieldError("metadata.annotations", "Too long", f"may not be more than {_MAX_ANNOTATIONS} bytes")


def _size(text: JSON) -> int:
    return len(str(text).encode("utf-8", "replace"))


def _owner_errors(metadata: JSONObject) -> Iterable[FieldError]:
    path = "metadata.ownerReferences"
    owners: list[JSONObject] = metadata.get("ownerReferences") or []
    controllers: list[str] = []
    for owner in owners:
        version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
        if not version:
            yield FieldError(f"{path}.apiVersion", "Invalid value", "version must not be empty", go_quote(version))
        elif not _VERSION_FORM.fullmatch(version):
            why = f"unexpected GroupVersion string: {version}"
            yield FieldError(f"{path}.apiVersion", "Invalid value", why, go_quote(version))
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield FieldError(f"{path}.{field}", "Invalid value", "must not be empty", '""')
        if (version, kind) in _BAD_OWNERS:
            why = f"/{version}, Kind={kind} is disallowed from being an owner"
            yield FieldError(path, "Invalid value", why, _format_owner(owner))
        if owner.get("controller"):
            controllers.append(f"{kind}/{owner.get('name')}")
    if len(controllers) > 1:
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        yield FieldError(path, "Invalid value", why, f"[{','.join(map(_format_owner, owners))}]")


def _format_owner(owner: JSONObject) -> str:
    """Write an owner as Go does: fields in the order of the struct, the first four also when they are empty."""
    head = {field: owner.get(field) or "" for field in _OWNER_FIELDS[:4]}
    rest = {field: owner[field] for field in _OWNER_FIELDS[4:] if owner.get(field) is not None}
    return "{" + ",".join(f"{encode(key)}:{encode(value)}" for key, value in (head | rest).items()) + "}"


def _finalizer_errors(body: JSONObject) -> Iterable[FieldError]:
    path = "metadata.finalizers"
    finalizers: list[str] = metadata_of(body).get("finalizers") or []
    for name in finalizers:
        for problem in label_key_problems(name):
            yield FieldError(path, "Invalid value", problem, go_quote(name))
    group = str(body.get("apiVersion") or "").rpartition("/")[0]
    is_strict = group not in _LENIENT_GROUPS and ("." not in group or group.endswith(".k8s.io"))
    for index, name in enumerate(finalizers if is_strict else ()):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield FieldError(f"{path}[{index}]", "Invalid value", why, go_quote(name))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        yield FieldError(path, "Invalid value", why, encode(finalizers))
