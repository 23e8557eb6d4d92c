"""The gauges of Policy Reporter."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pyverno.errors import UsageError
from pyverno.ui.server.metrics import read_labels
from tests.support.uiserver import serve_ui
from tests.unit.ui.store.samples import report, result


def test_both_gauges_count_open_results(tmp_path: Path) -> None:
    """Prometheus' own parser reads them, and hostile names stay values of labels."""
    hostile = 'a"b\\c\n} 1'

    async def play() -> str:
        async with serve_ui(tmp_path) as ui:
            results = (result("p", name="a"), result("p", name="b"), result(hostile, namespace="", kind="Namespace"))
            await ui.feed.write([report(*results)])
            async with ui.session.get(f"{ui.url}/metrics") as response:
                assert "text/plain" == response.content_type
                return await response.text()

    found = {family.name: family.samples for family in text_string_to_metric_families(asyncio.run(play()))}
    (named,), (cluster,) = found["policy_report_result"], found["cluster_policy_report_result"]
    assert (2.0, "team", "p") == (named.value, named.labels["namespace"], named.labels["policy"])
    assert (1.0, hostile) == (cluster.value, cluster.labels["policy"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["namespace", "kind"], {"namespace": "team", "kind": "Pod"}),
        (
            ["detailed"],
            {
                "namespace": "team",
                "rule": "r",
                "policy": "p",
                "kind": "Pod",
                "name": "a",
                "status": "fail",
                "severity": "high",
                "category": "Best Practices",
                "source": "kyverno",
            },
        ),
    ],
)
def test_labels_can_be_chosen(tmp_path: Path, words: list[str], expected: dict[str, str]) -> None:
    """Labels may go down to one series for each object."""

    async def play() -> str:
        async with serve_ui(tmp_path, metrics_labels=words) as ui:
            await ui.feed.write([report(result("p", name="a"))])
            async with ui.session.get(f"{ui.url}/metrics") as response:
                return await response.text()

    family = next(iter(text_string_to_metric_families(asyncio.run(play()))))
    assert [(expected, 1.0)] == [(sample.labels, sample.value) for sample in family.samples]


def test_an_unknown_label_is_an_error() -> None:
    """The error lists the known ones."""
    with pytest.raises(UsageError, match="unknown label `uid`: expected simple, detailed, or category"):
        read_labels(["uid"])
