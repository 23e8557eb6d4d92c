"""The pytest plugin, in a test suite of its own, and the package alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUITE = """
import pytest
from kubesandbox import Settings

@pytest.fixture(scope="session")
def kube_api_settings():
    return Settings(namespaces=("shop",), controllers=False)

def test_settings_are_those_of_the_suite(kube_api):
    assert kube_api.client().get("namespaces", "shop") is not None

def test_a_namespace_is_new(kube_api, kube_namespace, request):
    request.config.first = kube_namespace
    assert kube_api.client().list("configmaps", kube_namespace) == []

def test_each_test_has_its_own(kube_api, kube_namespace, request):
    first = kube_api.client().get("namespaces", request.config.first)
    assert kube_namespace != request.config.first and (first is None or first["metadata"]["deletionTimestamp"])
"""


def test_a_suite_gets_a_server_and_namespaces(tmp_path: Path) -> None:
    """One server for the session, which the suite configures, and a namespace for each test."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["kubesandbox.pytest_plugin"]\n')
    (tmp_path / "test_suite.py").write_text(SUITE)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert (0, True) == (done.returncode, "3 passed" in done.stdout), done.stdout


def test_the_package_has_types_and_loads_nothing_by_itself() -> None:
    """`import kubesandbox` costs no import of its parts, nor of pyverno's front doors; the types are marked."""
    script = (
        "import sys, kubesandbox; from pathlib import Path;"
        "early = [name for name in sys.modules if name.startswith('pyverno')];"
        "assert (Path(kubesandbox.__file__).parent / 'py.typed').exists(); from kubesandbox import Sandbox;"
        "doors = ('cli', 'controllers', 'webhook', 'cluster', 'offline', 'report', 'testing', 'telemetry', 'install');"
        "print(early, [door for door in doors if f'pyverno.{door}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    assert "[] []\n" == done.stdout
