"""`pyverno ui` as a command."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
import yaml

from pyverno.cli.root import run
from pyverno.cli.ui.run import UiOptions, serving
from tests.unit.report.test_collected import report


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["ui", "x.yaml", "--context", "prod"], "not both"),
        (["ui", "--playground", "x.yaml"], "reads no reports"),
        (["ui", "x.yaml", "--base-path", "policy/"], "--base-path"),
        (["ui", "x.yaml", "--address", "192.0.2.1"], "no login"),
        (["ui", "missing.yaml", "--port", "0"], "does not exist"),
        (["ui", "x.yaml", "--port", "0", "--store", "/nowhere/results.db"], "store of results"),
    ],
)
def test_what_cannot_work_is_one_error(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is served, or as soon as it is known."""
    assert 1 <= run(words)
    printed = capsys.readouterr().err
    assert reason in printed
    assert "Traceback" not in printed


def test_reports_of_files_are_served_until_a_signal_ends_the_server(tmp_path: Path) -> None:
    """The address is printed; SIGTERM ends the process with 0; the store keeps what it knows."""
    file, store = tmp_path / "report.yaml", tmp_path / "results.db"
    file.write_text(yaml.safe_dump(report({"policy": "p", "rule": "r", "result": "fail", "severity": "high"})))
    words = [sys.executable, "-m", "pyverno", "ui", str(file), "--port", "0", "--store", str(store)]
    first_seen = []
    for _ in range(2):
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/", line)
            assert found is not None, line + process.stderr.read()
            first_seen.append(asyncio.run(_first_seen(found[0])))
            process.send_signal(signal.SIGTERM)
            assert 0 == process.wait(300)
    assert first_seen[0] == first_seen[1]


async def _first_seen(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"{url}api/v1/results") as response:
        (item,) = (await response.json())["items"]
        found: str = item["firstSeen"]
        return found


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def test_a_banner_is_part_of_the_configuration(tmp_path: Path) -> None:
    """And the logo an image, whose script does not run when it is opened by itself."""
    (tmp_path / "report.yaml").write_text(yaml.safe_dump(report({"policy": "p", "rule": "r", "result": "fail"})))
    (tmp_path / "logo.svg").write_bytes(SVG)
    options = UiOptions(
        files=(str(tmp_path / "report.yaml"),), port=0, banner="Production", logo=str(tmp_path / "logo.svg")
    )

    async def play() -> tuple[object, ...]:
        async with serving(options) as url, aiohttp.ClientSession() as session:
            async with session.get(f"{url}api/v1/config") as response:
                config = await response.json()
            async with session.get(f"{url}static/logo") as response:
                policy = response.headers["Content-Security-Policy"]
                return config["banner"], config["hasLogo"], await response.read(), "script-src 'self'" in policy

    assert ("Production", True, SVG, True) == asyncio.run(play())


@pytest.mark.parametrize("body", [b"GIF89a", b"x" * 300_000])
def test_a_logo_is_a_small_image(tmp_path: Path, body: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """SVG or PNG."""
    (tmp_path / "report.yaml").write_text(yaml.safe_dump(report({"policy": "p", "rule": "r", "result": "fail"})))
    (tmp_path / "logo").write_bytes(body)
    assert 1 <= run(["ui", str(tmp_path / "report.yaml"), "--port", "0", "--logo", str(tmp_path / "logo")])
    assert "logo` " in capsys.readouterr().err
