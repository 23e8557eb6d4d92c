"""Real kubectl and a validating server accept the manifests of `pyverno install`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kubesandbox import Sandbox

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on this machine")


def run(words: list[str], environment: Mapping[str, str], text: str = "") -> str:
    """Run a program that must succeed without a warning, and return what it prints."""
    done = subprocess.run(words, env=environment, input=text, capture_output=True, text=True, timeout=120, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def test_kubectl_applies_what_is_printed(tmp_path: Path) -> None:
    """First as a dry run by the server, then really, then again without a change; client-side, with its size limit."""
    with Sandbox() as sandbox:
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": sandbox.kubeconfig}
        printed = run([sys.executable, "-m", "pyverno", "install", "--dry-run", "--replicas", "3"], environment)
        namespace, _, _ = printed.partition("---\n")
        apply = [str(KUBECTL), "apply", "-f", "-"]
        run(apply, environment, namespace)
        checked = run([*apply, "--dry-run=server"], environment, printed).splitlines()
        assert 30 < len(checked)
        assert all(line.endswith(" (server dry run)") for line in checked)
        applied = run(apply, environment, printed).splitlines()
        assert [line.removesuffix(" (server dry run)") for line in checked] == applied
        again = run(apply, environment, printed).splitlines()
        # kubectl sends the selector of a PodDisruptionBudget every time, also to real clusters
        changed = {line.partition("/")[0] for line in again if not line.endswith(" unchanged")}
        assert changed <= {"poddisruptionbudget.policy"}
        wait = ["wait", "--for=condition=Available", "deployment/kyverno-admission-controller", "-n", "kyverno"]
        run([str(KUBECTL), *wait, "--timeout=300s"], environment)
        explained = run([str(KUBECTL), "explain", "clusterpolicy.spec.rules.validate"], environment)
        assert "DESCRIPTION" in explained
