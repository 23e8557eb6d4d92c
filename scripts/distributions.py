"""`make distributions`: builds sdist and wheel, and runs what users get in empty environments.

Every interpreter at hand gets two environments, one with the newest dependencies (requirements.lock) and one with the
lowest that are allowed (requirements-lowest.lock). Programs are started in an empty folder, so nothing comes from the
clone. Versions of Python that are not on this machine are listed as such.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from scripts.smoke import Door, opens

__all__ = ["build", "differences", "interpreters", "main"]

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
LOCKS = {"newest": "requirements.lock", "lowest": "requirements-lowest.lock"}

_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: careless, namespace: shop}
spec:
  hostPID: true
  containers: [{name: main, image: "registry.example/app:1"}]
"""
_LIBRARY = """\
import pyverno
pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"hostPID": True, "containers": []}}
print(*(each.status for each in pyverno.review(pod, pyverno.load_policies("copied")).results))
"""
_MODULE = ("-m", "pyverno")
DOORS = (
    Door("version", (*_MODULE, "version"), 0, ("Version",)),
    Door("apply @pod-security/baseline", (*_MODULE, "apply", "@pod-security/baseline", "-r", "manifests"), 1, ("PID",)),
    Door("policies copy", (*_MODULE, "policies", "copy", "disallow-host-namespaces", "--to", "copied"), 0, ()),
    Door("test of the copy", (*_MODULE, "test", "--require-tests", "copied"), 0, ("0 tests failed",)),
    Door("library", ("-c", _LIBRARY), 0, ("fail",)),
    Door("install", (*_MODULE, "install", "--dry-run"), 0, ("kind: Deployment",)),
    Door("page of the library", (*_MODULE, "policies", "list", "-o", "html"), 0, ("<!DOCTYPE html>",)),
    Door("sandbox", (*_MODULE, "sandbox", "--exec", sys.executable, "-c", "print('up')"), 0, ("up",)),
)
_START = "import os, sys; name = {!r}; os.execv(os.path.join(os.path.dirname(sys.executable), name), [name, 'version'])"
SCRIPTS = tuple(
    Door(f"program {name}", ("-c", _START.format(name)), 0, ("Version",)) for name in ("pyverno", "kubectl-pyverno")
)


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist and the wheel of the clone into a folder, and return them."""
    _hatchling(ROOT, folder)
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def differences(sdist: Path, wheel: Path, folder: Path) -> list[str]:
    """Return the files in which the wheel that is built from the sdist differs from `wheel`."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source", filter="data")
    [source] = (folder / "source").iterdir()
    _hatchling(source, folder / "again", "-t", "wheel")
    [again] = (folder / "again").glob("*.whl")
    first, second = _digests(wheel), _digests(again)
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def interpreters(given: list[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each version of Python with a program that runs it, None where there is none; or the programs given."""
    if given:
        yield from ((each, each) for each in given)
        return
    for version in VERSIONS:
        name = f"python{version}"
        managed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/{name}"))
        candidates = (shutil.which(name), *map(str, managed))
        yield version, next((each for each in candidates if each and _runs(each)), None)


def main() -> int:
    """Check all environments; return how many do not do what they must."""
    parser = argparse.ArgumentParser(description="Install sdist and wheel into empty environments and run them.")
    parser.add_argument("--python", action="append", default=[], help="interpreter; all versions at hand by default")
    parser.add_argument("--lock", action="append", choices=LOCKS, help="both by default")
    given = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sdist, wheel = build(folder / "dist")
        different = differences(sdist, wheel, folder)
        print(f"{wheel.name} from {sdist.name}: {'differs in ' + ', '.join(different) if different else 'the same'}")
        failures += bool(different)
        for number, (version, python) in enumerate(interpreters(given.python)):
            for lock in given.lock or LOCKS:
                print(f"== Python {version}, {lock} dependencies" + ("" if python else ": not on this machine"))
                if python is not None:
                    failures += not _works(python, ROOT / LOCKS[lock], wheel, folder / f"{number}-{lock}")
    print("all work" if not failures else f"{failures} do not work")
    return min(failures, 1)


def _runs(python: str) -> bool:
    """Return whether a program is an interpreter: those that only choose one (shims) may have none to choose."""
    return not subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode


def _works(python: str, lock: Path, wheel: Path, folder: Path) -> bool:
    subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
    inside = str(folder / "venv" / "bin" / "python")
    pip = [inside, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, "--require-hashes", "--only-binary=:all:", "-r", lock], check=True)
    subprocess.run([*pip, "--no-deps", wheel], check=True)
    (folder / "empty" / "manifests").mkdir(parents=True)
    (folder / "empty" / "manifests" / "pod.yaml").write_text(_POD, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return not sum(not opens(door, inside, folder / "empty", environment) for door in (*DOORS, *SCRIPTS))


def _hatchling(source: Path, output: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(output.resolve()), *arguments]
    subprocess.run(command, cwd=source, check=True, capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": "0"})


def _digests(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


if __name__ == "__main__":
    raise SystemExit(main())
