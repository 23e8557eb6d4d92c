"""Files of folders, also of folders with links."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.offline.files import find_yaml
from pyverno.offline.folderrules import FolderRules
from pyverno.offline.folders import find_files


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder whose links lead to itself, to a folder beside it that links back, and twice to a shared one."""
    for name in ("shared", "main", "main/sub", "beside"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "a.yaml").write_text("a: 1\n")
    for link, target in (
        ("main/self", tmp_path / "main"),
        ("main/sub/up", tmp_path),
        ("main/beside", tmp_path / "beside"),
        ("beside/back", tmp_path / "main"),
        ("main/one", tmp_path / "shared"),
        ("main/two", tmp_path / "shared"),
    ):
        (tmp_path / link).symlink_to(target)
    return tmp_path / "main"


def test_links_between_folders_are_followed_once(linked: Path) -> None:
    """No file is read again and again because a link leads back; a shared folder is read under its first name."""
    files = [path.relative_to(linked).as_posix() for path in find_yaml(linked)]
    assert ["a.yaml", "beside/a.yaml", "one/a.yaml", "sub/a.yaml"] == files
    assert files == [path.relative_to(linked).as_posix() for path in find_files(linked, FolderRules(), [])]
