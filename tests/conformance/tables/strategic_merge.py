"""Table `strategic_merge`: an overlay on a resource."""

from __future__ import annotations

from typing import Any

from pyverno.kube.patch.strategicmerge import strategic_merge
from pyverno.lang.pattern.mutate import compile_overlay
from tests.conformance.outcome import Claim


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row."""
    patch = compile_overlay(row["overlay"]).resolve(row["resource"])
    return Claim(row["expected"], row["resource"] if patch is None else strategic_merge(row["resource"], patch))
