"""Table `podsecurity`: a podSecurity rule on a Pod."""

from __future__ import annotations

from typing import Any

from pyverno.podsecurity import compile_pod_security
from tests.conformance.outcome import Claim


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row."""
    pod = row["pod"]
    return Claim(row["allowed"], compile_pod_security(row["rule"]).check(pod, pod.get("kind", "Pod")).allowed)
