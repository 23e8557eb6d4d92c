"""The stores that tests of the pages run on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.postgres import Postgres, run_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, or a skipped test where there is none."""
    with run_postgres() as server:
        yield server
