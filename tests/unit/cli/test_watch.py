"""A run that is repeated when files change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyverno.cli.watch import watch
from pyverno.errors import DocumentError, UsageError


class _Over(Exception):  # noqa: N818 - ends a watch
    pass


def _edits(folder: Path, *edits: tuple[str, str]) -> Callable[[float], None]:
    """Return a wait that writes one file (name and text; an empty name is no file) at each call, and then ends."""
    left = iter(edits)

    def wait(_: float) -> None:
        edit = next(left, None)
        if edit is None:
            raise _Over
        name, text = edit
        if name:
            (folder / name).write_text(text)

    return wait


def test_changes_below_folders_and_of_globs_start_a_run(tmp_path: Path) -> None:
    """A new file counts as well; hidden folders, backups and files beside them do not."""
    for name in ("watched/.git", "other", "globs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "globs/a.yaml").write_text("1")
    runs: list[int] = []
    wait = _edits(
        tmp_path,
        *(("watched/.git/HEAD", "x"), ("watched/a.yaml~", "x"), ("other/a.yaml", "x"), ("globs/a.txt", "x")),
        *(("watched/new.yaml", "1"), ("", ""), ("globs/a.yaml", "22"), ("globs/b.yaml", "1")),
    )
    with pytest.raises(_Over):
        watch(lambda: runs.append(1), lambda: (f"{tmp_path}/watched", f"{tmp_path}/globs/*.yaml"), wait=wait)
    assert 4 == len(runs)


def test_files_that_a_run_writes_start_no_run(tmp_path: Path) -> None:
    """The output may be in a folder that is watched."""
    (tmp_path / "a.yaml").write_text("1")
    runs: list[int] = []

    def run() -> None:
        runs.append(1)
        (tmp_path / "report.json").write_text("x" * len(runs))

    with pytest.raises(_Over):
        watch(run, lambda: [str(tmp_path)], output=f"{tmp_path}/report.json", wait=_edits(tmp_path, ("a.yaml", "22")))
    assert 2 == len(runs)


def test_an_error_of_any_kind_ends_only_its_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is reported; the next change starts another run."""
    (tmp_path / "a.yaml").write_text("1")
    outcomes = iter([UsageError("no policy"), DocumentError("bad text"), None])

    def run() -> None:
        error = next(outcomes)
        if error is not None:
            raise error

    with pytest.raises(_Over):
        watch(run, lambda: [str(tmp_path)], wait=_edits(tmp_path, ("a.yaml", "22"), ("a.yaml", "333")))
    waiting = "note: waiting for changes, interrupt to stop\n"
    assert f"Error: no policy\n{waiting}Error: bad text\n{waiting}{waiting}" == capsys.readouterr().err


def test_a_watch_without_any_file_ends(tmp_path: Path) -> None:
    """Nothing could ever start another run."""
    with pytest.raises(UsageError, match="finds no file that could change"):
        watch(lambda: None, lambda: [f"{tmp_path}/missing"])
