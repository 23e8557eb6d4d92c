"""The wheel, installed into an empty folder: what users get is all there."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: careless, namespace: shop}
spec:
  hostPID: true
  containers: [{name: main, image: "registry.example/app:1"}]
"""


def test_the_wheel_brings_the_policy_library(tmp_path: Path) -> None:
    """`pyverno apply @pod-security/baseline` works in any folder, from the wheel alone."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    shipped = {str(path.relative_to(ROOT / "policies")) for path in (ROOT / "policies").rglob("*") if path.is_file()}
    folder = tmp_path / "site" / "pyverno" / "policies"
    assert shipped == {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    (tmp_path / "pod.yaml").write_text(POD)
    ran = subprocess.run(
        [sys.executable, "-m", "pyverno", "apply", "@pod-security/baseline", "-r", "pod.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (1, "") == (ran.returncode, ran.stderr)
    assert "Sharing a namespace of the node is not allowed" in ran.stdout
