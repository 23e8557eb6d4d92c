"""Writes the generated files of deploy: `python -m scripts.charts`; with `--check` only names the stale ones."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from scripts.charts.controllers import controller_files
from scripts.charts.monitoring import monitoring_files
from scripts.charts.policies import policy_files

__all__ = ["CHARTS", "main", "stale_files"]

CHARTS = Path(__file__).resolve().parents[2] / "deploy" / "charts"
_MADE: tuple[Callable[[Path], dict[Path, str]], ...] = (controller_files, monitoring_files, policy_files)
_FOLDERS = ("pyverno/files/crds", "pyverno-policies/files")


def stale_files(folder: Path = CHARTS) -> Iterator[tuple[Path, str | None]]:
    """Yield the stale files with the text that they should have, None for superfluous ones."""
    wanted = {path: text for make in _MADE for path, text in make(folder).items()}
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield path, text
    for name in _FOLDERS:
        for path in sorted((folder / name).rglob("*")):
            if path.is_file() and path not in wanted:
                yield path, None


def main() -> int:
    """Write or check the files; returns the exit code."""
    parser = argparse.ArgumentParser(description="Write the generated files of deploy/charts.")
    parser.add_argument("--check", action="store_true", help="write nothing, name the files that are stale")
    is_check = parser.parse_args().check
    found = list(stale_files())
    if is_check and found:
        names = ", ".join(str(path.relative_to(CHARTS.parent)) for path, _ in found)
        print(f"stale files of deploy (run `make charts`): {names}", file=sys.stderr)
        return 1
    for path, text in found:
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        print(f"{'wrote' if text is not None else 'removed'} deploy/{path.relative_to(CHARTS.parent)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
