"""Performs the changes that rules request of existing objects: evaluates again until no write conflicts.

Each object is written at most once for one request, and only when it changes. A target that fails does not stop the
others; what failed is one error in the end, with an event for each target.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from hashlib import blake2b
from typing import Final, NamedTuple

from pyverno.controllers.applier import Applied, Cause, Change
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.writeguard import QuarantinedError
from pyverno.engine.effects import Effect, PatchEffect
from pyverno.engine.engine import Review
from pyverno.engine.request import User
from pyverno.engine.result import ResourceRef, RuleResult, Status
from pyverno.engine.rule import PolicyInfo
from pyverno.errors import HostError, PyvernoError
from pyverno.kube.status import StatusError
from pyverno.value import dataclass, field

__all__ = ["Changes", "Failed", "Place"]

_ATTEMPTS: Final = 5
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_SOURCE: Final = "kyverno-mutate"
_MAX_NAMED: Final = 3
_BAD: Final = (Status.FAIL, Status.ERROR, Status.WARN)

Apply = Callable[[Effect, Cause], Awaitable[Applied]]
Evaluate = Callable[[int], Awaitable[Review | None]]
"""Evaluates the rules; takes how often that was done before. None means that there is nothing left to evaluate."""


class Place(NamedTuple):
    """The place of a write: for a rule and its trigger, an object or its subresource."""

    rule: str
    target: ResourceRef
    subresource: str
    trigger: ResourceRef | None

    @property
    def digest(self) -> str:
        """A short text for the record of a request."""
        parts = "\0".join((self.rule, str(self.target), self.subresource, str(self.trigger or "")))
        return blake2b(parts.encode(), digest_size=8).hexdigest()


class Failed(NamedTuple):
    """One failure: the rule, the target if it is known, and the reason."""

    rule: str
    target: ResourceRef | None
    reason: str


@dataclass(slots=True)
class Changes:
    """The changes of one UpdateRequest, for one policy.

    `done` are the places that earlier attempts wrote, `recorded` the digests of those that the request itself records,
    because another process may have made the attempt. `selects` decides whether an object may be changed at all.
    `report` receives each evaluation whose changes are written. A `requester` must be permitted to make them too,
    and so must the `author` of a policy of a namespace.
    """

    policy: PolicyInfo
    apply: Apply
    emit: Callable[[Event], None]
    selects: Callable[[PatchEffect], bool] = lambda _effect: True
    report: Callable[[Review], None] = lambda _review: None
    done: set[Place] = field(default_factory=set)
    recorded: frozenset[str] = frozenset()
    requester: User | None = None
    author: User | None = None
    failures: list[Failed] = field(default_factory=list)
    written: int = 0
    kept_back: list[Failed] = field(default_factory=list)
    quarantine: float = 0.0
    """Writes that the guard held back, which reports them itself, and the seconds of the longest quarantine."""

    async def perform(self, evaluate: Evaluate, trigger: ResourceRef | None, reason: str = "") -> None:
        """Evaluate and write; what another writer changed in between is evaluated again.

        Raises nothing that a policy or a refusal of the API server causes: that is noted in `failures`.
        """
        for attempt in range(_ATTEMPTS):
            review = await evaluate(attempt)
            if review is None:
                return
            conflicts = await self._write(review, trigger, reason)
            if not conflicts:
                self._note_errors(review.results, trigger)
                self.report(review)
                return
        for place in conflicts:
            text = f"{place.target} changed {_ATTEMPTS} times while it was written"
            self.fail(place.rule, text, place.target)

    def fail(self, rule: str, reason: str, target: ResourceRef | None = None) -> None:
        """Note a failure, once."""
        failed = Failed(rule, target, reason)
        if failed not in self.failures:
            self.failures.append(failed)

    def finish(self, known: str = "") -> None:
        """Raise HostError when something failed; `known` is the error of the attempt before, which has its events.

        When only the guard kept writes back, the error is a QuarantinedError.
        """
        if not self.failures and not self.kept_back:
            return
        message = _summarize((*self.failures, *self.kept_back))
        if message != known:
            for failed in self.failures:
                self.emit(self._error_event(failed))
        if not self.failures:
            raise QuarantinedError(message, self.quarantine, is_new=False)
        raise HostError(message)

    async def _write(self, review: Review, trigger: ResourceRef | None, reason: str) -> list[Place]:
        """Perform the effects of a review; return the places that another writer changed in between."""
        # the last effect on an object holds the changes of those before
        wanted = {
            Place(result.rule.name, effect.target, effect.subresource, trigger): effect
            for result in review.results
            for effect in result.effects
            if isinstance(effect, PatchEffect)
        }
        conflicts = []
        for place, effect in wanted.items():
            if place in self.done or place.digest in self.recorded or not self.selects(effect):
                continue
            if ResourceRef.of(effect.before) != ResourceRef.of(effect.after):
                self.fail(place.rule, "a rule cannot change the kind, name or namespace of an object", effect.target)
                continue
            cause = Cause(self._policy, place.rule, trigger, reason, requester=self.requester, author=self.author)
            try:
                applied = await self.apply(effect, cause)
            except StatusError as error:
                if error.status == _CONFLICT:
                    conflicts.append(place)
                elif error.status != _NOT_FOUND:  # an object that is gone needs no change
                    self.fail(place.rule, error.message, effect.target)
            except QuarantinedError as error:
                self.quarantine = max(self.quarantine, error.seconds)
                self.kept_back.append(Failed(place.rule, effect.target, error.message))
            except PyvernoError as error:
                self.fail(place.rule, error.message, effect.target)
            else:
                self.done.add(place)
                if applied.change is not Change.UNCHANGED:
                    self.written += 1
                    self.emit(self._success_event(effect.target))
        return conflicts

    def _note_errors(self, results: Iterable[RuleResult], trigger: ResourceRef | None) -> None:
        for result in results:
            if result.status in _BAD:
                self.fail(result.rule.name, result.message, result.target or trigger)

    @property
    def _policy(self) -> ResourceRef:
        info = self.policy
        return ResourceRef(info.api_version, info.kind, info.namespace, info.name)

    def _success_event(self, target: ResourceRef) -> Event:
        return Event("PolicyApplied", "Resource Mutated", "resource mutated", self._policy, target, _SOURCE)

    def _error_event(self, failed: Failed) -> Event:
        # Kyverno: the note has the name of the policy without its namespace
        name = f"{self.policy.name}/{failed.rule}" if failed.rule else self.policy.name
        note = f"policy {name} error: {failed.reason}"
        return Event("PolicyError", "None", note, self._policy, failed.target, _SOURCE)


def _summarize(failures: Iterable[Failed]) -> str:
    """Return one text for several failures.

    >>> _summarize([Failed("a", None, "no room"), Failed("b", ResourceRef("v1", "Pod", "x", "y"), "forbidden")])
    'no room; x/Pod/y: forbidden'
    """
    texts = [each.reason if each.target is None else f"{each.target}: {each.reason}" for each in failures]
    rest = len(texts) - _MAX_NAMED
    return "; ".join(texts[:_MAX_NAMED]) + (f"; and {rest} more" if rest > 0 else "")
