"""Several observers of answers as one.

This module must never swallow an answer: every observer is told, also when one of them breaks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.webhook.admission import AdmissionOutcome
from pyverno.webhook.server import Observer

__all__ = ["AuditObserver", "Observers"]

log = logging.getLogger("pyverno.webhook")


@runtime_checkable
class AuditObserver(Protocol):
    """An observer that is also told of policies whose results came too late for the answer."""

    def audited(self, question: AdmissionRequest, path: str, judged: AdmissionOutcome, seconds: float) -> None:
        """Take note of a review after the answer, which `judged` still holds."""
        ...


class Observers:
    """Tells each observer what the server told it; one that raises is logged and does not disturb the others."""

    def __init__(self, *observers: Observer) -> None:
        """Take the observers in the order in which they are told."""
        self._observers: Sequence[Observer] = observers

    def answered(self, question: AdmissionRequest, path: str, judged: AdmissionOutcome, seconds: float) -> None:
        """Tell every observer of an answer."""
        for observer in self._observers:
            _guarded(lambda each=observer: each.answered(question, path, judged, seconds))  # type: ignore[misc]

    def failed(self, path: str, error: BaseException) -> None:
        """Tell every observer of a refusal."""
        for observer in self._observers:
            _guarded(lambda each=observer: each.failed(path, error))  # type: ignore[misc]

    def audited(self, question: AdmissionRequest, path: str, judged: AdmissionOutcome, seconds: float) -> None:
        """Tell those who want to know of policies that were asked after the answer."""
        for observer in self._observers:
            if isinstance(observer, AuditObserver):
                _guarded(lambda each=observer: each.audited(question, path, judged, seconds))  # type: ignore[misc]


def _guarded(tell: Callable[[], None]) -> None:
    try:
        tell()
    except Exception:
        log.exception("an observer of answers failed")
