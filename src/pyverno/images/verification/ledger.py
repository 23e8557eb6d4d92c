"""The ledger of one verification: every configured constraint is an entry that must be met.

A constraint that no check settles stays open, and a ledger with an open entry does not pass, so no constraint can be
ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from pyverno.errors import VerificationError
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["Entry", "Ledger", "State"]


class State(StrEnum):
    """The state of a constraint."""

    OPEN = "open"
    MET = "met"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Entry:
    """One constraint, with the evidence when it is met and the reason when it is broken."""

    constraint: str
    state: State = State.OPEN
    detail: str = ""

    def to_json(self) -> JSONObject:
        """Return the entry as users see it."""
        return {"constraint": self.constraint, "state": self.state.value, "detail": self.detail}


class Ledger:
    """The constraints of one attestor over one signature.

    >>> ledger = Ledger(["digest", "issuer"])
    >>> ledger.meet("digest")
    >>> ledger.passes, ledger.problem
    (False, 'issuer: was not checked')
    """

    __slots__ = ("_entries",)

    def __init__(self, constraints: Iterable[str]) -> None:
        """Open an entry for each constraint."""
        self._entries = {constraint: Entry(constraint) for constraint in constraints}

    @property
    def passes(self) -> bool:
        """Whether constraints exist and all of them are met."""
        return bool(self._entries) and all(each.state is State.MET for each in self._entries.values())

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries, in the order in which they were opened."""
        return tuple(self._entries.values())

    @property
    def problem(self) -> str:
        """The first broken constraint with its reason, else the first open one; empty when the ledger passes."""
        if not self._entries:
            return "there is nothing to check"
        broken = next((each for each in self._entries.values() if each.state is State.BROKEN), None)
        if broken is not None:
            return f"{broken.constraint}: {broken.detail}"
        left = next((each for each in self._entries.values() if each.state is State.OPEN), None)
        return f"{left.constraint}: was not checked" if left is not None else ""

    def has(self, constraint: str) -> bool:
        """Return whether a constraint is configured."""
        return constraint in self._entries

    def meet(self, constraint: str, detail: str = "") -> None:
        """Settle an open constraint; one that was broken stays broken."""
        self._settle(Entry(constraint, State.MET, detail))

    def fail(self, constraint: str, reason: str) -> None:
        """Break a constraint."""
        self._settle(Entry(constraint, State.BROKEN, reason))

    def _settle(self, entry: Entry) -> None:
        known = self._entries.get(entry.constraint)
        if known is None:
            raise VerificationError(f"the constraint `{entry.constraint}` is not configured")
        if known.state is State.OPEN or entry.state is State.BROKEN:
            self._entries[entry.constraint] = entry
