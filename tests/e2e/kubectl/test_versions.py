"""Every version of Kubernetes that the sandbox can play, with real kubectl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubesandbox import Sandbox

VERSIONS = ("1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on this machine")


@pytest.fixture(scope="module", params=VERSIONS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Run a sandbox of each version."""
    with Sandbox(kube_version=request.param) as running:
        yield running


def kubectl(sandbox: Sandbox, home: Path, *words: str, data: str = "") -> str:
    """Run kubectl, which must succeed, and return what it prints."""
    assert KUBECTL is not None
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": sandbox.kubeconfig}
    command = [KUBECTL, *words]
    done = subprocess.run(
        command, env=environment, input=data, capture_output=True, timeout=120, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def test_kubectl_works_with_every_version(sandbox: Sandbox, tmp_path: Path) -> None:
    """It reads the version and the schemas, and makes a Deployment by both ways; its pods run."""

    def run(*words: str, data: str = "") -> str:
        return kubectl(sandbox, tmp_path, *words, data=data)

    version = sandbox.settings.kube_version
    told = json.loads(run("get", "--raw", "/version"))
    assert ("v" + version + ".0", version) == (told["gitVersion"], f"{told['major']}.{told['minor']}")
    explained = run("explain", "deploy.spec")
    assert ("KIND:       Deployment", True) == (explained.splitlines()[1], "  replicas\t<integer>" in explained)
    assert "deployment.apps/made created\n" == run("create", "deployment", "made", "--image=nginx:1.27")
    labels = {"app": "applied"}
    container = {"name": "web", "image": "nginx:1.27"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "applied"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    for word in ("created", "unchanged"):
        assert f"deployment.apps/applied {word}\n" == run("apply", "-f", "-", data=json.dumps(body))
    body["spec"]["replicas"] = 2  # type: ignore[index]  # a map, as above
    assert "deployment.apps/applied serverside-applied\n" == run(
        "apply", "--server-side", "--force-conflicts", "-f", "-", data=json.dumps(body)
    )
    for name, count in (("made", "1"), ("applied", "2")):
        run("rollout", "status", f"deployment/{name}", "--timeout=300s")
        assert count == run("get", "deployment", name, "-o", "jsonpath={.status.readyReplicas}")
