"""Pytest fixtures: an API server for the test session, and a namespace for each test.

Enable them in the top-level `conftest.py` of a test suite::

    pytest_plugins = ["kubesandbox.pytest_plugin"]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from kubesandbox.sandbox import Sandbox, Settings

__all__ = ["kube_api", "kube_api_settings", "kube_namespace"]

_numbers = count(1)


@pytest.fixture(scope="session")
def kube_api_settings() -> Settings:
    """Settings of the API server; override this fixture to change them."""
    return Settings()


@pytest.fixture(scope="session")
def kube_api(kube_api_settings: Settings) -> Iterator[Sandbox]:
    """A running API server with its controllers, one for all tests of the session."""
    with Sandbox(kube_api_settings) as sandbox:
        yield sandbox


@pytest.fixture
def kube_namespace(kube_api: Sandbox) -> Iterator[str]:
    """The name of a new namespace, deleted after the test."""
    name = f"test-{next(_numbers)}"
    client = kube_api.client()
    kube_api.run(client.create("namespaces", {"metadata": {"name": name}}))
    yield name
    kube_api.run(client.delete("namespaces", name))
