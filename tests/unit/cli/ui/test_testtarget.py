"""`pyverno ui test-target` sends a sample event and reports problems without showing a secret."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from pathlib import Path

from aiohttp import web

from pyverno.cli.root import run
from tests.support.services import Service


def command(
    folder: Path, *words: str, egress: str = "egress: {blocklist: []}", status: int = 200
) -> tuple[int, str, int]:
    """Run the command against a webhook; return code, output, and how many samples the webhook got."""

    async def play() -> tuple[int, str, int]:
        async with Service({"/S3CRET": lambda: web.Response(status=status)}) as service:
            (folder / "url").write_text(service.url("/S3CRET"))
            target = f"targets: [{{name: a, type: webhook, webhookFile: '{folder}/url', where: 'policy=other'}}]"
            (folder / "targets.yaml").write_text(f"{target}\n{egress}\n")
            out = io.StringIO()

            def call() -> int:
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                    return run(["ui", *words, "--notifications", str(folder / "targets.yaml")])

            code = await asyncio.to_thread(call)
            assert all(json.loads(each.body)["policy"] == "pyverno-test-target" for each in service.asked)
            return code, out.getvalue(), len(service.asked)

    return asyncio.run(play())


def test_a_sample_reaches_its_target(tmp_path: Path) -> None:
    """Whatever the filter is."""
    assert (0, "good: `a` (webhook) took a sample\n", 1) == command(tmp_path, "test-target", "a")


def test_a_target_that_fails_is_named_with_its_reason(tmp_path: Path) -> None:
    """The status, and not the path, which is the secret."""
    code, printed, _ = command(tmp_path, "test-target", "a", status=403)
    assert (1, True, False) == (code, "answers 403" in printed, "S3CRET" in printed)


def test_this_machine_is_no_target_unless_the_file_allows_it(tmp_path: Path) -> None:
    """As for calls of policies."""
    code, printed, asked = command(tmp_path, "test-target", "a", egress="")
    assert (1, 0, True) == (code, asked, "is blocked: it is in the blocked range 127.0.0.0/8" in printed)


def test_a_wrong_name_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    """And files are no sources of notifications."""
    code, printed, _ = command(tmp_path, "test-target", "b")
    assert (1, True) == (code, "there is no target `b`: expected a" in printed)
    code, printed, _ = command(tmp_path, "reports/")
    assert (1, True) == (code, "--notifications follows a cluster" in printed)
