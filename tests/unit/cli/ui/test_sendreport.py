"""`pyverno ui send-report` mails the results of now."""

from __future__ import annotations

import asyncio
import contextlib
import io
from pathlib import Path

import yaml

from pyverno.cli.root import run
from tests.unit.report.test_collected import report
from tests.unit.ui.notifications.targets.test_mail import Inbox, serve

RESULTS = (
    {"policy": "labels", "rule": "team", "result": "fail", "severity": "high", "message": "<b>no</b>"},
    {"policy": "labels", "rule": "other", "result": "pass"},
    {"policy": "images", "rule": "tag", "result": "warn"},
)


def command(folder: Path, inbox: Inbox, *words: str, extra: str = "") -> tuple[int, str]:
    """Run the command with a mail server and a report in a file; return code and output."""
    (folder / "report.yaml").write_text(yaml.safe_dump(report(*RESULTS)))

    async def play() -> tuple[int, str]:
        async with serve(inbox, folder, {}) as options:
            text = (
                f"targets: [{{name: a, {options}{extra}}}, {{name: chat, type: slack, webhook: 'https://x.example'}}]"
            )
            (folder / "targets.yaml").write_text(f"{text}\negress: {{blocklist: []}}\n")
            out = io.StringIO()

            def call() -> int:
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                    return run(["ui", "send-report", *words, "--notifications", str(folder / "targets.yaml")])

            return await asyncio.to_thread(call), out.getvalue()

    return asyncio.run(play())


def test_a_report_is_mailed_as_text_and_as_a_page(tmp_path: Path) -> None:
    """It holds the results that the target's filter admits, by policy; texts of results are no markup."""
    inbox = Inbox()
    file = str(tmp_path / "report.yaml")
    assert (0, "good: `a` took a report of 2 results\n") == command(tmp_path, inbox, "a", file)
    ((recipients, message),) = inbox.messages
    assert ["team@example.org", "two@example.org"] == recipients
    assert "policy report of cluster: 1 fail, 1 warn" == message["Subject"]
    text, page = (message.get_body((kind,)) for kind in ("plain", "html"))
    assert text is not None
    assert page is not None
    assert ["images: 1 warn", "labels: 1 fail"] == sorted(text.get_content().strip().splitlines()[2:])
    assert "&lt;b&gt;no&lt;/b&gt;" in page.get_content()


def test_the_filter_of_the_target_is_that_of_its_reports(tmp_path: Path) -> None:
    """A summary holds what passes, too."""
    inbox = Inbox()
    where = ", where: 'status=pass,fail,warn'"
    assert (0, "good: `a` took a report of 3 results\n") == command(
        tmp_path, inbox, "a", str(tmp_path / "report.yaml"), extra=where
    )


def test_what_cannot_be_mailed_is_one_line(tmp_path: Path) -> None:
    """Another kind of target, another name, and a server that refuses."""
    file, inbox = str(tmp_path / "report.yaml"), Inbox()
    code, printed = command(tmp_path, inbox, "chat", file)
    assert (1, True) == (code, "`chat` is of type slack" in printed)
    code, printed = command(tmp_path, inbox, "b", file)
    assert (1, True) == (code, "there is no target `b`: expected a, chat" in printed)
    inbox.refusal = "554 no"
    code, printed = command(tmp_path, inbox, "a", file)
    assert (1, "wrong: `127.0.0.1` answers 554\n") == (code, printed)
