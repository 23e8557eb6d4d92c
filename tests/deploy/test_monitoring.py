"""Dashboards and alert rules name metrics and labels that the controllers deliver."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml

from pyverno.telemetry.catalog import METRICS
from tests.deploy.charts import CHARTS

FOLDER = CHARTS.parent / "dashboards"
OF_API_SERVER = {
    "apiserver_admission_webhook_rejection_count": {"name", "error_type"},
    "apiserver_admission_webhook_fail_open_count": {"name"},
}
FUNCTIONS = {"sum", "max", "min", "count", "rate", "increase", "histogram_quantile", "absent", "time", "by"}
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def delivered() -> dict[str, set[str]]:
    """Return every name that Prometheus stores, with its labels."""
    found = dict(OF_API_SERVER)
    for metric in METRICS.values():
        for suffix in SUFFIXES[metric.kind]:
            name = metric.name if metric.name.endswith("_total") else metric.name + suffix
            found[name] = {*metric.labels, *({"le"} if suffix == "_bucket" else ())}
    return found


def expressions() -> Iterator[tuple[str, str]]:
    """Yield every expression with where it is."""
    for path in sorted(FOLDER.glob("*.json")):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel.get("targets", ()):
                yield f"{path.name}: {panel['title']}", target["expr"]
    [group] = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]:
        yield rule["alert"], rule["expr"]


def metric_names(expression: str) -> set[str]:
    """Return the names that an expression reads, with the suffixes that Prometheus stores."""
    rest = re.sub(r"{[^}]*}|\[\w+\]|by \([^)]*\)", "", _without_texts(expression))
    return set(re.findall(r"[a-z_]\w*", rest)) - FUNCTIONS


def _without_texts(expression: str) -> str:
    return re.sub(r'"[^"]*"', '""', expression)


def complaints(expression: str) -> list[str]:
    """Return the names of an expression that no controller delivers."""
    known = delivered()
    bare, names = _without_texts(expression), metric_names(expression)
    selectors = re.findall(r"{([^}]*)}", bare)
    labels = {name for text in selectors for name in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", text)}
    grouped = {name.strip() for text in re.findall(r"by \(([^)]*)\)", bare) for name in text.split(",")}
    allowed = set().union(*(known.get(name, set()) for name in names))
    return sorted(names - known.keys()) + sorted((labels | grouped) - allowed) + ([] if names else ["no metric"])


def test_every_expression_names_what_is_delivered() -> None:
    """Metrics are those of the catalogue, or the API server's own; labels are those of the metric."""
    found = {where: bad for where, expression in expressions() if (bad := complaints(expression))}
    assert {} == found


def test_there_are_panels_and_alerts_for_what_matters() -> None:
    """Kyverno's rows, and those for queues, reports and health."""
    rows = {
        panel["title"]
        for path in FOLDER.glob("*.json")
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]
        if panel["type"] == "row"
    }
    assert {"Latest status", "Admission review latency", "CEL policies", "Queues", "Reports", "Health"} <= rows


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("sum(rate(kyverno_nothing_total[5m]))", ["kyverno_nothing_total"]),
        ("sum(kyverno_info) by (rule)", ["rule"]),
        ('sum(kyverno_policy_results_total{rule="a"})', ["rule"]),
        ("sum(kyverno_policy_results)", ["kyverno_policy_results"]),
    ],
)
def test_a_wrong_name_is_found(expression: str, wanted: list[str]) -> None:
    """The check above fails for unknown metrics, labels and forgotten suffixes."""
    assert wanted == complaints(expression)
