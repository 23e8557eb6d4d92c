"""Output on terminals, code pages and files that take less than UTF-8, or nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from tests.support.documents import BAD, LATEST

if TYPE_CHECKING:
    from pathlib import Path

pty = pytest.importorskip("pty", reason="Windows has no terminals of this kind")
MESSAGE = "kein „latest“ → Ω 🚀"
TEXT = ("apply", "policy.yaml", "-r", "bad.yaml")
OUTPUTS = (TEXT, (*TEXT, "--table", "--detailed-results"), (*TEXT, "-v"), (*TEXT, "--compat", "kyverno"))
DOCUMENTS = tuple((*TEXT, "--format", form) for form in ("json", "yaml", "sarif", "junit", "github"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a policy whose message few code pages have."""
    (tmp_path / "policy.yaml").write_text(LATEST.replace("no latest", MESSAGE), encoding="utf-8")
    (tmp_path / "bad.yaml").write_text(BAD)
    return tmp_path


def run(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a process, because streams belong to a process."""
    command = [sys.executable, "-m", "pyverno", *arguments]
    return subprocess.run(command, cwd=place, env={**os.environ, **environment}, capture_output=True, check=False)


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp437"])
def test_text_never_fails_on_a_code_page(place: Path, encoding: str) -> None:
    """Characters outside the code page are escaped, and tables fall back to ASCII borders."""
    for arguments in OUTPUTS:
        ran = run(place, *arguments, PYTHONIOENCODING=encoding)
        assert (1, b"") == (ran.returncode, ran.stderr), ran.stderr
        assert "\\u2192" in ran.stdout.decode(encoding)
    drawn = run(place, *TEXT, "--table", PYTHONIOENCODING="ascii").stdout.decode()
    assert "| ID | POLICY" in drawn


def test_documents_are_utf_8_on_every_code_page(place: Path) -> None:
    """JSON, SARIF, YAML and XML have no other encoding."""
    for arguments in DOCUMENTS:
        ran = run(place, *arguments, PYTHONIOENCODING="cp1252")
        assert (1, b"") == (ran.returncode, ran.stderr)
        assert MESSAGE in ran.stdout.decode("utf-8").replace("\\U0001F680", "🚀")  # YAML escapes what is rare
        if arguments[-1] in ("json", "sarif"):
            json.loads(ran.stdout)
        if arguments[-1] == "junit":
            ElementTree.fromstring(ran.stdout)  # noqa: S314 - our own text


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")  # noqa: PTH110 - a device
@pytest.mark.parametrize(
    "arguments", [TEXT, DOCUMENTS[0], ("jp", "function"), ("--help",)], ids=lambda words: words[-1]
)
def test_a_full_disk_is_one_error(place: Path, arguments: tuple[str, ...]) -> None:
    """No traceback, and no answer that looks complete."""
    command = [sys.executable, "-m", "pyverno", *arguments]
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        ran = subprocess.run(command, cwd=place, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (1, b"Error: cannot write the output: no space left on device\n") == (ran.returncode, ran.stderr)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(place: Path, closed: str) -> None:
    """The exit code is that of the run."""
    line = f"{sys.executable} -m pyverno {' '.join(TEXT)} {closed}"
    ran = subprocess.run(["sh", "-c", line], cwd=place, capture_output=True, check=False)
    assert (1, b"") == (ran.returncode, ran.stderr)


@pytest.mark.parametrize(("term", "columns"), [("dumb", "80"), ("xterm", "40"), ("xterm", "400")])
def test_a_terminal_gets_colours_only_if_it_has_them(place: Path, term: str, columns: str) -> None:
    """`TERM=dumb` gets neither colours nor a line that moves; no width breaks the output."""
    main, other = pty.openpty()
    environment = {**os.environ, "TERM": term, "COLUMNS": columns}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "pyverno", *TEXT]
    with subprocess.Popen(command, cwd=place, env=environment, stdout=other, stderr=other) as process:
        os.close(other)
        shown = b""
        try:
            while part := os.read(main, 65536):
                shown += part
        except OSError:  # how a terminal says that its other end was closed
            pass
        finally:
            os.close(main)
    assert (1, term != "dumb", True) == (process.returncode, b"\x1b[" in shown, b"no-latest/tag" in shown)
