"""Names of versions of templates: short hashes in the alphabet of generated names, and ControllerRevisions.

Equal templates have equal hashes, different ones different hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import orjson

from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.objects import (
    at,
    is_owned_by,
    labels_of,
    name_of,
    namespace_of,
    number_at,
    owner_reference,
    uid_of,
)
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.status import StatusError

__all__ = [
    "ALPHABET",
    "drop_history",
    "history_excess",
    "keep_revisions",
    "revision_of",
    "short_hash",
    "sorted_revisions",
    "template_of",
]

REVISIONS = "controllerrevisions.apps"
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def safe_text(text: str) -> str:
    """Write a text in characters that cannot form words.

    >>> safe_text("1234567890")
    '56789bcdf4'
    """
    return "".join(ALPHABET[ord(character) % len(ALPHABET)] for character in text)


def short_hash(value: JSON, collisions: int = 0) -> str:
    """Return eight to ten characters that stand for a JSON value; `collisions` makes another hash of the same value.

    >>> short_hash({"a": 1, "b": 2}) == short_hash({"b": 2, "a": 1}), short_hash({}) == short_hash({}, 1)
    (True, False)
    """
    data = orjson.dumps([value, collisions], option=orjson.OPT_SORT_KEYS)
    number = int.from_bytes(blake2b(data, digest_size=4).digest(), "big")
    return safe_text(f"{number:08d}")


def sorted_revisions(revisions: Iterable[JSONObject]) -> list[JSONObject]:
    """Return ControllerRevisions, the oldest first."""
    return sorted(revisions, key=lambda item: (number_at(item, "revision"), name_of(item)))


def revision_of(owner: JSONObject, known: Sequence[JSONObject], *, hash_label: str) -> JSONObject:
    """Return the ControllerRevision of an owner's template: a known one with equal content, or a new one.

    The result has the highest number; the caller writes a known revision whose number has changed.
    """
    template: JSONObject = at(owner, "spec", "template", default={})
    # the data are a patch that puts the template back, as kubectl rollout undo applies it
    data: JSONObject = {"spec": {"template": {**template, "$patch": "replace"}}}
    ordered = sorted_revisions(known)
    number = number_at(ordered[-1], "revision") + 1 if ordered else 1
    for position, revision in enumerate(reversed(ordered)):
        if equal(revision.get("data"), data):
            return revision if position == 0 else {**revision, "revision": number}
    digest = short_hash(template, number_at(owner, "status", "collisionCount"))
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{name_of(owner)}-{digest}",
            "namespace": namespace_of(owner),
            "labels": {**labels_of(template), hash_label: digest},
            "ownerReferences": [owner_reference(owner)],
        },
        "data": data,
        "revision": number,
    }


def template_of(revision: JSONObject) -> JSONObject:
    """Return the template that a ControllerRevision keeps."""
    template: JSONObject = at(revision, "data", "spec", "template", default={})
    return {key: value for key, value in template.items() if key != "$patch"}


async def keep_revisions(context: ControllerContext, owner: JSONObject, *, hash_label: str) -> list[JSONObject]:
    """Write the ControllerRevision of an owner's template; return all of its revisions, the newest last."""
    known = [item for item in context.client.list(REVISIONS, namespace_of(owner)) if is_owned_by(item, owner)]
    wanted = revision_of(owner, known, hash_label=hash_label)
    if uid_of(wanted):
        others = [item for item in known if uid_of(item) != uid_of(wanted)]
        is_same = any(item is wanted for item in known)
        return [*sorted_revisions(others), wanted if is_same else await context.client.update(REVISIONS, wanted)]
    try:
        return [*sorted_revisions(known), await context.client.create(REVISIONS, wanted)]
    except StatusError as error:
        if error.reason == "AlreadyExists":
            count = number_at(owner, "status", "collisionCount") + 1
            resource = f"{str(owner['kind']).lower()}s.apps"
            await context.put_status(resource, owner, {**(owner.get("status") or {}), "collisionCount": count})
        raise


async def drop_history(
    context: ControllerContext, owner: JSONObject, revisions: Sequence[JSONObject], live: Iterable[str]
) -> None:
    """Delete the unused revisions beyond the history limit."""
    limit = number_at(owner, "spec", "revisionHistoryLimit", default=10)
    for item in history_excess(revisions, live, limit):
        await context.client.delete(REVISIONS, name_of(item), namespace_of(item), uid=uid_of(item))


def history_excess(revisions: Sequence[JSONObject], live: Iterable[str], limit: int) -> list[JSONObject]:
    """Return the revisions to delete: the oldest unused ones, so that `limit` of them stay."""
    used = set(live)
    unused = [item for item in sorted_revisions(revisions) if name_of(item) not in used]
    return unused[: max(len(unused) - limit, 0)]
