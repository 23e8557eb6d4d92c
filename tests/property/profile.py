"""Number of generated inputs of a property test: few by default, many in the nightly run."""

from __future__ import annotations

import os

__all__ = ["NIGHTLY_EXAMPLES", "examples"]

NIGHTLY_EXAMPLES = 100_000


def examples(small: int) -> int:
    """Return `small`, or at least 100,000 when the environment variable PYVERNO_NIGHTLY is set.

    >>> examples(50) >= 50
    True
    """
    return max(small, NIGHTLY_EXAMPLES) if os.environ.get("PYVERNO_NIGHTLY") else small
