"""A sandbox with a data directory: killed again and again, it forgets nothing that it has acknowledged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kubesandbox.storage.journal import SqliteJournal
from tests.e2e.sandbox.client import Client

KILLS = 50
SERVER_KILLS = 2
_WRITER = """
import sys
from pathlib import Path
from kubesandbox.storage.journal import SqliteJournal
from kubesandbox.storage.store import Key, Store

journal = SqliteJournal(Path(sys.argv[1]))
store = Store(journal.states(), revision=journal.revision, journal=journal)
for number in range(1_000_000):
    key = Key("configmaps", "default", f"c{number % 40}")
    if number % 7 == 3 and store.get(key):
        state = store.remove(key)
        print("-", key.name, state.revision, flush=True)
    else:
        state = store.put(key, {"metadata": {"name": key.name}, "data": {"n": str(number)}})
        print("+", key.name, state.revision, flush=True)
"""
_SERVER = """
import sys, time
from pathlib import Path
from kubesandbox import Sandbox
with Sandbox(data_dir=Path(sys.argv[1]), controllers=False, authorization=False) as sandbox:
    print(sandbox.url, flush=True)
    time.sleep(600)
"""


def started(folder: Path) -> subprocess.Popen[str]:
    """Start a server and wait until it listens."""
    process = subprocess.Popen([sys.executable, "-c", _SERVER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("https://")
    return process


def killed(process: subprocess.Popen[str]) -> None:
    """Kill a server without a word."""
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


class Writer:
    """Writes until its server is gone, and remembers what was acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[str, tuple[str, str] | None] = {}
        self.doubtful: set[str] = set()
        self.round = 0

    def write(self) -> None:
        """Create, change and delete until the connection breaks."""
        client = Client(str(self.folder / "kubeconfig"))
        self.round += 1
        number = 0
        try:
            while True:
                number += 1
                self._step(client, number)
        except (OSError, EOFError, ValueError, IndexError):
            client.close()
        except Exception as error:
            client.close()
            if type(error).__module__ != "http.client":
                raise

    def _step(self, client: Client, number: int) -> None:
        path = "/api/v1/namespaces/default/configmaps"
        name = f"c-{self.round}-{number}"
        self.doubtful.add(name)
        made = client.post(path, {"metadata": {"name": name}, "data": {"n": "0"}})
        assert 201 == made.status
        self._acknowledged(name, made.body)
        if number % 3 == 1:
            self.doubtful.add(name)
            self._acknowledged(name, client.merge(f"{path}/{name}", {"data": {"n": "1"}}).body)
        if number % 3 == 2:
            self.doubtful.add(name)
            assert 200 == client.delete(f"{path}/{name}").status
            self.known[name] = None
            self.doubtful.discard(name)

    def _acknowledged(self, name: str, body: dict[str, dict[str, str]]) -> None:
        self.known[name] = (body["metadata"]["uid"], body["metadata"]["resourceVersion"])
        self.doubtful.discard(name)

    def check(self) -> None:
        """Compare a restarted server with the acknowledged writes."""
        client = Client(str(self.folder / "kubeconfig"))
        listed = client.get("/api/v1/namespaces/default/configmaps").body
        client.close()
        found = {
            item["metadata"]["name"]: (item["metadata"]["uid"], item["metadata"]["resourceVersion"])
            for item in listed["items"]
        }
        expected = {name: state for name, state in self.known.items() if state and name not in self.doubtful}
        assert expected == {name: state for name, state in found.items() if name not in self.doubtful}
        newest = max((int(version) for _, version in expected.values()), default=0)
        assert int(listed["metadata"]["resourceVersion"]) >= newest
        for name in self.doubtful:
            # whether the last write came through nobody was told; from now on it is known
            self.known[name] = found.get(name)
        self.doubtful.clear()


def test_no_recorded_write_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    """After each kill in the middle of writing, every acknowledged write is stored with its version."""
    path = tmp_path / "objects.sqlite"
    chance = random.Random(1)  # noqa: S311  # moments, no secrets
    known: dict[str, int] = {}
    newest = 1
    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        threading.Timer(chance.uniform(0.001, 0.05), process.kill).start()
        lines += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        # the last line may be half of one, and one more write may be recorded than was told
        told = [line.split() for line in lines if line.endswith("\n")]
        for sign, name, version in told:
            newest = int(version)
            known[name] = newest if sign == "+" else 0
        journal = SqliteJournal(path)
        found = {state.key.name: state.revision for state in journal.states()}
        assert newest <= journal.revision <= newest + 1
        wrong = {name for name, version in known.items() if found.get(name, 0) != version}
        assert len(wrong) <= 1
        assert all(found.get(name, newest + 1) in (0, newest + 1) for name in wrong)
        known, newest = found, journal.revision
        journal.close()
    assert newest > KILLS


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    """A whole server, in the middle of writing: objects, uids, versions and keys are there again."""
    writer = Writer(tmp_path)
    chance = random.Random(1)  # noqa: S311  # moments, no secrets
    process = started(tmp_path)
    authority = (tmp_path / "ca.crt").read_bytes()
    for _ in range(SERVER_KILLS):
        thread = threading.Thread(target=writer.write)
        thread.start()
        time.sleep(chance.uniform(0.02, 0.12))
        killed(process)
        thread.join()
        process = started(tmp_path)
        writer.check()
    killed(process)
    assert len(writer.known) > SERVER_KILLS
    assert authority == (tmp_path / "ca.crt").read_bytes()
    for path in tmp_path.iterdir():
        assert 0o600 == path.stat().st_mode & 0o777, path.name


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_command_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """Exit code 0, nothing on stderr, and the data closed; a closed terminal left a folder with the kubeconfig."""
    words = [sys.executable, "-m", "pyverno", "sandbox", "--data-dir", str(tmp_path / "data"), "--no-kubelet"]
    left = tmp_path / "temporary"
    left.mkdir()
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(left)}
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Kubernetes 1.35 is ready at https://127.0.0.1:")
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert (0, "") == (process.returncode, errors)
    assert not (tmp_path / "data" / "objects.sqlite-wal").exists()
    assert [] == [*left.iterdir()]
