"""A notice: one change of one result, as it waits for delivery and as targets send it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import orjson

from pyverno.kube.json import JSONObject
from pyverno.ui.store.rows import as_time
from pyverno.ui.store.writer import Change
from pyverno.value import dataclass, field

__all__ = ["CHANGED", "OPENED", "RESOLVED", "Notice", "clip", "notice_of"]

OPENED: Final = "opened"
CHANGED: Final = "changed"
RESOLVED: Final = "resolved"

_MOST_MESSAGE: Final = 4000
_MOST_TEXT: Final = 512
_MOST_PROPERTIES: Final = 50
_TEXTS: Final = (
    "id",
    "key",
    "event",
    "cluster",
    "before",
    "status",
    "source",
    "policy",
    "rule",
    "category",
    "severity",
    "message",
    "api_version",
    "kind",
    "namespace",
    "name",
)


@dataclass(frozen=True, slots=True)
class Notice:
    """A change; `id` is unique for it, `key` stays the same for all changes of one result.

    `before` is the status that a target knows; `status` is the one now, or the last one of a resolved result.
    """

    id: str
    key: str
    event: str
    at: int
    cluster: str
    before: str
    status: str
    source: str
    policy: str
    rule: str
    category: str
    severity: str
    message: str
    api_version: str
    kind: str
    namespace: str
    name: str
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_resolved(self) -> bool:
        """Return whether the problem is resolved."""
        return self.event == RESOLVED

    @property
    def resource(self) -> str:
        """The object as one line: kind, namespace and name."""
        place = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.kind} {place}".strip() or "no resource"

    @property
    def outcome(self) -> str:
        """The status to show."""
        return RESOLVED if self.is_resolved else self.status

    @property
    def title(self) -> str:
        """One line for a subject or heading."""
        return clip(f"{self.outcome}: {self.policy} on {self.resource}", 200)

    def encode(self) -> str:
        """Return the notice as text for the queue."""
        body = {name: getattr(self, name) for name in _TEXTS}
        return orjson.dumps({**body, "at": self.at, "properties": dict(self.properties)}).decode()

    @classmethod
    def decode(cls, text: str) -> Notice:
        """Read what `encode` returned."""
        body = orjson.loads(text)
        return cls(**{name: body[name] for name in _TEXTS}, at=body["at"], properties=body["properties"])

    def to_json(self, custom: Mapping[str, str]) -> JSONObject:
        """Return the result with the fields of Policy Reporter's webhook, and three more: id, event, cluster."""
        properties = {**self.properties, **custom}
        return {
            "id": self.id,
            "event": self.event,
            "cluster": self.cluster,
            "previousStatus": self.before,
            "message": self.message,
            "policy": self.policy,
            "rule": self.rule,
            "status": self.status,
            "severity": self.severity,
            "category": self.category,
            "scored": True,
            "properties": properties,
            "resource": {
                "apiVersion": self.api_version,
                "kind": self.kind,
                "name": self.name,
                "namespace": self.namespace,
                "uid": "",
            },
            "creationTimestamp": as_time(self.at),
            "source": self.source,
        }


def notice_of(change: Change, event: str) -> Notice:
    """Return the notice of a change; long texts are cut."""
    found, ref = change.result.finding, change.result.finding.resource
    parts = (change.cluster, change.result.source, found.policy, found.rule, ref.api_version, ref.kind, ref.namespace)
    own = found.properties.get("resultID", "")
    key = hashlib.blake2b("\0".join((*parts, ref.name, own)).encode("utf-8", "replace"), digest_size=16)
    name = key.copy()
    name.update(f"\0{event}\0{change.before}\0{change.after}\0{change.at}".encode())
    items = [*found.properties.items()][:_MOST_PROPERTIES]
    return Notice(
        id=name.hexdigest(),
        key=key.hexdigest(),
        event=event,
        at=change.at,
        cluster=change.cluster,
        before=change.before,
        status=change.before if event == RESOLVED else change.after,
        source=clip(change.result.source),
        policy=clip(found.policy),
        rule=clip(found.rule),
        category=clip(found.category),
        severity=found.severity,
        message=clip(found.message, _MOST_MESSAGE),
        api_version=clip(ref.api_version),
        kind=clip(ref.kind),
        namespace=clip(ref.namespace),
        name=clip(ref.name),
        properties={clip(name, 128): clip(text) for name, text in items},
    )


def clip(text: str, most: int = _MOST_TEXT) -> str:
    """Return a text with at most so many characters, the last of them an ellipsis where it is cut.

    >>> clip("abcdef", 4)
    'abc…'
    """
    kept = text.encode("utf-8", "replace").decode()  # lone surrogates are in no protocol
    return kept if len(kept) <= most else f"{kept[: most - 1]}…"
