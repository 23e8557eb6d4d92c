"""`pyverno sandbox --with-controllers`; the server alone is tested in `tests/e2e/sandbox`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from pyverno.cli.root import run

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owners}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {failureAction: Enforce, message: an owner is required, pattern: {metadata: {labels: {owner: "?*"}}}}
"""

PROGRAM = """\
import asyncio, os
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.kube.status import StatusError

async def play():
    async with Client(load_kubeconfig(os.environ["KUBECONFIG"])) as client:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        try:
            await client.create(GVR("", "v1", "configmaps"), body, "default")
        except StatusError as error:
            print(error.message)
            raise SystemExit(7)

asyncio.run(play())
"""


def test_loaded_policies_are_at_work_before_the_command_runs(tmp_path: Path) -> None:
    """The command sees the denial, and its exit code is the sandbox's."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "program.py").write_text(PROGRAM)
    words = ["--with-controllers", "--load", "policy.yaml", "--exec", sys.executable, "program.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pyverno", "sandbox", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (7, "") == (done.returncode, done.stderr)
    assert "an owner is required" in done.stdout


def test_the_pages_show_the_cluster_of_the_sandbox(tmp_path: Path) -> None:
    """The greeting names their address, and they know the policies of the cluster."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    words = ["--with-controllers", "--with-ui", "--load", "policy.yaml"]
    with subprocess.Popen(
        [sys.executable, "-m", "pyverno", "sandbox", *words], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = next(line.split()[-1] for line in process.stdout if line.startswith("Reports and playground: "))
        with urllib.request.urlopen(f"{url}api/v1/policies/owners") as response:  # noqa: S310 - an address of the test
            found = json.load(response)
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(30)
    assert ["owners"] == [each["name"] for each in found["items"]]


def test_pages_without_reports_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing would ever be on them."""
    assert 1 == run(["sandbox", "--with-ui"])
    assert "give --with-controllers, too" in capsys.readouterr().err


def test_a_command_finds_the_image_registry_beside_the_cluster() -> None:
    """By the address in its environment."""
    code = "import os, urllib.request as r; print(r.urlopen('http://' + os.environ['REGISTRY'] + '/v2/').status)"
    words = ["--with-registry", "--exec", sys.executable, "-c", code]
    done = subprocess.run(
        [sys.executable, "-m", "pyverno", "sandbox", *words], capture_output=True, text=True, timeout=300, check=False
    )
    assert (0, "200\n") == (done.returncode, done.stdout)
