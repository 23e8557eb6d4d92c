"""Audit annotations of policies, webhooks and plugins on requests, which an API server writes to its log.

The newest are kept in memory. This module must never hold the body of an object.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from pyverno.kube.json import encode
from pyverno.value import dataclass

__all__ = ["AuditLog", "AuditRecord"]

_KEPT = 1000
_ROUTINE = ("mutation.webhook.admission.k8s.io/", "patch.webhook.admission.k8s.io/")
"""Beginnings of keys that every mutating webhook leaves behind; they are kept, but not shown in lines."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One request with annotations: its user, its target, the HTTP code, and the annotations."""

    method: str
    path: str
    user: str
    code: int
    annotations: Mapping[str, str]

    def to_line(self) -> str:
        """Return the annotations as one line of JSON, without routine ones; empty when no others exist.

        >>> AuditRecord("POST", "/api", "jane", 201, {"policy/key": "v"}).to_line()
        '{"policy/key":"v"}'
        """
        told = {key: value for key, value in self.annotations.items() if not key.startswith(_ROUTINE)}
        return encode(told) if told else ""


class AuditLog:
    """The newest records, the oldest first."""

    def __init__(self, size: int = _KEPT) -> None:
        """Take how many records are kept."""
        self._records: deque[AuditRecord] = deque(maxlen=size)

    @property
    def records(self) -> tuple[AuditRecord, ...]:
        """The records that are kept."""
        return tuple(self._records)

    def add(self, record: AuditRecord) -> None:
        """Keep a record, unless nothing was noted."""
        if record.annotations:
            self._records.append(record)
