"""Reports for tests of the store."""

from __future__ import annotations

from pyverno.engine.result import ResourceRef
from pyverno.report.collected import Collected
from pyverno.report.finding import Finding
from pyverno.ui.store.writer import Report


def result(
    policy: str = "p",
    rule: str = "r",
    status: str = "fail",
    *,
    name: str = "a",
    namespace: str = "team",
    kind: str = "Pod",
    severity: str = "high",
    message: str = "no",
    properties: dict[str, str] | None = None,
) -> Collected:
    """Return one result."""
    ref = ResourceRef("v1", kind, namespace, name)
    found = Finding(policy, rule, ref, status, message, severity, "Best Practices", properties=properties or {})
    return Collected(found, "kyverno")


def report(*results: Collected, name: str = "one", cluster: str = "c", labels: dict[str, str] | None = None) -> Report:
    """Return one report."""
    return Report(cluster, name, results, labels or {})
