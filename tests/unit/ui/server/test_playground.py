"""The routes of the playground."""

from __future__ import annotations

import asyncio
import io
import zipfile
from pathlib import Path

from tests.support import documents
from tests.support.playgroundlinks import LINK
from tests.support.uiserver import serve_ui
from tests.unit.ui.playground.test_review import POD


def test_every_route_of_the_playground_answers(tmp_path: Path) -> None:
    """A review with its explanation, a suite as an archive, an import; a bad body is one clear error each."""

    async def play() -> None:
        texts = {"policies": documents.LATEST, "resources": POD}
        async with serve_ui(tmp_path) as ui:
            found = await ui.post("/api/v1/review", {**texts, "explain": True})
            assert found["reviews"][0]["rules"]
            async with ui.session.post(f"{ui.url}/api/v1/testcase", json=texts) as response:
                names = zipfile.ZipFile(io.BytesIO(await response.read())).namelist()
            assert ["kyverno-test.yaml", "policies.yaml", "resources.yaml"] == [name.split("/")[1] for name in names]
            imported = await ui.post("/api/v1/import", {"text": LINK})
            assert "policies" in imported["profiles"][0]["state"]
            assert "damaged" in (await ui.post("/api/v1/import", {"text": "BYUw"}, status=400))["error"]
            assert "text" in (await ui.post("/api/v1/import", {"text": 1}, status=400))["error"]
            assert "change" in (await ui.post("/api/v1/review", {**texts, "change": 1}, status=400))["error"]

    asyncio.run(play())
