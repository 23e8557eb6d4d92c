"""The note on files of folders that are no manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.cli.errors import report_note
from pyverno.offline.folderrules import Skipped
from pyverno.offline.links import OUTSIDE

__all__ = ["SHOWN", "report_links", "report_skipped"]

SHOWN: Final = 5
"""How many files and folders a note names."""


def report_skipped(skipped: Sequence[Skipped]) -> None:
    """Write a note with the number and names of the files that were skipped, if there are any."""
    if not skipped:
        return
    # what others may have made leads the list
    ordered = sorted(skipped, key=lambda each: each.reason != OUTSIDE)
    listed = ", ".join(f"{each.path} ({each.reason})" for each in ordered[:SHOWN])
    more = f", and {len(skipped) - SHOWN} more" if len(skipped) > SHOWN else ""
    report_note(f"skipped {len(skipped)} {'file' if len(skipped) == 1 else 'files'}: {listed}{more}")


def report_links(skipped: Sequence[Skipped]) -> None:
    """Write a note on the links that were not followed, and on nothing else that was skipped."""
    report_skipped([each for each in skipped if each.reason == OUTSIDE])
