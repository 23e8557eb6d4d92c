"""The gauges of Policy Reporter."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import aiohttp
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from pyverno.cli.ui.access import LoginOptions
from pyverno.cli.ui.run import UiOptions, serving
from pyverno.errors import UsageError
from pyverno.ui.access.identity import Admission
from pyverno.ui.access.login import admit
from pyverno.ui.access.proxy import ProxyHeaders, read_networks
from pyverno.ui.server.metrics import read_address, read_labels
from tests.support.uiserver import serve_ui
from tests.unit.report.test_collected import report as policy_report
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


@pytest.mark.parametrize(
    "text",
    ["9090", ":9090", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "::1:9090", "a:-1", "a:\u0661"],
)
def test_an_address_for_metrics_has_host_and_port(text: str) -> None:
    """An address without one of them would listen somewhere else."""
    with pytest.raises(UsageError, match="expected ADDRESS:PORT"):
        read_address(text)
    assert [("127.0.0.1", 0), ("::1", 9090), ("localhost", 65535)] == [
        read_address(each) for each in ("127.0.0.1:0", "[::1]:9090", "localhost:65535")
    ]


def test_metrics_beside_a_login_have_their_own_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The port of the pages has none, and theirs has nothing else."""
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(policy_report({"policy": "p", "rule": "r", "result": "fail"})))
    login = LoginOptions(proxy_user_header="X-User", proxy_peers=("127.0.0.1",))
    options = UiOptions(files=(str(tmp_path / "r.yaml"),), port=0, login=login, metrics_address="127.0.0.1:0")

    async def play() -> list[int]:
        async with serving(options) as url, aiohttp.ClientSession() as session:
            (metrics,) = re.findall(r"metrics at (\S+)", capsys.readouterr().err)
            seen = []
            for address in (metrics, metrics.replace("/metrics", "/api/v1/results"), f"{url}metrics"):
                async with session.get(address) as response:
                    seen.append(response.status)
            async with session.get(f"{url}metrics", headers={"X-User": "ann"}) as response:
                seen.append(response.status)
            async with session.get(metrics, headers={"Host": "evil.example.org"}) as response:
                seen.append(response.status)
            async with session.get(metrics) as response:
                assert "policy_report_result{" in await response.text()
            return seen

    assert [200, 404, 401, 404, 421] == asyncio.run(play())


def test_metrics_on_the_port_of_the_pages_are_behind_the_login(tmp_path: Path) -> None:
    """Whoever reaches the port without a login learns no name."""

    async def play() -> list[int]:
        admission = admit(ProxyHeaders("X-User", "", read_networks(["127.0.0.1"])), Admission(), None)
        async with serve_ui(tmp_path, admission=admission) as ui:
            seen = []
            for headers in ({}, {"X-User": "ann"}):
                async with ui.session.get(f"{ui.url}/metrics", headers=headers) as response:
                    seen.append(response.status)
            return seen

    assert [401, 200] == asyncio.run(play())
