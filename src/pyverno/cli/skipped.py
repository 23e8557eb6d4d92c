"""The notes on files of folders that are no manifests, and on those that were left out on purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from pyverno.cli.errors import report_note
from pyverno.offline.folderrules import LEFT_OUT_FOLDER, Skipped
from pyverno.offline.links import OUTSIDE

__all__ = ["SHOWN", "counted", "report_links", "report_skipped"]

SHOWN: Final = 5
"""How many files and folders a note names."""


def report_skipped(skipped: Sequence[Skipped]) -> None:
    """Write a note with the number and names of the files that were skipped, if there are any.

    What was left out on purpose has a note of its own, with the number by each flag and file that did it.
    """
    # what others may have made leads the list
    foreign = sorted((each for each in skipped if not each.left_out_by), key=lambda each: each.reason != OUTSIDE)
    if foreign:
        listed = ", ".join(f"{each.path} ({each.reason})" for each in foreign[:SHOWN])
        more = f", and {len(foreign) - SHOWN} more" if len(foreign) > SHOWN else ""
        report_note(f"skipped {counted(len(foreign), 'file')}: {listed}{more}")
    left_out = [each for each in skipped if each.left_out_by]
    if left_out:
        folders = sum(each.reason == LEFT_OUT_FOLDER for each in left_out)
        counts = ((len(left_out) - folders, "file"), (folders, "folder"))
        what = " and ".join(counted(count, noun) for count, noun in counts if count)
        by = Counter(each.left_out_by for each in left_out)
        report_note(f"left out {what}: {', '.join(f'{count} by {name}' for name, count in by.items())}")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "file"), counted(2, "file")
    ('1 file', '2 files')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def report_links(skipped: Sequence[Skipped]) -> None:
    """Write a note on the links that were not followed, and on nothing else that was skipped."""
    report_skipped([each for each in skipped if each.reason == OUTSIDE])
