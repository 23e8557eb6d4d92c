"""The table of metrics."""

import re
from pathlib import Path

from pyverno.telemetry.catalog import METRICS

SOURCES = Path(__file__).parents[3] / "src" / "pyverno"


def test_no_metric_is_named_outside_of_the_table() -> None:
    """Names in code are look-ups in the table or settings of the ConfigMap, and the table has each of them."""
    found = {
        name
        for path in SOURCES.rglob("*.py")
        if path.name != "catalog.py" and path.parts[-3:-1] != ("lang", "cel")
        for name in re.findall(r'"(kyverno_\w+)"', path.read_text())
    }
    assert set() == found - METRICS.keys()
    assert {"telemetry/catalog.py"} == {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if re.search(r"= Metric\(|^ +Metric\($|yield Metric\(", path.read_text(), re.M)
    }


def test_every_metric_has_a_sentence_and_names_each_label_once() -> None:
    """The reference page shows these sentences; a duplicate label would hide a value."""
    for metric in METRICS.values():
        assert metric.help.endswith("."), metric.name
        assert len(set(metric.labels)) == len(metric.labels), metric.name
