"""`pyverno sandbox --with-controllers`; the server alone is tested in `tests/e2e/sandbox`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
