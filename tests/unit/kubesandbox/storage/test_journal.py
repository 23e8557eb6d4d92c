"""The journal: every recorded object survives a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesandbox.storage.journal import SqliteJournal
from kubesandbox.storage.store import Key, Store, TooOldError
from pyverno.errors import DocumentError, UsageError
from pyverno.kube.json import equal
from pyverno.kube.status import StatusError
from tests.unit.kubesandbox.serving import api_server, config_map, run, write

A, B = Key("pods", "one", "a"), Key("pods", "two", "b")


def opened(path: Path) -> tuple[Store, SqliteJournal]:
    """Return a store over a journal."""
    journal = SqliteJournal(path)
    return Store(journal.states(), revision=journal.revision, journal=journal), journal


def test_deep_objects_come_back(tmp_path: Path) -> None:
    """Objects may be nested as deeply as requests allow."""
    deep: object = 1
    for _ in range(5000):
        deep = {"a": deep}
    store, journal = opened(tmp_path / "j")
    store.put(A, {"metadata": {"name": "a"}, "x": deep})
    journal.close()
    again, journal = opened(tmp_path / "j")
    found = again.get(A)
    assert found is not None
    assert equal(deep, found.body["x"])
    journal.close()


def test_objects_come_back_with_their_versions(tmp_path: Path) -> None:
    """New, changed and removed ones; the version counter continues."""
    store, journal = opened(tmp_path / "j")
    store.put(A, {"metadata": {"name": "a", "uid": "1"}, "x": 1})
    store.put(B, {"metadata": {"name": "b"}})
    store.put(A, {"metadata": {"name": "a", "uid": "1"}, "x": 2})
    store.remove(B)
    expected = store.get(A)
    journal.close()
    again, journal = opened(tmp_path / "j")
    found = again.get(A)
    assert expected is not None
    assert found is not None
    assert (expected.body, expected.revision, None, 5) == (found.body, found.revision, again.get(B), again.revision)
    assert 6 == again.put(B, {"metadata": {"name": "b"}}).revision
    journal.close()


def test_changes_from_before_a_restart_can_not_be_watched(tmp_path: Path) -> None:
    """Only the newest states are kept."""
    store, journal = opened(tmp_path / "j")
    store.put(A, {"metadata": {"name": "a"}})
    store.put(A, {"metadata": {"name": "a"}})
    journal.close()
    again, journal = opened(tmp_path / "j")
    assert [] == [*again.changes_since("pods", again.revision)]
    with pytest.raises(TooOldError):
        again.changes_since("pods", 2)
    journal.close()


def test_a_write_that_can_not_be_recorded_is_not_made(tmp_path: Path) -> None:
    """No client sees it, and the version is not used up."""
    store, journal = opened(tmp_path / "j")
    store.put(A, {"metadata": {"name": "a"}})
    revision = store.revision
    with pytest.raises(DocumentError):
        store.put(B, {"metadata": {"name": "b"}, "odd": object()})
    assert (None, revision) == (store.get(B), store.revision)
    store.put(B, {"metadata": {"name": "b"}})
    journal.close()
    again, journal = opened(tmp_path / "j")
    assert {A, B} == {state.key for state in again.all("pods")}
    journal.close()


def test_a_full_disk_is_named_and_forgotten_when_there_is_room(tmp_path: Path) -> None:
    """The answer was `OperationalError`, of a rollback that SQLite had already done."""
    store, journal = opened(tmp_path / "j")
    store.put(A, {"metadata": {"name": "a"}})
    pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]
    journal._connection.execute(f"PRAGMA max_page_count = {pages}")
    large = {"metadata": {"name": "b"}, "data": {"x": "y" * 100_000}}
    for _ in range(2):
        with pytest.raises(StatusError) as raised:
            store.put(B, large)
        told = f"Internal error occurred: the object cannot be stored in `{tmp_path / 'j'}`: database or disk is full"
        assert (500, told) == (raised.value.status, raised.value.message)
    assert (None, True) == (store.get(B), store.get(A) is not None)
    journal._connection.execute("PRAGMA max_page_count = 10000")
    store.put(B, large)
    journal.close()
    again, journal = opened(tmp_path / "j")
    assert {A, B} == {state.key for state in again.all("pods")}
    journal.close()


def test_two_processes_can_not_share_a_journal(tmp_path: Path) -> None:
    """The second one gets an error."""
    _, journal = opened(tmp_path / "j")
    with pytest.raises(UsageError, match="cannot be used as data of a sandbox: database is locked"):
        opened(tmp_path / "j")
    journal.close()


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    """A text file, or a journal of another format, is refused."""
    (tmp_path / "text").write_text("hello " * 1000)
    with pytest.raises(UsageError, match="file is not a database"):
        opened(tmp_path / "text")
    assert (tmp_path / "text").read_text().startswith("hello")
    _, journal = opened(tmp_path / "j")
    journal._connection.execute("UPDATE facts SET value = 99 WHERE name = 'format'")
    journal.close()
    with pytest.raises(UsageError, match="it has the format 99 of another version"):
        opened(tmp_path / "j")


def test_room_of_removed_objects_is_given_back(tmp_path: Path) -> None:
    """The next start compacts the journal."""
    store, journal = opened(tmp_path / "j")
    for number in range(200):
        store.put(Key("pods", "one", f"p{number}"), {"metadata": {"name": "p"}, "text": "x" * 5000})
    for number in range(199):
        store.remove(Key("pods", "one", f"p{number}"))
    journal.close()
    before = (tmp_path / "j").stat().st_size
    _, journal = opened(tmp_path / "j")
    journal.close()
    assert before > 5 * (tmp_path / "j").stat().st_size


def test_a_server_continues_where_it_was(tmp_path: Path) -> None:
    """Uids and versions are the same as before the restart."""
    store, journal = opened(tmp_path / "j")
    server = api_server(store)
    made = run(server.create(write(server, "configmaps"), config_map("a", {"x": "y"}))).body
    journal.close()
    store, journal = opened(tmp_path / "j")
    again = api_server(store)
    state = again.store.get(Key("configmaps", "default", "a"))
    assert state is not None
    assert made == state.body
    journal.close()
