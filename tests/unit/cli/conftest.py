"""A folder with policies and resources, and a way to run the command line in it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from pyverno.cli.root import run
from tests.support import documents
from tests.support.commandline import Ran, Run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a file for every document."""
    for name in ("latest", "audited", "label", "generate", "namespaced", "cleanup", "exception", "cel", "invalid"):
        (tmp_path / f"{name}.yaml").write_text(getattr(documents, name.upper()))
    (tmp_path / "good.yaml").write_text(documents.GOOD)
    (tmp_path / "bad.yaml").write_text(documents.BAD)
    (tmp_path / "namespace.yaml").write_text(documents.NAMESPACE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in the folder."""

    def call(*arguments: str, stdin: str = "") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        code = run(arguments)
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return call
