"""The example programs of the library's page have types that `mypy --strict` accepts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.guide import page_files

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "library.md"


def test_the_example_programs_are_typed(tmp_path: Path) -> None:
    """Copied into a typed project, the programs raise no type errors."""
    files = page_files(PAGE.read_text(encoding="utf-8"))
    programs = {name: text for name, text in files.items() if name.endswith(".py")}
    for name, text in programs.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    arguments = ["--strict", "--no-error-summary", "--config-file=", f"--cache-dir={ROOT / '.mypy_cache' / 'examples'}"]
    files_to_check = [str(tmp_path / name) for name in programs]
    # in a process of its own: mypy raises the recursion limit for everything that runs after it
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *arguments, *files_to_check], capture_output=True, text=True, check=False
    )
    assert ("", "") == (done.stdout, done.stderr)
    assert len(programs) >= 4
