"""Known gaps: cases in which the product differs from a corpus on purpose or not yet, each with its reason.

A gap that has closed must be removed from `gaps.yaml`; the runner fails until it is. This module must never run a
case.
"""

from __future__ import annotations

from pathlib import Path

from pyverno.errors import UsageError
from pyverno.kube.yaml.documents import load_documents

__all__ = ["GAPS_FILE", "read_gaps"]

GAPS_FILE = Path(__file__).with_name("gaps.yaml")


def read_gaps(path: Path = GAPS_FILE) -> dict[str, str]:
    """Return the reason of every known gap by the id of its case; raises UsageError for entries without a reason."""
    gaps: dict[str, str] = {}
    for document in load_documents(path.read_bytes(), file=path.name):
        for entry in document.value or []:
            texts = entry.values() if isinstance(entry, dict) and set(entry) == {"id", "reason"} else ()
            if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
                raise UsageError(f"{path.name}: an entry needs the texts `id` and `reason`: {entry}")
            if entry["id"] in gaps:
                raise UsageError(f"{path.name}: `{entry['id']}` is listed twice")
            gaps[entry["id"]] = " ".join(entry["reason"].split())
    return gaps
