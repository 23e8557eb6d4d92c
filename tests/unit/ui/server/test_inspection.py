"""The routes that read from clusters."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pyverno.errors import HostError
from pyverno.kube.json import JSONObject
from tests.browser.samples import SampleInspector
from tests.support.uiserver import UiServer, serve_ui
from tests.unit.ui.store.samples import report, result


class AwayInspector(SampleInspector):
    """A cluster that does not answer."""

    async def policies(self, key: str) -> list[JSONObject]:
        """Fail."""
        raise HostError("connection refused")

    async def exceptions(self) -> list[JSONObject]:
        """Fail."""
        raise HostError("connection refused")


async def _filled(ui: UiServer) -> None:
    used = result("no-latest", status="skip", properties={"exceptions": "for-web,other"})
    await ui.feed.write([report(result("require-labels", "team"), used)])
    await ui.feed.write([report(result("p"), name="other", cluster="files")])


def test_a_cluster_that_is_away_is_a_problem_beside_the_answers_of_others(tmp_path: Path) -> None:
    """The list is never empty without a stated problem."""

    async def play() -> tuple[JSONObject, JSONObject]:
        async with serve_ui(tmp_path, inspectors={"c": SampleInspector(), "away": AwayInspector()}) as ui:
            await _filled(ui)
            return await ui.get("/api/v1/exceptions"), await ui.get("/api/v1/policies/require-labels")

    exceptions, policies = asyncio.run(play())
    assert [("for-web", 1)] == [(each["name"], each["uses"]) for each in exceptions["items"]][:1]
    assert ["c"] == [each["cluster"] for each in policies["items"]]
    assert ["away: connection refused"] * 2 == [*exceptions["problems"], *policies["problems"]]


def test_results_are_read_from_their_own_cluster(tmp_path: Path) -> None:
    """A result from a file has no cluster."""

    async def play() -> None:
        async with serve_ui(tmp_path, inspectors={"c": SampleInspector()}) as ui:
            await _filled(ui)
            items = (await ui.get("/api/v1/results?state=all"))["items"]
            ids = {each["policy"]: each["id"] for each in items}
            assert ["fail"] == (await ui.get(f"/api/v1/results/{ids['require-labels']}/explanation"))["rules"][0][
                "statuses"
            ]
            assert "skip" == (await ui.get(f"/api/v1/results/{ids['require-labels']}/exception"))["after"][0]["status"]
            assert "from a file" in (await ui.get(f"/api/v1/results/{ids['p']}/explanation", 400))["error"]
            assert "no policy" in (await ui.get(f"/api/v1/results/{ids['no-latest']}/explanation", 400))["error"]
            assert "no such result" in (await ui.get("/api/v1/results/999/exception", 404))["error"]

    asyncio.run(play())
