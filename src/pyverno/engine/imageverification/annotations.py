"""Annotations that record which images a rule verified.

The statuses are for people. A record counts, in scans and for updates that leave an image as it was, only with the seal
of a key of the installation, which binds it to the object, the policy, the content of the rule, the images and their
digests. What one policy found never satisfies another.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from pyverno.engine.imageverification.recordkeys import RecordKeys, Seal
from pyverno.errors import DocumentError, ValueSyntaxError
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject, decode, encode
from pyverno.kube.time.gotime import parse_rfc3339

# trust rows: image-record

__all__ = [
    "LEGACY_ANNOTATION",
    "NO_RECORD",
    "SCOPED_ANNOTATION",
    "ImageRecord",
    "ImageStatus",
    "RecordedObject",
    "RuleRecord",
    "carries_records",
    "read_record",
    "sealed",
    "with_record",
    "without_foreign",
]

SCOPED_ANNOTATION: Final = "kyverno.io/verify-images-scoped"
LEGACY_ANNOTATION: Final = "kyverno.io/verify-images"
"""For people: nothing reads it, because it does not state which policy verified an image."""

_VERSION: Final = 1
_CREATION_SECONDS: Final = 120
"""Between the seal of an object that is created, which has no uid yet, and its `creationTimestamp`."""


class ImageStatus(StrEnum):
    """The result of a rule for an image."""

    PASS = "pass"  # noqa: S105 - a status, not a password
    FAIL = "fail"
    SKIP = "skip"


class ImageRecord(NamedTuple):
    """What a rule found about an image: the digest that it verified, and a hash of demands that have variables."""

    status: ImageStatus
    digest: str = ""
    demands: str = ""


class RuleRecord(NamedTuple):
    """The images that a rule recorded, with the seal; `content` is a hash of what the rule demanded.

    `uid` is that of an object that existed already; `made` is the time of the seal in seconds since 1970.
    """

    images: Mapping[str, ImageRecord]
    content: str = ""
    made: int = 0
    uid: str = ""
    seal: Seal | None = None


NO_RECORD: Final = RuleRecord({})


class RecordedObject(NamedTuple):
    """An object as records are bound to it.

    `name` is empty while the API server has yet to make one that begins with `prefix`; `created` is the creation time
    as written, which only the API server writes.
    """

    gvk: GVK
    namespace: str
    name: str = ""
    prefix: str = ""
    uid: str = ""
    created: str = ""

    @classmethod
    def of(cls, gvk: GVK, namespace: str, body: JSON, *, is_stored: bool = True) -> RecordedObject:
        """Return the identity of an object; a request to create one cannot state uid and time."""
        metadata = _object(_object(body).get("metadata"))
        name, prefix, uid, created = (
            str(metadata.get(field) or "") for field in ("name", "generateName", "uid", "creationTimestamp")
        )
        return cls(gvk, namespace, name, prefix, uid if is_stored else "", created if is_stored else "")

    def names(self) -> tuple[tuple[str, str], ...]:
        """Return by which names a record that was sealed before the object existed may know it."""
        return tuple(each for each in (("name", self.name), ("prefix", self.prefix)) if each[1])

    def was_created_about(self, moment: int) -> bool:
        """Return whether the API server created the object about a time."""
        try:
            return abs(parse_rfc3339(self.created).nanoseconds // 1_000_000_000 - moment) <= _CREATION_SECONDS
        except ValueSyntaxError:
            return False


def sealed(record: RuleRecord, to: RecordedObject, policy: str, rule: str, keys: RecordKeys) -> RuleRecord:
    """Return a record with a seal for an object; without one when there is no key."""
    bound = ("uid", to.uid) if to.uid else next(iter(to.names()), ("name", ""))
    record = record._replace(uid=to.uid)
    return record._replace(seal=keys.seal(_message(record, bound, to, policy, rule)))


def read_record(resource: JSON, of: RecordedObject, policy: str, rule: str, keys: RecordKeys) -> RuleRecord:
    """Return what a rule recorded about the images of an object; NO_RECORD for a record that our keys do not seal."""
    if not keys:
        return NO_RECORD
    body = _body(resource)
    record = _parsed(_part(body, "policies", policy, rule), _part(body, "seals", policy, rule))
    if record is None:
        return NO_RECORD
    if record.uid:
        bounds: tuple[tuple[str, str], ...] = (("uid", of.uid),) if record.uid == of.uid else ()
    else:
        bounds = of.names() if of.was_created_about(record.made) else ()
    is_ours = any(keys.holds(_message(record, each, of, policy, rule), record.seal) for each in bounds)
    return record if is_ours else NO_RECORD  # guard: a record counts with a seal of ours


def with_record(resource: JSONObject, policy: str, rule: str, record: RuleRecord) -> JSONObject:
    """Return the resource with the record of a rule, which replaces earlier ones of this rule.

    An empty record is removed. Returns the same object when nothing changes.
    """
    body = _body(resource)
    statuses = {image: found.status.value for image, found in sorted(record.images.items())}
    policies = _with_part(body.get("policies"), policy, rule, statuses)
    seals = _with_part(body.get("seals"), policy, rule, _seal_json(record) if statuses else {})
    legacy = _decode(_annotations(resource).get(LEGACY_ANNOTATION))
    return _with_annotations(resource, policies, seals, {**legacy, **statuses} if statuses else None)


def carries_records(resource: JSON) -> bool:
    """Return whether an object has an annotation of records, whoever wrote it."""
    annotations = _annotations(resource)
    return SCOPED_ANNOTATION in annotations or LEGACY_ANNOTATION in annotations


def without_foreign(resource: JSON, old: JSON, of: RecordedObject, keys: RecordKeys) -> JSON:
    """Return a resource that a request brings with the records that are ours, and were in the object before.

    On creation none is. An update keeps those of an object of which nothing but metadata and status changes, as rules
    that do not judge the request would otherwise have approved images that they never saw.
    """
    if not isinstance(resource, dict) or not carries_records(resource):
        return resource
    body, before = _body(resource), _body(old)
    policies: JSONObject = {}
    seals: JSONObject = {}
    kept: dict[str, set[JSON]] = {}
    is_unchanged = isinstance(old, dict) and _content(old) == _content(resource)
    for policy, rules in _object(body.get("policies")).items() if is_unchanged else ():
        for rule, statuses in _object(rules).items():
            parts = [_part(body, name, policy, rule) for name in ("policies", "seals")]
            if parts != [_part(before, name, policy, rule) for name in ("policies", "seals")]:
                continue
            if read_record(old, of, policy, rule, keys) is not NO_RECORD:
                policies, seals = (
                    _with_part(whole, policy, rule, part) for whole, part in zip((policies, seals), parts, strict=True)
                )
                for image, status in _object(statuses).items():
                    kept.setdefault(image, set()).add(status)
    legacy = _decode(_annotations(resource).get(LEGACY_ANNOTATION))
    supported = {
        image: found for image, found in legacy.items() if isinstance(found, str) and found in kept.get(image, ())
    }
    return _with_annotations(resource, policies, seals, supported)


def _message(record: RuleRecord, bound: tuple[str, str], of: RecordedObject, policy: str, rule: str) -> bytes:
    images: list[JSON] = [[image, *found] for image, found in sorted(record.images.items())]
    place: list[JSON] = [of.gvk.group, of.gvk.kind, of.namespace, *bound]
    return encode([_VERSION, place, policy, rule, record.content, record.made, images]).encode("utf-8", "surrogatepass")


def _parsed(statuses: JSONObject, seal: JSONObject) -> RuleRecord | None:
    known = {status.value: status for status in ImageStatus}
    details = _object(seal.get("images"))
    made = seal.get("made")
    texts = [seal.get(name, "") for name in ("content", "uid", "key", "mac")]
    if not isinstance(made, int) or not all(isinstance(text, str) for text in texts):
        return None
    images: dict[str, ImageRecord] = {}
    for image, text in statuses.items():
        detail = details.get(image)
        if not isinstance(text, str) or text not in known or not isinstance(detail, list) or len(detail) != 2:
            return None
        if not all(isinstance(each, str) for each in detail):
            return None
        images[image] = ImageRecord(known[text], *detail)
    content, uid, key, code = texts
    return RuleRecord(images, content, made, uid, Seal(key, code))


def _seal_json(record: RuleRecord) -> JSONObject:
    if record.seal is None:
        return {}
    return {
        "content": record.content,
        "images": {image: [found.digest, found.demands] for image, found in sorted(record.images.items())},
        "key": record.seal.key,
        "mac": record.seal.code,
        "made": record.made,
        **({"uid": record.uid} if record.uid else {}),
    }


def _with_annotations(
    resource: JSONObject, policies: JSONObject, seals: JSONObject, legacy: JSONObject | None
) -> JSONObject:
    """Return the resource with these records; `legacy` is None where the older annotation stays."""
    annotations = _annotations(resource)
    changed = {name: text for name, text in annotations.items() if name != SCOPED_ANNOTATION}
    if policies:
        body: JSONObject = {"version": _VERSION, "policies": policies}
        changed[SCOPED_ANNOTATION] = encode({**body, "seals": seals} if seals else body)
    if legacy is not None:
        changed.pop(LEGACY_ANNOTATION, None)
        if legacy:
            changed[LEGACY_ANNOTATION] = encode(legacy)
    if changed == annotations:
        return resource
    metadata = {**_object(resource.get("metadata")), "annotations": changed}
    if not changed:
        del metadata["annotations"]
    return {**resource, "metadata": metadata}


def _with_part(whole: JSON, policy: str, rule: str, part: JSONObject) -> JSONObject:
    found = dict(_object(whole))
    rules = {name: each for name, each in _object(found.pop(policy, None)).items() if name != rule}
    if part:
        rules[rule] = part
    return found | ({policy: rules} if rules else {})


def _part(body: JSONObject, name: str, policy: str, rule: str) -> JSONObject:
    return _object(_object(_object(body.get(name)).get(policy)).get(rule))


def _body(resource: JSON) -> JSONObject:
    body = _decode(_annotations(resource).get(SCOPED_ANNOTATION))
    return body if body.get("version") == _VERSION else {}


def _content(resource: JSON) -> JSONObject:
    return {name: value for name, value in _object(resource).items() if name not in ("metadata", "status")}


def _annotations(resource: JSON) -> JSONObject:
    return _object(_object(_object(resource).get("metadata")).get("annotations"))


def _decode(text: JSON) -> JSONObject:
    try:
        return _object(decode(text.encode())) if isinstance(text, str) else {}
    except (DocumentError, UnicodeError):
        return {}


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}
