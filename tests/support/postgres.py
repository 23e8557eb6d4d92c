"""A PostgreSQL server for tests: Debian's, on a socket in its own folder, stopped with the tests."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

_SCHEMAS = count(1)
_FAST = "-c fsync=off -c full_page_writes=off -c listen_addresses= -c max_connections=50"


class Postgres:
    """A running server."""

    def __init__(self, folder: Path, account: dict[str, Any]) -> None:
        self._folder = folder
        self._account = account

    def control(self, *words: str) -> None:
        """Run pg_ctl."""
        options = f"{_FAST} -c unix_socket_directories={self._folder}"
        command = [
            _program("pg_ctl"),
            "-D",
            f"{self._folder}/data",
            "-w",
            "-t",
            "300",
            "-l",
            f"{self._folder}/log",
            "-o",
            options,
        ]
        subprocess.run([*command, *words], check=True, stdout=subprocess.DEVNULL, cwd="/", **self._account)

    def new_schema(self) -> str:
        """Return the URL of an empty schema."""
        import psycopg

        name = f"s{next(_SCHEMAS)}"
        url = f"postgresql:///postgres?host={self._folder}&user=postgres"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{url}&options=-csearch_path%3D{name}"


def _program(name: str) -> str:
    found = shutil.which(name) or next(
        (str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)), ""
    )
    if not found:
        pytest.skip(f"PostgreSQL is not installed: there is no {name}")
    return found


@contextmanager
def run_postgres() -> Iterator[Postgres]:
    """Run a server; the test is skipped if PostgreSQL or psycopg is not installed."""
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed")
    initdb = _program("initdb")
    account: dict[str, Any] = {}
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        if os.getuid() == 0:
            # the server refuses to run as root
            try:
                number = pwd.getpwnam("postgres").pw_uid
            except KeyError:
                pytest.skip("PostgreSQL does not run as root, and there is no account `postgres`")
            account = {"user": "postgres"}
            os.chown(folder, number, -1)
        folder.chmod(0o755)
        words = [initdb, "-D", f"{folder}/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd="/", **account)
        server = Postgres(folder, account)
        server.control("start")
        try:
            yield server
        finally:
            server.control("stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
