"""A rule whose engine does not exist here: always an ERROR, never a silent pass."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.engine.actions.exemption import SkippedByException
from pyverno.engine.result import Status, Verdict
from pyverno.engine.rule import Run
from pyverno.value import dataclass

__all__ = ["Unavailable"]


@dataclass(frozen=True, slots=True)
class Unavailable(SkippedByException):
    """Reports why the rule cannot be evaluated; with `ignores_delete` a DELETE gives no result, as upstream."""

    message: str
    ignores_delete: bool = True

    def run(self, run: Run) -> Sequence[Verdict]:
        """Return the error."""
        if self.ignores_delete and run.resource is None:
            return ()
        return (Verdict(Status.ERROR, self.message),)

    def triggered(self, run: Run) -> Sequence[Verdict]:
        """Return the error: whether the rule applies is unknown."""
        return self.run(run)
