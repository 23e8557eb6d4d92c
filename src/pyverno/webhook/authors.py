"""The author of a namespaced policy: the user whose request gave the policy its content, in an annotation of ours.

The webhook that mutates policies writes the annotation, and the one that validates them rejects any other value: no
user can name another user as the author. A request that leaves the content alone leaves the author alone. This module
must not check permissions.
"""

from __future__ import annotations

from typing import Final

import orjson

from pyverno.engine.request import User
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.kube.json import JSON, JSONObject
from pyverno.policy.kinds import Family, find_kind

# trust rows: policy-author

__all__ = ["AUTHOR", "author_of", "has_new_author", "is_authored", "is_forged", "is_unrecorded", "record_author"]

AUTHOR: Final = "pyverno.io/author"
"""On a namespaced policy: its author, as JSON of the request's `userInfo`. To become the author, write any value."""

_FAMILIES: Final = (Family.RULES, Family.CEL, Family.CLEANUP)
_DOMAINS: Final = ("kyverno.io", "pyverno.io")
_NOTED: Final = "pyverno.io/last-change"
"""What our controllers note on objects that rules make, whoever gave them the labels of one."""

_POINTER: Final = f"/metadata/annotations/{AUTHOR.replace('/', '~1')}"


def is_authored(group: str, kind: str) -> bool:
    """Return whether objects of a kind have an author: policies that are confined to a namespace.

    >>> is_authored("kyverno.io", "Policy"), is_authored("kyverno.io", "ClusterPolicy")
    (True, False)
    """
    row = find_kind(group, kind)
    return row is not None and row.namespaced and row.family in _FAMILIES


def author_of(body: JSON) -> User | None:
    """Return the author of a policy, None where none is recorded.

    >>> author_of({"metadata": {"annotations": {"pyverno.io/author": '{"username": "alice"}'}}}).username
    'alice'
    >>> author_of({"metadata": {"annotations": {"pyverno.io/author": "alice"}}}) is None
    True
    """
    text = _annotations(body).get(AUTHOR)
    try:
        info = orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(info, dict) or not isinstance(info.get("username"), str) or not info["username"]:
        return None
    return User.from_json(info)


def record_author(admission_request: AdmissionRequest) -> AdmissionResponse:
    """Return the patch that records the author of a policy, for every kind of policy that has one."""
    body = admission_request.object
    if admission_request.subresource or not isinstance(body, dict) or not _is_authored(admission_request):
        return AdmissionResponse()
    current, wanted = _annotations(body).get(AUTHOR), _expected(admission_request)
    if current == wanted:
        return AdmissionResponse()
    if wanted is None:
        return AdmissionResponse(patch=({"op": "remove", "path": _POINTER},))
    if not _annotations(body):
        patch: JSONObject = {"op": "add", "path": "/metadata/annotations", "value": {AUTHOR: wanted}}
        return AdmissionResponse(patch=(patch,))
    return AdmissionResponse(patch=({"op": "add", "path": _POINTER, "value": wanted},))


def is_forged(admission_request: AdmissionRequest) -> bool:
    """Return whether a policy, as all mutations left it, names another author than the one to record."""
    return _is_authored(admission_request) and _annotations(admission_request.object).get(AUTHOR) != _expected(
        admission_request
    )


def is_unrecorded(admission_request: AdmissionRequest) -> bool:
    """Return whether a policy names no author at all, so that the webhook which records authors was not called."""
    return AUTHOR not in _annotations(admission_request.object)


def has_new_author(admission_request: AdmissionRequest) -> bool:
    """Return whether the user of a request becomes the author of the policy: it is new, or its content changes."""
    if not _is_authored(admission_request):
        return False
    old, new = admission_request.old_object, admission_request.object
    return not isinstance(old, dict) or _content(old) != _content(new) or _is_claimed(old, new)


def _expected(admission_request: AdmissionRequest) -> str | None:
    """Return the annotation that a policy must have after a request, None where it must have none."""
    if has_new_author(admission_request):  # guard: a policy names the user who wrote it
        info = admission_request.request.get("userInfo")
        user = User.from_json(info if isinstance(info, dict) else {})
        return orjson.dumps(user.to_json(), option=orjson.OPT_SORT_KEYS).decode()
    kept = _annotations(admission_request.old_object).get(AUTHOR)
    return kept if isinstance(kept, str) else None


def _is_authored(admission_request: AdmissionRequest) -> bool:
    return is_authored(admission_request.kind.group, admission_request.kind.kind)


def _is_claimed(old: JSONObject, new: JSON) -> bool:
    """Return whether a request writes the annotation: its user wants to become the author."""
    value = _annotations(new).get(AUTHOR)
    return value is not None and value != _annotations(old).get(AUTHOR)


def _content(body: JSON) -> object:
    """Return what an author answers for: the spec, and our annotations, some of which change what a policy does.

    Those of others do nothing: a tool that writes them on everything must not lend a policy its permissions. No more
    must our controllers.
    """
    written = _annotations(body).items()
    annotations = {key: value for key, value in written if _is_ours(key)}  # guard: who notes something is no author
    return (body.get("spec") if isinstance(body, dict) else None), annotations


def _is_ours(key: str) -> bool:
    return key not in (AUTHOR, _NOTED) and key.partition("/")[0].endswith(_DOMAINS)


def _annotations(body: JSON) -> JSONObject:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
