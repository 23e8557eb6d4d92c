"""One branch of a policy: a place of its document, and one of the outcomes that the place can have."""

from __future__ import annotations

from typing import TypeAlias

from pyverno.engine.explain.nodes import FieldPath
from pyverno.value import dataclass

__all__ = [
    "ABSENT",
    "APPLIES",
    "FAIL",
    "FALSE",
    "FITS",
    "NOT_APPLIED",
    "NOT_FITTING",
    "PASS",
    "PRESENT",
    "RUNS",
    "TRUE",
    "Branch",
    "BranchKey",
]

PASS = "pass"  # noqa: S105 - an outcome, not a password
FAIL = "fail"
FITS, NOT_FITTING = "fits", "does not fit"
TRUE, FALSE = "true", "false"
PRESENT, ABSENT = "present", "absent"
APPLIES, NOT_APPLIED = "applies", "does not apply"
RUNS = "runs"

BranchKey: TypeAlias = tuple[FieldPath, int, str]
"""Place in the document, number of the sub-expression (-1 = the whole), outcome."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One outcome of one place; `rule` is the name of its rule ("" in policies in CEL).

    `kind` is what is there (`match`, `condition`, `pattern`, `expression`, ...) and `text` how it is written.
    `part` numbers the sub-expressions of a CEL expression, -1 is the whole; `offset` is where the part starts.
    """

    place: FieldPath
    outcome: str
    kind: str
    text: str = ""
    rule: str = ""
    part: int = -1
    offset: int | None = None

    @property
    def key(self) -> BranchKey:
        """The identity of the branch in its document."""
        return (self.place, self.part, self.outcome)
