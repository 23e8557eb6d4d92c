"""Connections to files."""

from __future__ import annotations

import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from pyverno.errors import UsageError
from pyverno.ui.store.database import Role
from pyverno.ui.store.sqlite import connect_file


def is_open(file: Path) -> bool:
    """Report whether this process has an open descriptor of a file."""
    wanted = file.stat()
    for descriptor in Path("/dev/fd").iterdir():
        try:
            found = os.fstat(int(descriptor.name))
        except OSError:
            continue  # the descriptor of the listing itself
        if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
    return False


@pytest.mark.parametrize("role", Role)
def test_a_file_that_is_no_database_does_not_stay_open(tmp_path: Path, role: Role) -> None:
    """The file is closed even while the error and its frames are still referenced."""
    text = tmp_path / "text"
    text.write_text("not a database " * 100)
    with pytest.raises(UsageError) as raised:
        connect_file(str(text), role)
    assert "not a database" in str(raised.value)
    assert not is_open(text)


def test_a_store_stays_open_until_its_connection_is_closed(tmp_path: Path) -> None:
    """`is_open` finds the file meanwhile."""
    file = tmp_path / "store.db"
    connection = connect_file(str(file), Role.WRITER)
    assert is_open(file)
    connection.close()
    assert not is_open(file)


@pytest.mark.parametrize(("before", "after"), [(None, 0o600), (0o644, 0o640), (0o660, 0o660), (0o666, 0o660)])
def test_a_store_is_closed_to_other_users_of_the_machine(tmp_path: Path, before: int | None, after: int) -> None:
    """It holds what the pages show to some users only; a volume of a group stays one."""
    file = tmp_path / "store.db"
    if before is not None:
        file.touch()
        file.chmod(before)
    with closing(connect_file(str(file), Role.WRITER)) as connection:
        connection.execute("CREATE TABLE a (b INTEGER)")
        assert {after} == {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
