"""Events about violations that a scan found: one for each new result, within a limit for each policy.

A policy that fails with errors has one event about them in ten minutes, however many objects are concerned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from pyverno.controllers.runtime.events import Event, policy_reference
from pyverno.engine.result import ResourceRef, RuleResult, Status

__all__ = ["Violations"]

_SOURCE: Final = "kyverno-scan"
_ERROR_SECONDS: Final = 600.0
_BURST: Final = 50.0
_PER_SECOND: Final = 0.2
_MAX_POLICIES: Final = 10_000


class Violations:
    """Sends events for new failures and errors, on policy and object; `held_back` counts results without events."""

    def __init__(self, emit: Callable[[Event], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        """Take a receiver of events, and a clock."""
        self.held_back = 0
        self._emit = emit
        self._clock = clock
        self._budgets: dict[str, tuple[float, float]] = {}
        self._erred: dict[tuple[str, str], float] = {}

    def note(self, resource: ResourceRef, results: Sequence[RuleResult]) -> None:
        """Take results that are new in the report of an object."""
        for result in results:
            if result.status not in (Status.FAIL, Status.ERROR):
                continue
            if not self._may_report(result):
                self.held_back += 1
                continue
            place = f"{resource.namespace}/{resource.name}" if resource.namespace else resource.name
            rule, message = result.rule.name, f"; {result.message}" if result.message else ""
            named = f"[{rule}] " if rule else ""
            note = f"{resource.kind} {place}: {named}{result.status.value}{message}"
            policy = policy_reference(result.rule.policy)
            self._emit(Event("PolicyViolation", "Resource Passed", note, policy, resource, source=_SOURCE))
            said = f"policy {result.rule.policy.key}/{rule} {result.status.value}: {result.message}"
            self._emit(Event("PolicyViolation", "Resource Passed", said, resource, source=_SOURCE))

    def _may_report(self, result: RuleResult) -> bool:
        now, policy = self._clock(), result.rule.policy
        key = f"{policy.kind}/{policy.key}"
        if len(self._budgets) >= _MAX_POLICIES:
            self._budgets.clear()
            self._erred.clear()
        if result.status is Status.ERROR:
            last = self._erred.get((key, result.rule.name))
            if last is not None and now - last < _ERROR_SECONDS:
                return False
            self._erred[key, result.rule.name] = now
            return True
        tokens, then = self._budgets.get(key, (_BURST, now))
        tokens = min(_BURST, tokens + (now - then) * _PER_SECOND)
        if tokens < 1:
            self._budgets[key] = tokens, now
            return False
        self._budgets[key] = tokens - 1, now
        return True
