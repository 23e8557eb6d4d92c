"""Views that select namespaces by labels, as the server lists them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyverno.ui.views import View
from tests.support.uiserver import serve_ui

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
