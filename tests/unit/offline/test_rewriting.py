"""Files whose content is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.errors import UsageError
from pyverno.offline.rewriting import decode_lines, encode_like, replace_file


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


@pytest.mark.parametrize(
    ("content", "text", "replaced"),
    [
        (b"a\nb\n", "a\nb\n", b"c\nd\n"),
        (b"a\r\nb\r\n", "a\nb\n", b"c\r\nd\r\n"),
        (b"\xef\xbb\xbfa\r\n", "a\n", b"\xef\xbb\xbfc\r\nd\r\n"),
        (b"a\r\nb\n", "a\r\nb\n", b"c\nd\n"),
        (b"a", "a", b"c\nd\n"),
    ],
)
def test_a_new_text_has_the_mark_and_the_line_ends_of_the_old_one(content: bytes, text: str, replaced: bytes) -> None:
    """Files of Windows stay files of Windows; where line ends are mixed, only the new text is written."""
    assert (text, replaced) == (decode_lines(content), encode_like("c\nd\n", content))
