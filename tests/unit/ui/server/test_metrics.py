"""The gauges of Policy Reporter."""

from __future__ import annotations

import asyncio
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

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
