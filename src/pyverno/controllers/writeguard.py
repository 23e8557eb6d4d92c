"""Stops policies that feed each other: a bounded number of writes without a pause, then quarantine.

Two counts are kept. Writes of one rule to one object: more than a handful without a pause means that something else
undoes them. The length of a chain, in which each write was triggered by the one before it: a chain that does not end is
a loop of policies. A quarantine ends after a while without attempts to write; then one write is permitted, and another
one soon after it doubles the quarantine.
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
_MAX_LINKS: Final = 100_000


class WriteKey(NamedTuple):
    """The key by which writes are counted: the object, its policy and rule, and the object that triggered them."""

    target: ResourceRef
    policy: ResourceRef
    rule: str
    trigger: ResourceRef | None = None


class QuarantinedError(HostError):
    """A rule may not write an object for now; after `seconds` in which nothing wants to, it may again.

    `is_new` in the first error of a quarantine.
    """

    code = "quarantined"

    def __init__(self, message: str, seconds: float, *, is_new: bool) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.is_new = is_new


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """The limits: `max_writes` without a pause of `quiet_seconds`; quarantines last from that to `longest_seconds`.

    An object that a rule writes for many triggers may be written once for each, and `max_writes` / 2 times more.
    """

    max_writes: int = 10
    quiet_seconds: float = 120.0
    longest_seconds: float = 3600.0


class _Window:
    """Writes without a pause: how many, when the last was wanted, and the quarantine that followed (0 = none)."""

    __slots__ = ("has_probed", "last", "quarantine", "triggers", "writes")

    def __init__(self, last: float = 0.0, quarantine: float = 0.0) -> None:
        self.last = last
        self.quarantine = quarantine
        self.writes = 0
        self.triggers: set[int] = set()
        self.has_probed = False

    def admit(self, now: float, settings: GuardSettings) -> bool:
        """Return whether a quarantine lets a write through; it ends after twice its length."""
        waited, self.last = now - self.last, now
        if waited < self.quarantine:
            if self.has_probed:
                self.quarantine = min(self.quarantine * 2, settings.longest_seconds)
                self.has_probed = False
            return False
        if waited >= self.quarantine * 2:
            self.quarantine, self.writes = 0.0, 0
            self.triggers.clear()
        self.has_probed = True
        return True


class _Link(NamedTuple):
    """The last write of an object: how many writes triggered each other up to it, and when it was."""

    depth: int
    at: float


class WriteGuard:
    """Counts the writes of all controllers of a process; all methods belong to the event loop's thread."""

    def __init__(self, settings: GuardSettings | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the limits, and the clock in seconds."""
        self._settings = settings or GuardSettings()
        self._clock = clock
        self._windows: dict[WriteKey, _Window] = {}
        self._chains: dict[tuple[ResourceRef, str], _Window] = {}
        self._links: dict[ResourceRef, _Link] = {}
        self._entered = 0

    @property
    def quarantined(self) -> int:
        """The number of quarantines."""
        windows = (*self._windows.values(), *self._chains.values())
        return sum(1 for each in windows if each.quarantine)

    def enter(self, key: WriteKey) -> None:
        """Count a write that is about to be sent; raises QuarantinedError beyond the limits."""
        now = self._clock()
        self._sweep(now)
        self._check_chain(key, now)
        self._check_target(key, now)

    def leave(self, key: WriteKey) -> None:
        """Take back a write that was refused or changed nothing."""
        window = self._windows.get(key._replace(trigger=None))
        if window is not None and window.writes:
            window.writes -= 1

    def note_written(self, key: WriteKey) -> None:
        """Note that a write changed its target, which may trigger further ones."""
        now = self._clock()
        depth = max(self._depth(key.trigger, now) + 1, self._depth(key.target, now))
        link = _Link(depth, now)
        self._links.pop(key.target, None)  # the dict stays in order of the last writes
        self._links[key.target] = link
        if len(self._links) > _MAX_LINKS:
            del self._links[next(iter(self._links))]

    def _check_target(self, key: WriteKey, now: float) -> None:
        settings = self._settings
        window = self._windows.setdefault(key._replace(trigger=None), _Window())
        if window.quarantine:
            if not window.admit(now, settings):
                raise self._error(key, window, "undo each other's changes", is_new=False)
            return
        if now - window.last >= settings.quiet_seconds:
            window.writes = 0
            window.triggers.clear()
        window.last = now
        window.triggers.add(hash(key.trigger))
        if window.writes >= max(settings.max_writes, len(window.triggers) + settings.max_writes // 2):
            window.quarantine = settings.quiet_seconds
            raise self._error(key, window, "undo each other's changes", is_new=True)
        window.writes += 1

    def _check_chain(self, key: WriteKey, now: float) -> None:
        if key.trigger is None or key.trigger not in self._links:
            return
        place = (key.policy, key.rule)
        chain = self._chains.get(place)
        if chain is not None and chain.quarantine:
            if not chain.admit(now, self._settings):
                raise self._error(key, chain, "trigger each other", is_new=False)
        elif self._depth(key.trigger, now) >= self._settings.max_writes:
            chain = self._chains[place] = _Window(now, self._settings.quiet_seconds)
            raise self._error(key, chain, "trigger each other", is_new=True)

    def _depth(self, trigger: ResourceRef | None, now: float) -> int:
        """Return how many writes led to a trigger; one that was written long ago begins a new chain."""
        link = self._links.get(trigger) if trigger is not None else None
        return 0 if link is None or now - link.at >= self._settings.quiet_seconds else link.depth

    def _error(self, key: WriteKey, window: _Window, why: str, *, is_new: bool) -> QuarantinedError:
        return QuarantinedError(
            f"rule `{key.rule}` does not write {key.target}: {self._settings.max_writes} writes without a pause show "
            f"that policies or controllers {why}; it may write again when nothing wanted to for "
            f"{window.quarantine:g} seconds",
            window.quarantine,
            is_new=is_new,
        )

    def _sweep(self, now: float) -> None:
        """Forget what has been quiet for long."""
        self._entered += 1
        if self._entered % _SWEEP_EVERY:
            return
        quiet, longest = self._settings.quiet_seconds, 2 * self._settings.longest_seconds

        def is_kept(window: _Window) -> bool:
            return now - window.last < (longest if window.quarantine else quiet)

        self._windows = {key: each for key, each in self._windows.items() if is_kept(each)}
        self._chains = {place: each for place, each in self._chains.items() if is_kept(each)}
        self._links = {target: link for target, link in self._links.items() if now - link.at < longest}
