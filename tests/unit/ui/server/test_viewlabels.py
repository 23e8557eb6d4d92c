"""Views as the server lists them: their audience and their namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

import aiohttp
import yaml

from pyverno.cli.ui.access import LoginOptions
from pyverno.cli.ui.run import UiOptions, serving
from pyverno.ui.views import View
from tests.support.uiserver import serve_ui
from tests.unit.report.test_collected import report

BLUE = View("Blue", "source=kyverno", labels={"team": "blue"})


class Namespaces:
    """Two namespaces of one team."""

    async def matching(self, labels: Mapping[str, str]) -> Iterable[str]:
        """Return the names of the blue ones."""
        return ["shop", "data"] if labels == {"team": "blue"} else []


def test_a_view_has_the_namespaces_that_have_its_labels_now(tmp_path: Path) -> None:
    """Those of the server, and one that is imported; without a match it has none."""

    async def play() -> tuple[list[str], list[str]]:
        async with serve_ui(tmp_path, views=[BLUE], namespaces=Namespaces()) as ui:
            shared = (await ui.get("/api/v1/views"))["items"]
            text = "customBoards: [{name: Red, namespaces: {selector: {team: red}}}]"
            own = (await ui.post("/api/v1/views", {"text": text}))["items"]
            return [each["query"] for each in shared], [each["query"] for each in own]

    assert (["namespace=data%2Cshop&source=kyverno"], ["namespace=%21%2A"]) == asyncio.run(play())


def test_labels_need_a_cluster(tmp_path: Path) -> None:
    """A view that would show everything instead is an error."""

    async def play() -> str:
        async with serve_ui(tmp_path, views=[BLUE]) as ui:
            return str((await ui.get("/api/v1/views", status=400))["error"])

    assert "view `Blue` selects namespaces by labels, which needs a cluster" == asyncio.run(play())


def test_a_view_is_shown_to_those_it_names(tmp_path: Path) -> None:
    """`accessControl` names users or groups; a view without it is shown to all."""
    (tmp_path / "report.yaml").write_text(yaml.safe_dump(report({"policy": "p", "rule": "r", "result": "fail"})))
    views = [{"name": "Ours", "filter": {}, "accessControl": {"groups": ["blue"]}}, {"name": "All", "filter": {}}]
    (tmp_path / "views.yaml").write_text(yaml.safe_dump({"views": views}))
    login = LoginOptions(proxy_user_header="X-User", proxy_groups_header="X-Groups", proxy_peers=("127.0.0.1",))
    options = UiOptions(
        files=(str(tmp_path / "report.yaml"),), port=0, views=(str(tmp_path / "views.yaml"),), login=login
    )

    async def play() -> list[list[str]]:
        async with serving(options) as url, aiohttp.ClientSession() as session:
            found = []
            for groups in ("blue", "red"):
                headers = {"X-User": "ann", "X-Groups": groups}
                async with session.get(f"{url}api/v1/views", headers=headers) as response:
                    found.append([each["name"] for each in (await response.json())["items"]])
            return found

    assert [["Ours", "All"], ["All"]] == asyncio.run(play())
