"""Explanations of chosen requests in the log, for debugging: the reasons for the result of each rule.

Off unless a flag names objects. Explanations are made in one thread beside the webhook, at most `LIMIT` a minute and
with few waiting; what came from the cluster and the data of Secrets are named and not shown.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyverno.engine.engine import Review
from pyverno.engine.result import ResourceRef
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.wildcard import match
from pyverno.report.explanation import Places, rule_lines
from pyverno.telemetry.observer import AdmissionOutcome

__all__ = ["LIMIT", "ExplanationLog"]

LIMIT: Final = 10
"""Explanations a minute."""
_MINUTE: Final = 60.0
_MAX_LINES: Final = 400
_NOWHERE: Final = Places(lambda _path: None, lambda _trace, _place: None)

log = logging.getLogger("pyverno.webhook")


class ExplanationLog:
    """An `Observer` of the webhook server that logs explanations of requests for objects that patterns name."""

    def __init__(self, patterns: Sequence[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        """Take patterns of `NAMESPACE/KIND/NAME` or `KIND/NAME`, in which `*` and `?` are wildcards."""
        self._patterns = tuple(patterns)
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=LIMIT)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="explain")

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Explain the review of a request for a chosen object, beside the webhook."""
        review = outcome.review
        if review is None or not self._is_chosen(review) or not self._may():
            return
        self._worker.submit(self._explain, review, admission_request.uid, path)

    def failed(self, path: str, error: BaseException) -> None:
        """Explain nothing: no policy was evaluated."""

    def close(self) -> None:
        """Wait for the explanations that are being made."""
        self._worker.shutdown()

    def _is_chosen(self, review: Review) -> bool:
        name = str(ResourceRef.of(review.request.subject))
        return any(match(pattern, name) for pattern in self._patterns)

    def _may(self) -> bool:
        """Count an explanation, unless there were too many within the last minute."""
        now = self._clock()
        if len(self._recent) == LIMIT and now - self._recent[0] < _MINUTE:
            return False
        self._recent.append(now)
        return True

    @staticmethod
    def _explain(review: Review, uid: str, path: str) -> None:
        try:
            explanation = review.explain()
            lines = [
                f"{'  ' * line.depth}{line.text}"
                for trace in explanation.rules
                if trace.matched
                for line in rule_lines(trace, _NOWHERE)
            ]
        except Exception:
            log.exception("an explanation failed")
            return
        fields = {"uid": uid, "path": path, "explanation": lines[:_MAX_LINES], "omitted": len(lines[_MAX_LINES:])}
        log.info("explanation", extra={"fields": fields})
