"""`make smoke`: runs every front door once, with whatever versions of the dependencies this interpreter has.

CI runs it with the lowest versions that `pyproject.toml` allows; the tests run with the newest. A door that
ends the process, or answers otherwise than here, fails the run. It must never import what only development needs.
"""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEMO = "docs/guide/demo"
LIBRARIES = ("aiohttp", "click", "cryptography", "google-re2", "joserfc", "orjson", "prometheus_client", "PyYAML")
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Door:
    """A command line of Python with the exit code and the texts that it must end with and print."""

    title: str
    words: tuple[str, ...]
    code: int
    prints: tuple[str, ...]


_LIBRARY = """\
import pyverno
policies = pyverno.load_policies("policies/pod-security")
pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"é": "\\u2028"}},
       "spec": {"hostPID": True, "containers": [{"name": "a", "image": "a:1"}]}}
failed = [result.rule.name for result in pyverno.review(pod, policies).results if result.status.value == "fail"]
print(len(policies), *failed)
"""

_IN_CLUSTER = """\
import asyncio, os
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.kube.status import StatusError
async def play():
    async with Client(load_kubeconfig(os.environ["KUBECONFIG"])) as client:
        for name, labels in ("good", {"team": "a"}), ("bad", {}):
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
                    "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
            try:
                print("created", (await client.create(GVR("", "v1", "pods"), body, "default"))["metadata"]["name"])
            except StatusError as error:
                print(error.message)
asyncio.run(play())
"""

_MODULE = ("-m", "pyverno")
_LABELS = f"{DEMO}/policies/require-labels.yaml"
_APPLY = (*_MODULE, "apply", _LABELS, "-r", f"{DEMO}/deployment.yaml")

DOORS = (
    Door("version", (*_MODULE, "version"), 0, ("Version",)),
    Door("apply", _APPLY, 1, ("label 'team' is required",)),
    Door("apply, as JSON", (*_APPLY, "--policy-report", "--output-format", "json"), 1, ('"results"',)),
    Door("apply, as a table", (*_APPLY, "--table"), 1, ("require-labels",)),
    Door("apply, the library", (*_MODULE, "apply", "policies", "-r", f"{DEMO}/pods.yaml"), 1, ("fail: ",)),
    Door("test", (*_MODULE, "test", "policies/best-practices"), 0, ("0 tests failed",)),
    Door("jp", (*_MODULE, "jp", "query", "-i", _LABELS, "to_upper(metadata.name)"), 0, ("REQUIRE-LABELS",)),
    Door("jp, RE2", (*_MODULE, "jp", "query", "regex_match('^a+$', 'aa')", "-i", _LABELS), 0, ("true",)),
    Door("cel", (*_MODULE, "cel", "eval", "'aa'.matches('^a+$') && quantity('1Gi').isInteger()"), 0, ("true",)),
    Door("library", ("-c", _LIBRARY), 0, ("host-namespaces", "run-as-non-root")),
    Door("install", (*_MODULE, "install", "--dry-run"), 0, ("kind: Deployment",)),
    Door(
        "sandbox and webhook",
        (*_MODULE, "sandbox", "--with-controllers", "--load", _LABELS, "--exec", sys.executable, "-c", _IN_CLUSTER),
        0,
        ("created good", "label ''team'' is required"),
    ),
)


def main() -> int:
    """Open every door; return the number of those that do not do what they must."""
    print(f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in LIBRARIES))
    here = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    failures = sum(not opens(door, sys.executable, ROOT, here) for door in DOORS)
    print(f"{len(DOORS) - failures} of {len(DOORS)} doors open")
    return failures


def opens(door: Door, python: str, folder: Path, environment: dict[str, str]) -> bool:
    """Run a door with an interpreter in a folder, print what came of it, and return whether it does what it must."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        ran = subprocess.run(
            [python, *door.words],
            cwd=folder,
            env={**environment, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
        )
        said.seek(0)
        output = said.read()
    took = f"{time.monotonic() - began:.1f} s"
    missing = [text for text in door.prints if text not in output]
    if ran.returncode == door.code and not missing:
        print(f"ok      {door.title} ({took})")
        return True
    print(f"FAILED  {door.title} ({took}): {_ended(ran.returncode)} instead of {door.code}, without {missing}")
    print("".join(f"        {line}\n" for line in output.splitlines()[-30:]), end="")
    return False


def _ended(code: int) -> str:
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


if __name__ == "__main__":
    sys.exit(main())
