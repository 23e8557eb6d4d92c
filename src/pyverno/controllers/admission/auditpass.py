"""Policies that only tell, asked after the answer: what they ask of the world must not keep anybody waiting.

Only a request for which some rule asks the world is put off; all others are judged at once, because that takes no time.
There are so many threads and so much room; what finds none is counted and told of in the log. This module must never
change an answer.
"""

from __future__ import annotations

import asyncio
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
from pyverno.value import dataclass
from pyverno.webhook.admission import AskingHost

__all__ = ["AuditPass", "AuditSettings"]

_SECONDS: Final = 30.0

log = logging.getLogger("pyverno.audit")


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """How many requests are looked at at once, and how many may wait."""

    workers: int = 8
    max_waiting: int = 1000


@dataclass(frozen=True, slots=True)
class _PutOff:
    """An answered request, and the policies that it has still to be judged by."""

    admission_request: AdmissionRequest
    path: str
    answer: AdmissionResponse
    request: Request
    policies: PolicySet


class AuditPass:
    """An `Observer` of the webhook server; works while `run` runs."""

    def __init__(
        self,
        settings: AuditSettings,
        *,
        host: Callable[[], Host],
        told: AuditObserver,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the settings, what rules may ask, who is told of results, and who counts what found no room."""
        workers = max(settings.workers, 1)
        self._host = host
        self._told = told
        self._lost = lost
        self._has_lost = False
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="audit")
        self._waiting = Outbox(
            self._judge,
            on_lost=self._lose,
            max_items=max(settings.max_waiting, 1),
            writers=workers,
            weigh=lambda put_off: put_off.admission_request.size,
        )

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing waits to be judged."""
        return not len(self._waiting)

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Put a request off whose answer left policies to be asked; a refused one and a dry run are over."""
        if (
            outcome.later is None
            or outcome.review is None
            or not outcome.answer.allowed
            or admission_request.is_dry_run
        ):
            return
        self._waiting.put(_PutOff(admission_request, path, outcome.answer, outcome.review.request, outcome.later))

    def failed(self, path: str, error: BaseException) -> None:
        """A request that was not answered is not judged."""

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            await self._waiting.run()
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def flush(self, seconds: float) -> None:
        """Judge what is left, for at most that long."""
        await self._waiting.flush(seconds)

    async def _judge(self, put_off: _PutOff) -> None:
        began = time.monotonic()
        deadline = began + _SECONDS
        host = self._host()
        asked = host.for_request(put_off.request.user, deadline) if isinstance(host, AskingHost) else host

        def review() -> Review:
            return Engine(put_off.policies, asked).review(put_off.request, VALIDATING, deadline=deadline)

        found = await asyncio.get_running_loop().run_in_executor(self._pool, review)
        outcome = AdmissionOutcome(put_off.answer, found)
        self._told.audited(put_off.admission_request, put_off.path, outcome, time.monotonic() - began)
        self._has_lost = False

    def _lose(self, put_off: _PutOff, reason: str) -> None:
        """Count a request that was not judged; the log is told of the first one since the last that was."""
        self._lost()
        if not self._has_lost:
            fields = {"path": put_off.path, "kind": put_off.admission_request.kind.kind, "error": reason}
            log.error("a request was not judged by policies that only tell", extra={"fields": fields})
        self._has_lost = True
