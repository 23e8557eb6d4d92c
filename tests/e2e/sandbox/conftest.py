"""One sandbox for all tests of a module; each test has a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from kubesandbox import Sandbox
from tests.e2e.sandbox.client import Client

_numbers = count(1)


@pytest.fixture(scope="package")
def sandbox() -> Iterator[Sandbox]:
    """Run a sandbox without controllers, so that nothing happens by itself."""
    with Sandbox(controllers=False) as running:
        yield running


@pytest.fixture
def client(sandbox: Sandbox) -> Iterator[Client]:
    """Connect as an administrator."""
    made = Client(sandbox.kubeconfig)
    yield made
    made.close()


@pytest.fixture
def namespace(client: Client) -> str:
    """Make a namespace with a default service account and return its path."""
    name = f"test-{next(_numbers)}"
    client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    path = f"/api/v1/namespaces/{name}"
    client.post(f"{path}/serviceaccounts", {"metadata": {"name": "default"}})
    return path
