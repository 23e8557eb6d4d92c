"""Finding and running programs."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyverno.errors import UsageError
from pyverno.programs import find_program, run_program, search_path


@dataclass(frozen=True)
class _Bounds:
    seconds: float = 60.0
    memory: int = 2**40


def _run(folder: Path, *command: str, seconds: float = 60.0) -> tuple[int, Path, str]:
    return run_program(
        command,
        folder=folder,
        environment={"PATH": os.defpath},
        deadline=time.monotonic() + seconds,
        bounds=_Bounds(seconds),
        check=lambda _output: None,
        task="it fails",
    )


def _python(text: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", text)


def test_only_absolute_folders_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are folders of whatever tree is judged."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert os.pathsep.join(("/a", "/b")) == search_path(os.pathsep.join(("/a", "", ".", "b", "../c", "/b")))
    assert str(program) == find_program("program", str(tmp_path))
    assert (None, None, None) == tuple(find_program("program", each) for each in ("", ".", "/"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert str(program) == find_program("program")


def test_output_and_last_words_are_kept(tmp_path: Path) -> None:
    """The words are one line for people."""
    text = "import sys; print('out'); sys.stderr.write('a\\x1b[31m\\nb'); sys.exit(3)"
    code, output, words = _run(tmp_path, *_python(text))
    assert (3, "out\n", "a [31m b") == (code, output.read_text(), words)


def test_a_program_that_cannot_be_run_is_an_error(tmp_path: Path) -> None:
    """It is not there, or is no program; the text begins with what was wanted."""
    with pytest.raises(UsageError, match=r"^it fails \(the program `no-such-program` is not installed\)$"):
        _run(tmp_path, "no-such-program")
    (tmp_path / "text").write_text("x")
    with pytest.raises(UsageError, match=r"^it fails \(`.*text` cannot be run: permission denied\)$"):
        _run(tmp_path, str(tmp_path / "text"))


def test_a_program_that_is_late_is_ended(tmp_path: Path) -> None:
    """Within the seconds of its bounds."""
    with pytest.raises(UsageError, match=r"^it fails \(no answer within 0\.1 seconds\)$"):
        _run(tmp_path, *_python("import time; time.sleep(60)"), seconds=0.1)
