"""Reports that the pages show: ordinary ones, and one whose every text tries to be a script."""

from __future__ import annotations

from pyverno.ui.store.writer import Report
from tests.unit.ui.store.samples import report, result

HOSTILE = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>"


def sample_reports() -> list[Report]:
    """Return the reports."""
    return [
        report(
            result("require-labels", "team", name="web", namespace="shop", message="the label `team` is missing"),
            result("require-labels", "team", "pass", name="api", namespace="shop", severity="low", message=""),
            result("no-latest", "tag", "warn", name="web", namespace="shop", kind="Deployment", severity="medium"),
            result("no-latest", "tag", "error", name="db", namespace="data", message="cannot read the ConfigMap"),
            result("no-latest", "tag", "skip", name="old", namespace="data", severity="info"),
            name="ordinary",
            labels={"team": "blue"},
        ),
        report(
            result(
                HOSTILE,
                HOSTILE,
                name=HOSTILE,
                namespace=HOSTILE,
                kind=HOSTILE,
                message=HOSTILE,
                properties={HOSTILE: HOSTILE},
            ),
            name="hostile",
        ),
        report(
            *(result(f"many-{number:02}", name=f"pod-{number}", namespace="many") for number in range(60)), name="many"
        ),
    ]
