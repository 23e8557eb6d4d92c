"""Files of folders, also of folders with links."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from pyverno.errors import UsageError
from pyverno.offline.files import expand, find_yaml
from pyverno.offline.folderrules import FolderRules, Skipped
from pyverno.offline.folders import find_files
from pyverno.offline.links import OUTSIDE, tree_root


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder with links to itself and above, to a folder that links back, and twice to one that is shared."""
    for name in ("main", "main/sub", "main/z", "main/z/beside", "main/z/shared", "outside"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "a.yaml").write_text("a: 1\n")
    for link, target in (
        ("main/self", tmp_path / "main"),
        ("main/sub/up", tmp_path),
        ("main/beside", tmp_path / "main" / "z" / "beside"),
        ("main/z/beside/back", tmp_path / "main"),
        ("main/one", tmp_path / "main" / "z" / "shared"),
        ("main/two", tmp_path / "main" / "z" / "shared"),
        ("main/b.yaml", tmp_path / "outside" / "a.yaml"),
        ("main/c.yaml", Path("z/a.yaml")),
        ("main/README", tmp_path / "outside" / "a.yaml"),
    ):
        (tmp_path / link).symlink_to(target)
    return tmp_path / "main"


_FILES = ["a.yaml", "beside/a.yaml", "c.yaml", "one/a.yaml", "sub/a.yaml", "z/a.yaml", "z/beside/a.yaml"]


def _names(folder: Path, files: Iterable[Path]) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in files]


def test_links_between_folders_are_followed_once(linked: Path) -> None:
    """No file is read again and again because a link leads back, and none outside; what is left out is noted."""
    for search in (
        lambda skipped: find_yaml(linked, skipped=skipped),
        lambda skipped: find_files(linked, FolderRules(), skipped),
    ):
        skipped: list[Skipped] = []
        assert [*_FILES, "z/shared/a.yaml"] == _names(linked, search(skipped))
        assert {OUTSIDE} == {each.reason for each in skipped}
        assert ["b.yaml", "sub/up"] == _names(linked, (Path(each.path) for each in skipped))


def test_a_link_out_is_an_error_where_nothing_could_note_it(linked: Path) -> None:
    """The text names the link."""
    with pytest.raises(UsageError, match=r"b\.yaml` is a link to a place outside of the folder"):
        list(find_yaml(linked))


def test_a_link_that_is_named_is_read(linked: Path) -> None:
    """The user chose it, as a file or as a folder; a pattern chooses nothing."""
    assert ["b.yaml"] == _names(linked, expand([str(linked / "b.yaml")]))
    assert [linked / "sub" / "up" / "outside" / "a.yaml"] == list(expand([str(linked / "sub" / "up" / "outside")]))
    skipped: list[Skipped] = []
    assert ["a.yaml", "c.yaml"] == _names(linked, expand([str(linked / "*.yaml")], skipped=skipped))
    assert ["b.yaml"] == _names(linked, (Path(each.path) for each in skipped))


def test_a_tree_ends_at_its_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one the working folder is the top; a submodule is a part of the repository around it."""
    (tmp_path / "a/b/c").mkdir(parents=True)
    monkeypatch.chdir("/")
    assert Path("/") == tree_root(tmp_path / "a/b/c")
    monkeypatch.chdir(tmp_path / "a/b/c")
    assert None is tree_root(tmp_path / "a")
    (tmp_path / "a/b/.git").write_text("gitdir: ../.git/modules/b\n")
    (tmp_path / "a/.git").mkdir()
    assert tmp_path / "a" == tree_root(tmp_path / "a/b/c")
    (tmp_path / "a/b/.git").write_text("gitdir: ../../other/.git/worktrees/b\n")
    assert tmp_path / "a/b" == tree_root(tmp_path / "a/b/c")
