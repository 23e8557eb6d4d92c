"""The page of metrics, made from their one table."""

from __future__ import annotations

from pyverno.telemetry.catalog import METRICS
from scripts.reference_pages.markdown import cell, code, page, table

__all__ = ["metrics"]


def metrics() -> str:
    """Return the table of metrics with their types and labels."""
    rows = [
        (
            code(metric.name),
            metric.kind,
            ", ".join(metric.labels),
            cell(metric.help) + (" Not a metric of Kyverno." if metric.is_addition else ""),
        )
        for metric in METRICS.values()
    ]
    return page(
        "Metrics",
        "The controllers serve these metrics in Prometheus' format or send them to OpenTelemetry. Counters have the "
        "suffix `_total` in Prometheus' format.",
        table(("metric", "type", "labels", "meaning"), rows),
    )
