"""Table `cel_autogen`: autogen of policies written in CEL."""

from __future__ import annotations

from typing import Any

from tests.conformance.outcome import CEL_LATER, Claim, NotRun


def claim(row: dict[str, Any]) -> Claim:
    """Leave the row out: the product has no such policies yet."""
    raise NotRun(CEL_LATER)
