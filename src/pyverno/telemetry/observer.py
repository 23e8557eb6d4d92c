"""Observers of admission: what they are given, their protocols, and several of them as one.

Metrics, logs, traces, events and reports are made by observers after the response is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, Protocol, runtime_checkable

from pyverno.engine.engine import Review
from pyverno.engine.policyset import PolicySet
from pyverno.engine.result import Fault
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse

__all__ = ["AdmissionOutcome", "AuditObserver", "Observer", "Observers"]

_P = ParamSpec("_P")

log = logging.getLogger("pyverno.webhook")


@dataclass(frozen=True, slots=True)
class AdmissionOutcome:
    """A response with the review that it comes from; `review` is None where no policy was evaluated.

    `later` holds policies whose evaluation was deferred because they cannot change the response; an observer evaluates
    them. `fault` is a bug that prevented the response from being made. `source` is the address of the caller, who
    `is_authenticated` if it presented a client certificate of the API server.
    """

    answer: AdmissionResponse
    review: Review | None = None
    later: PolicySet | None = None
    fault: Fault | None = None
    source: str = ""
    is_authenticated: bool = False


class Observer(Protocol):
    """Takes note of every response of the webhook server, after it is sent."""

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Take note of one response and how long it took."""
        ...

    def failed(self, path: str, error: BaseException) -> None:
        """Take note of a request that was refused or that broke something."""
        ...


@runtime_checkable
class AuditObserver(Protocol):
    """An observer that also takes note of policies evaluated after the response."""

    def audited(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Take note of a review made after the response, which `outcome` still holds."""
        ...


class Observers:
    """Calls each observer in turn; one that raises is logged and does not keep the others from being called."""

    def __init__(self, *observers: Observer) -> None:
        """Take the observers in the order in which they are called."""
        self._observers: Sequence[Observer] = observers

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Pass a response on to every observer."""
        for observer in self._observers:
            _call_guarded(observer.answered, admission_request, path, outcome, seconds)

    def failed(self, path: str, error: BaseException) -> None:
        """Pass a refusal on to every observer."""
        for observer in self._observers:
            _call_guarded(observer.failed, path, error)

    def audited(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Pass a review made after the response on to every `AuditObserver`."""
        for observer in self._observers:
            if isinstance(observer, AuditObserver):
                _call_guarded(observer.audited, admission_request, path, outcome, seconds)


def _call_guarded(notify: Callable[_P, None], *arguments: _P.args, **named: _P.kwargs) -> None:
    try:
        notify(*arguments, **named)
    except Exception:
        log.exception("an observer of answers failed")
