"""The container image as `make image` leaves it in build/image, started as its user without a container engine."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from scripts.image.__main__ import CONFIG
from scripts.image.debian import machine_arch

from kubesandbox import Sandbox
from pyverno.version import __version__
from tests.deploy.charts import CHARTS
from tests.e2e.deploy.test_lifecycle import HOOKS, names, pod, until
from tests.e2e.sandbox.client import Client
from tests.support.ports import free_port

ROOT = CHARTS.parents[1]
BUILT = Path(os.environ.get("PYVERNO_IMAGE", ROOT / "build" / "image"))
FILES = BUILT / f"root-{machine_arch()}"
POLICY = ROOT / "policies" / "pod-security" / "baseline" / "disallow-host-ports" / "clusterpolicy.yaml"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LIMIT = 40 * 2**20
EMULATOR = shutil.which("qemu-aarch64-static")

pytestmark = [
    pytest.mark.skipif(not FILES.exists(), reason="no image in build/image: `make image` builds it"),
    pytest.mark.skipif(os.geteuid() != 0, reason="changing the root folder needs root"),
]


@pytest.fixture
def root() -> Iterator[Path]:
    """Yield the files of the image to one test at a time; what a test leaves in /tmp is removed."""
    with (BUILT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield FILES
        shutil.rmtree(FILES / "tmp")
        (FILES / "tmp").mkdir()
        (FILES / "tmp").chmod(0o1777)


def started(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start the entry point as the user of the image, with its environment alone."""
    given = dict(each.split("=", 1) for each in CONFIG["Env"])
    command = [
        str(shutil.which("chroot")),
        f"--userspec={CONFIG['User']}",
        str(FILES),
        *CONFIG["Entrypoint"],
        *arguments,
    ]
    return subprocess.Popen(
        command, env=given | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def ran(*arguments: str) -> tuple[int, str]:
    """Return exit code and output."""
    process = started(*arguments)
    out, _ = process.communicate(timeout=300)
    return process.returncode, out


def test_the_image_has_no_shell_and_no_package_manager() -> None:
    """The interpreter is its only program, nothing changes the user, and modules are compiled."""
    programs = [path for name in ("bin", "sbin", "usr/bin", "usr/sbin") for path in (FILES / name).glob("*")]
    assert ["python3.11"] == [path.name for path in programs]
    assert [] == [path for path in FILES.rglob("*") if path.is_file() and path.stat().st_mode & 0o6000]
    modules = (FILES / "usr/lib/python3/dist-packages/pyverno").rglob("*.py")
    compiled = {path.parent / "__pycache__" / f"{path.stem}.cpython-311.pyc" for path in modules}
    assert set() == {path for path in compiled if not path.exists()}


def test_each_platform_takes_at_most_40_mib() -> None:
    """Compressed, as a registry sends it; both platforms are there with a bill of materials."""
    blobs = BUILT / "layout" / "blobs" / "sha256"
    [index] = json.loads((BUILT / "layout" / "index.json").read_text())["manifests"]
    found = {}
    for each in json.loads((blobs / index["digest"][7:]).read_text())["manifests"]:
        manifest = json.loads((blobs / each["digest"][7:]).read_text())
        arch = each["platform"]["architecture"]
        found[arch] = sum(part["size"] for part in manifest["layers"])
        assert "CycloneDX" == json.loads((BUILT / f"sbom-{arch}.cdx.json").read_text())["bomFormat"]
    assert {"amd64", "arm64"} == found.keys()
    assert {} == {arch: size for arch, size in found.items() if size > LIMIT}


def test_the_image_applies_policies(root: Path) -> None:
    """The image contains the library's policies and runs as a user that can write only to /tmp."""
    assert (0, f"Version: {__version__}") == (ran("version")[0], ran("version")[1].splitlines()[0])
    (root / "tmp" / "pod.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", **pod(80)}))
    code, out = ran("apply", "@pod-security/baseline", "-r", "tmp/pod.json")
    assert (1, True) == (code, "disallow-host-ports" in out)


@pytest.mark.skipif(not EMULATOR or machine_arch() != "amd64", reason="there is no qemu-aarch64-static on this machine")
def test_the_image_for_arm64_starts() -> None:
    """On an emulated processor; its libraries and wheels are those of that architecture."""
    root = BUILT / "root-arm64"
    shutil.copy(str(EMULATOR), root / "emulator")
    try:
        emulated = ["/emulator", *CONFIG["Entrypoint"]]
        command = [str(shutil.which("chroot")), f"--userspec={CONFIG['User']}", str(root), *emulated]
        out = subprocess.run([*command, "version"], env={}, capture_output=True, text=True, check=True).stdout
    finally:
        (root / "emulator").unlink()
    assert f"Version: {__version__}" == out.splitlines()[0]


def test_the_image_answers_reviews_of_an_api_server(root: Path) -> None:
    """As the admission controller of a cluster, over TLS with its own certificate."""
    port = free_port()
    with Sandbox(namespaces=("kyverno",)) as sandbox:
        client = Client(sandbox.kubeconfig)
        shutil.copy(sandbox.kubeconfig, root / "kubeconfig")
        (root / "kubeconfig").chmod(0o644)
        definitions = started("install", "--dry-run", "--crds-only")
        for each in yaml.safe_load_all(definitions.communicate(timeout=300)[0]):
            assert 201 == client.post(DEFINITIONS, each).status
        here = [f"--serverIP=127.0.0.1:{port}", f"--webhookServerPort={port}", "--webhookServerHost=127.0.0.1"]
        process = started(
            *("controller", "admission", "--kubeconfig=/kubeconfig", "--disableMetrics", "--shutdownDelay=0s"),
            *(*here, "--removeWebhooks"),
            KYVERNO_NAMESPACE="kyverno",
            KYVERNO_POD_NAME="image",
        )
        try:
            until("policies can be written", lambda: "kyverno-policy-validating-webhook-cfg" in names(client, HOOKS[0]))
            policy = yaml.safe_load(POLICY.read_text().replace("failureAction: Audit", "failureAction: Enforce"))
            assert 201 == client.post("/apis/kyverno.io/v1/clusterpolicies", policy).status
            path = "/api/v1/namespaces/default/pods?dryRun=All"
            until("the policy refuses", lambda: client.post(path, pod(80)).status == 400)
            assert 201 == client.post(path, pod(0)).status
        finally:
            process.terminate()
            out, _ = process.communicate(timeout=300)
        assert 0 == process.returncode, out
        client.close()
