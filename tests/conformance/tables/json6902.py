"""Table `json6902`: JSON patches with Kyverno's lenient options, and the patches that they amount to."""

from __future__ import annotations

from typing import Any

from pyverno.kube.json import encode
from pyverno.kube.patch.jsondiff import create_patch
from pyverno.kube.patch.jsonpatch import apply_patch
from tests.conformance.outcome import Claim, NotRun


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row; the order of regenerated patches does not matter."""
    patched = apply_patch(row["resource"], row["patches"], allow_missing_remove=True, create_parents=True)
    if "expected" in row:
        return Claim(row["expected"], patched)
    if "expected_generated_patches" in row:
        made = create_patch(row["resource"], patched)
        return Claim(sorted(row["expected_generated_patches"], key=encode), sorted(made, key=encode))
    raise NotRun("no assertion in the row")
