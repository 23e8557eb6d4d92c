"""Table `strategic_merge_preprocess`: the anchors of an overlay decided against a resource."""

from __future__ import annotations

import re
from typing import Any

from pyverno.lang.pattern.mutate import compile_overlay
from pyverno.lang.pattern.validate import compile_pattern
from tests.conformance.outcome import Claim

_QUOTED = re.compile("resource value '[^']*' does not match '[^']*'")
_SKIPPED = "the patch does not apply"


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row; where a single condition is checked, its text counts too."""
    if row.get("function") == "checkCondition":
        outcome = compile_pattern(row["overlay"]).match(row["resource"])
        # differences.md: our text does not quote the values
        return Claim(_QUOTED.sub("resource value does not match pattern", row.get("error", "")), outcome.message)
    patch = compile_overlay(row["overlay"]).resolve(row["resource"])
    if "preprocessed" in row and not row.get("error"):
        # upstream gives an empty patch where nothing of the overlay applies
        return Claim(row["preprocessed"], {} if patch is None else patch)
    return Claim(_SKIPPED if row.get("error") else True, _SKIPPED if patch is None else True)
