"""Annotations that record which images a rule verified.

They are for people, for scans, and for updates that leave an image as it was. Admission never believes the annotation
of a request: a rule replaces its part as a whole, and the validating webhook verifies for itself. What one policy found
never satisfies another.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from pyverno.errors import DocumentError
from pyverno.kube.json import JSON, JSONObject, decode, encode

__all__ = ["LEGACY_ANNOTATION", "SCOPED_ANNOTATION", "ImageStatus", "read_statuses", "with_statuses"]

SCOPED_ANNOTATION: Final = "kyverno.io/verify-images-scoped"
LEGACY_ANNOTATION: Final = "kyverno.io/verify-images"
"""For people: nothing reads it, because it does not state which policy verified an image."""

_VERSION: Final = 1


class ImageStatus(StrEnum):
    """The result of a rule for an image."""

    PASS = "pass"  # noqa: S105 - a status, not a password
    FAIL = "fail"
    SKIP = "skip"


def read_statuses(resource: JSON, policy: str, rule: str) -> Mapping[str, ImageStatus]:
    """Return what a rule recorded about images; nothing for an annotation of another form.

    >>> text = '{"version":1,"policies":{"/p":{"r":{"docker.io/a:1":"pass"}}}}'
    >>> read_statuses({"metadata": {"annotations": {SCOPED_ANNOTATION: text}}}, "/p", "r")
    {'docker.io/a:1': <ImageStatus.PASS: 'pass'>}
    """
    recorded = _object(_object(_policies(resource).get(policy)).get(rule))
    known = {status.value: status for status in ImageStatus}
    return {image: known[text] for image, text in recorded.items() if isinstance(text, str) and text in known}


def with_statuses(resource: JSONObject, policy: str, rule: str, statuses: Mapping[str, ImageStatus]) -> JSONObject:
    """Return the resource with a rule's statuses, which replace earlier ones of this rule.

    Without statuses the part of the rule is removed. Returns the same object when nothing changes.
    """
    metadata = _object(resource.get("metadata"))
    annotations = _object(metadata.get("annotations"))
    policies = dict(_policies(resource))
    rules = {name: found for name, found in _object(policies.get(policy)).items() if name != rule}
    if statuses:
        rules[rule] = {image: status.value for image, status in sorted(statuses.items())}
    policies = {name: found for name, found in policies.items() if name != policy} | ({policy: rules} if rules else {})
    changed = dict(annotations)
    changed.pop(SCOPED_ANNOTATION, None)
    if policies:
        changed[SCOPED_ANNOTATION] = encode({"version": _VERSION, "policies": policies})
    if statuses:
        legacy = _decode(annotations.get(LEGACY_ANNOTATION))
        changed[LEGACY_ANNOTATION] = encode({**legacy, **{image: found.value for image, found in statuses.items()}})
    if changed == annotations:
        return resource
    return {**resource, "metadata": {**metadata, "annotations": changed}}


def _policies(resource: JSON) -> JSONObject:
    annotations = _object(_object(_object(resource).get("metadata")).get("annotations"))
    body = _decode(annotations.get(SCOPED_ANNOTATION))
    return _object(body.get("policies")) if body.get("version") == _VERSION else {}


def _decode(text: JSON) -> JSONObject:
    try:
        return _object(decode(text.encode())) if isinstance(text, str) else {}
    except DocumentError:
        return {}


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}
