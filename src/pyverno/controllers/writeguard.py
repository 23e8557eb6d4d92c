"""Stops policies that feed each other: a bounded number of writes to one object for one rule, then quarantine.

Writes of one rule to one object count until there was none for a while. Beyond the limit the pair is quarantined; when
it has been quiet for long enough one write is let through, and another one soon after it doubles the quarantine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError
from pyverno.value import dataclass

__all__ = ["GuardSettings", "QuarantinedError", "WriteGuard", "WriteKey"]

_SWEEP_EVERY: Final = 1024


class WriteKey(NamedTuple):
    """What writes are counted by: the object, and the policy and rule that want it written."""

    target: ResourceRef
    policy: ResourceRef
    rule: str


class QuarantinedError(HostError):
    """A rule wrote one object too often; `seconds` is how long it must be quiet before it may write again."""

    code = "quarantined"

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """`most` writes without a pause of `quiet_seconds`; a quarantine lasts so long, and doubled up to `longest`."""

    most: int = 10
    quiet_seconds: float = 120.0
    longest_seconds: float = 3600.0


class _Count:
    """Writes of one key: how many, when the last one was wanted, and the length of its quarantine (0 = none)."""

    __slots__ = ("last", "quarantine", "writes")

    def __init__(self) -> None:
        self.writes = 0
        self.last = 0.0
        self.quarantine = 0.0


class WriteGuard:
    """Counts the writes of all controllers of a process; all methods belong to the event loop's thread."""

    def __init__(self, settings: GuardSettings | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the limits, and the clock in seconds."""
        self._settings = settings or GuardSettings()
        self._clock = clock
        self._counts: dict[WriteKey, _Count] = {}
        self._entered = 0

    @property
    def quarantined(self) -> int:
        """How many pairs of object and rule are quarantined."""
        return sum(1 for each in self._counts.values() if each.quarantine)

    def enter(self, key: WriteKey) -> bool:
        """Count a write that is about to be sent; raises QuarantinedError beyond the limit.

        Returns whether an earlier quarantine of the pair ended with this write.
        """
        now = self._clock()
        self._sweep(now)
        count = self._counts.setdefault(key, _Count())
        quiet = now - count.last >= (count.quarantine or self._settings.quiet_seconds)
        count.last = now
        if count.quarantine:
            if not quiet:
                raise self._refusal(key, count)
            count.writes = self._settings.most  # one write; the next without a pause is over the limit again
            return True
        if quiet:
            count.writes = 0
        if count.writes >= self._settings.most:
            count.quarantine = self._settings.quiet_seconds
            raise self._refusal(key, count)
        count.writes += 1
        return False

    def leave(self, key: WriteKey) -> None:
        """Take back a write that changed nothing."""
        count = self._counts.get(key)
        if count is not None and count.writes:
            count.writes -= 1

    def _refusal(self, key: WriteKey, count: _Count) -> QuarantinedError:
        most = self._settings.most
        return QuarantinedError(
            f"rule `{key.rule}` has changed {key.target} {most} times without a pause, so policies or controllers "
            f"undo each other's changes; it is not written again until nothing wants to change it for "
            f"{count.quarantine:g} seconds",
            count.quarantine,
        )

    def _sweep(self, now: float) -> None:
        """Forget what has been quiet for long."""
        self._entered += 1
        if self._entered % _SWEEP_EVERY:
            return
        bound = 2 * self._settings.longest_seconds
        self._counts = {
            key: each
            for key, each in self._counts.items()
            if now - each.last < (bound if each.quarantine else self._settings.quiet_seconds)
        }
