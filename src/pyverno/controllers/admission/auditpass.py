"""Deferred evaluation of audit-only policies after the response, so that their I/O does not delay it.

Only a request for which some rule needs external data is deferred; all others are evaluated at once. Threads and queue
are bounded; requests that do not fit are counted and logged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyverno.controllers.runtime.outbox import Outbox
from pyverno.engine.engine import Engine, Review
from pyverno.engine.host import Host
from pyverno.engine.phases import VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.telemetry.observer import AdmissionOutcome, AuditObserver
from pyverno.threads import in_pool
from pyverno.value import dataclass
from pyverno.webhook.admission import UserScopedHost

__all__ = ["AuditPass", "AuditSettings"]

_SECONDS: Final = 30.0

log = logging.getLogger("pyverno.audit")


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Number of requests evaluated at the same time, and capacity of the queue."""

    workers: int = 8
    max_waiting: int = 1000


@dataclass(frozen=True, slots=True)
class _PutOff:
    """An answered request and its deferred policies."""

    admission_request: AdmissionRequest
    path: str
    answer: AdmissionResponse
    request: Request
    policies: PolicySet
    source: str = ""


class AuditPass:
    """An `Observer` of the webhook server; works while `run` runs."""

    def __init__(
        self,
        settings: AuditSettings,
        *,
        host: Callable[[], Host],
        observer: AuditObserver,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the settings, the source of hosts, an observer of results, and a callback for dropped requests."""
        workers = max(settings.workers, 1)
        self._host = host
        self._observer = observer
        self._lost = lost
        self._has_lost = False
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="audit")
        self._waiting = Outbox(
            self._judge,
            on_lost=self._lose,
            max_items=max(settings.max_waiting, 1),
            writers=workers,
            weigh=lambda put_off: put_off.admission_request.size,
            source_of=lambda put_off: put_off.source,
        )

    @property
    def is_idle(self) -> bool:
        """Return whether no request is waiting."""
        return not len(self._waiting)

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Queue a request with deferred policies, unless it was rejected or a dry run."""
        if (
            outcome.later is None
            or outcome.review is None
            or not outcome.answer.allowed
            or admission_request.is_dry_run
        ):
            return
        self._waiting.put(
            _PutOff(admission_request, path, outcome.answer, outcome.review.request, outcome.later, outcome.source)
        )

    def failed(self, path: str, error: BaseException) -> None:
        """Do nothing: a request that failed is not evaluated."""

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            await self._waiting.run()
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def flush(self, seconds: float) -> None:
        """Evaluate the remaining requests for at most `seconds`."""
        await self._waiting.flush(seconds)

    async def _judge(self, put_off: _PutOff) -> None:
        began = time.monotonic()
        deadline = began + _SECONDS
        host = self._host()
        asked = host.for_request(put_off.request.user, deadline) if isinstance(host, UserScopedHost) else host

        def review() -> Review:
            return Engine(put_off.policies, asked).review(put_off.request, VALIDATING, deadline=deadline)

        found = await in_pool(self._pool, review)
        outcome = AdmissionOutcome(put_off.answer, found, source=put_off.source)
        self._observer.audited(put_off.admission_request, put_off.path, outcome, time.monotonic() - began)
        self._has_lost = False

    def _lose(self, put_off: _PutOff, reason: str) -> None:
        """Count a dropped request; log the first one since the last that was evaluated."""
        self._lost()
        if not self._has_lost:
            fields = {"path": put_off.path, "kind": put_off.admission_request.kind.kind, "error": reason}
            log.error("a request was not evaluated by audit-only policies", extra={"fields": fields})
        self._has_lost = True
