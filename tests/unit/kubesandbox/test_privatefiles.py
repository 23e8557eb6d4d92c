"""Files with keys are closed to others, whatever was there before, and nothing is written behind a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubesandbox import Sandbox
from kubesandbox.privatefiles import make_private_file, make_private_folder, read_private, write_private
from kubesandbox.storage.journal import SqliteJournal
from pyverno.errors import UsageError


def mode(path: Path) -> int:
    """Return the permissions of a file."""
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("before", [None, 0o644, 0o666, 0o400])
def test_a_secret_is_written_with_the_mode_of_a_secret(tmp_path: Path, before: int | None) -> None:
    """A file that was there, open to others, is closed; nothing but the file is left in the folder."""
    path = tmp_path / "key"
    if before is not None:
        path.write_text("old")
        path.chmod(before)
    write_private(path, b"new")
    assert (b"new", 0o600, [path]) == (path.read_bytes(), mode(path), list(tmp_path.iterdir()))


def test_a_reader_of_the_old_file_never_sees_a_part_of_the_new_one(tmp_path: Path) -> None:
    """The new content is a file of its own that takes the place of the old one."""
    path = tmp_path / "key"
    path.write_text("old")
    with path.open() as reader:
        write_private(path, b"new")
        assert "old" == reader.read()


@pytest.mark.parametrize("work", [lambda path: write_private(path, b"new"), read_private, make_private_file])
@pytest.mark.parametrize("target", ["elsewhere", "missing"])
def test_a_link_is_refused(tmp_path: Path, work, target: str) -> None:
    """Neither the link nor its target is changed, even if the target does not exist."""
    (tmp_path / "elsewhere").write_text("old")
    (tmp_path / "elsewhere").chmod(0o644)
    link = tmp_path / "key"
    link.symlink_to(tmp_path / target)
    with pytest.raises(UsageError, match="is a symbolic link, which is not followed"):
        work(link)
    assert ("old", 0o644, True) == (
        (tmp_path / "elsewhere").read_text(),
        mode(tmp_path / "elsewhere"),
        link.is_symlink(),
    )
    assert not (tmp_path / "missing").exists()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A pipe, a folder or a device is not replaced."""
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(UsageError, match="no plain file"):
            write_private(place, b"new")


def test_a_key_that_others_could_read_is_closed_when_it_is_read(tmp_path: Path) -> None:
    """Keys of a folder that an older version made, or that was copied."""
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o644)
    assert (b"old", 0o600) == (read_private(path), mode(path))


def test_folders(tmp_path: Path) -> None:
    """A new one, an empty one and one of ours are closed; one with other contents and a link are refused."""
    new, empty, ours, shared = (tmp_path / name for name in ("new", "empty", "ours", "shared"))
    for place in (empty, ours, shared):
        place.mkdir()
        place.chmod(0o755)
    (ours / "known").touch()
    (shared / "letters").touch()
    for place in (new, empty, ours):
        make_private_folder(place, known="known")
        assert 0o700 == mode(place)
    with pytest.raises(UsageError, match="is open to others and holds other files"):
        make_private_folder(shared, known="known")
    assert 0o755 == mode(shared)
    shared.chmod(0o700)
    make_private_folder(shared, known="known")
    (tmp_path / "link").symlink_to(new)
    with pytest.raises(UsageError, match="symbolic link"):
        make_private_folder(tmp_path / "link", known="known")


def test_nobody_else_may_write_where_a_folder_is(tmp_path: Path) -> None:
    """Folders above that are missing are made so that no one else can replace the folder, whatever the umask is."""
    before = os.umask(0)
    try:
        make_private_folder(tmp_path / "a" / "b" / "data", known="known")
    finally:
        os.umask(before)
    modes = [(tmp_path / each).stat().st_mode & 0o777 for each in ("a", "a/b", "a/b/data")]
    assert [0o755, 0o755, 0o700] == modes


def test_all_files_of_a_data_folder_are_closed(tmp_path: Path) -> None:
    """Folder, keys, certificates, kubeconfig and journal, when everything was there and open to all."""
    folder = tmp_path / "data"
    with Sandbox(data_dir=folder, controllers=False):
        pass
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o666)
    (folder / "objects.sqlite-wal").touch(mode=0o666)
    with Sandbox(data_dir=folder, controllers=False):
        assert {0o600} == {mode(path) for path in folder.iterdir() if path.name != "ca.crt"}
        assert 0o700 == mode(folder)


@pytest.mark.parametrize("name", ["ca.key", "sa.key", "server.pem", "kubeconfig", "objects.sqlite"])
def test_a_link_in_a_data_folder_ends_the_start(tmp_path: Path, name: str) -> None:
    """A link could supply foreign keys or redirect a write."""
    folder = tmp_path / "data"
    with Sandbox(data_dir=folder, controllers=False):
        pass
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    with pytest.raises(UsageError, match="symbolic link"):
        Sandbox(data_dir=folder, controllers=False).__enter__()
    assert content == (tmp_path / name).read_bytes()


def test_a_journal_is_closed_to_others(tmp_path: Path) -> None:
    """The file itself and what SQLite keeps beside it."""
    (tmp_path / "j").touch(mode=0o666)
    (tmp_path / "j").chmod(0o666)
    journal = SqliteJournal(tmp_path / "j")
    assert {0o600} == {mode(path) for path in tmp_path.iterdir()}
    journal.close()
