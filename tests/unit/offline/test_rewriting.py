"""Files whose content is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.errors import UsageError
from pyverno.offline.rewriting import replace_file


def test_a_link_stays_a_link_and_its_file_keeps_its_mode(tmp_path: Path) -> None:
    """Repositories share files by links; a correction must not make a copy of one."""
    file, link = tmp_path / "file.yaml", tmp_path / "link.yaml"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to("file.yaml")
    replace_file(link, b"new")
    assert (True, "new", 0o640) == (link.is_symlink(), file.read_text(), file.stat().st_mode & 0o777)
    assert ["file.yaml", "link.yaml"] == sorted(each.name for each in tmp_path.iterdir())


def test_a_file_that_cannot_be_written_keeps_its_content(tmp_path: Path) -> None:
    """The error names it, and nothing is left beside it."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=r"cannot write `.*folder`: is a directory"):
        replace_file(tmp_path / "folder", b"new")
    assert ["folder"] == [each.name for each in tmp_path.iterdir()]
