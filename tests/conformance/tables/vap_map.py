"""Table `vap_map`: which policies become ValidatingAdmissionPolicies, and what MutatingAdmissionPolicies do."""

from __future__ import annotations

from typing import Any

from pyverno.engine.request import Request
from tests.conformance.outcome import Claim, NotRun
from tests.conformance.policies import judge


def claim(row: dict[str, Any]) -> Claim:
    """Apply the admission policy of a row; whether a policy can be turned into one is not asked yet."""
    if "rawPolicy" not in row:
        raise NotRun("turning policies into admission policies comes with a later release")
    review = judge(row["rawPolicy"], Request.from_manifest(row["rawResource"]))
    return Claim(row["expectedRawResource"], review.resource)
