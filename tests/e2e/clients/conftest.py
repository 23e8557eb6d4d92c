"""One whole sandbox, with its controllers, for all clients; each test has a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from kubesandbox import Sandbox
from tests.e2e.sandbox.client import Client

_numbers = count(1)


@pytest.fixture(scope="package")
def sandbox() -> Iterator[Sandbox]:
    """Run a sandbox."""
    with Sandbox() as running:
        yield running


@pytest.fixture
def namespace(sandbox: Sandbox) -> Iterator[str]:
    """Make a namespace and return its name."""
    name = f"clients-{next(_numbers)}"
    client = Client(sandbox.kubeconfig)
    client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    client.close()
