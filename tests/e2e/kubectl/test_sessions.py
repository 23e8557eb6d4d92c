"""Real kubectl against the sandbox: it prints what it prints with a cluster.

Texts are those of kubectl 1.32; older and newer ones differ in a few words, which the sessions leave out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kubesandbox import Sandbox
from tests.e2e.kubectl.session import Step, printed, read_session, written

HERE = Path(__file__).parent
SESSIONS = sorted(path.stem for path in (HERE / "sessions").glob("*.txt"))
KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on this machine")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Run one sandbox for all sessions."""
    with Sandbox() as running:
        yield running


def kubectl(*words: str, environment: Mapping[str, str]) -> bytes:
    """Run kubectl; it must succeed."""
    assert KUBECTL is not None
    return subprocess.run([KUBECTL, *words], env=dict(environment), capture_output=True, timeout=300, check=True).stdout


@pytest.fixture
def environment(sandbox: Sandbox, request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, str]:
    """Make a namespace, and a kubeconfig that points to it."""
    namespace = f"shop-{request.node.callspec.params['name']}"
    config = tmp_path / "config"
    shutil.copy(sandbox.kubeconfig, config)
    made = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(config), "NAMESPACE": namespace}
    kubectl("create", "namespace", namespace, environment=made)
    kubectl("config", "set-context", "--current", f"--namespace={namespace}", environment=made)
    _wait_for(made, "serviceaccount/default", "configmap/kube-root-ca.crt")
    return made


def _wait_for(environment: Mapping[str, str], *names: str) -> None:
    """Wait until the controllers made what every namespace has (`wait --for=create` is younger than some kubectl)."""
    deadline = time.monotonic() + 300
    while len(kubectl("get", *names, "--ignore-not-found", "-o", "name", environment=environment).split()) < len(names):
        assert time.monotonic() < deadline, names
        time.sleep(0.1)


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_reads_as_with_a_cluster(name: str, environment: Mapping[str, str]) -> None:
    """Every command prints the output that the session file records."""
    steps = read_session(HERE / "sessions" / f"{name}.txt")
    found = [Step(step.command, printed(step.command, environment, HERE / "manifests")) for step in steps]
    assert written(steps).splitlines() == written(found).splitlines()


def test_there_are_enough_commands() -> None:
    """The sessions are what shows that kubectl works; they are not to shrink by accident."""
    assert sum(len(read_session(HERE / "sessions" / f"{name}.txt")) for name in SESSIONS) >= 200
