"""The wheels of the image: what requirements.lock names for an architecture, and pyverno itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

__all__ = ["SITE", "compile_files", "fetch_wheels", "unpack_wheels"]

SITE: Final = "usr/lib/python3/dist-packages"
"""Where Debian's interpreter looks for packages, also in isolated mode."""

_ROOT = Path(__file__).resolve().parents[2]
_PYTHON = "3.11"
_PLATFORMS = {"amd64": "x86_64", "arm64": "aarch64"}
_TAGS = ("manylinux_2_34", "manylinux_2_28", "manylinux_2_17", "manylinux2014")


def fetch_wheels(arch: str, cache: Path) -> list[Path]:
    """Return the wheels of the application for an architecture, downloaded with their hashes checked."""
    folder = cache / "wheels" / arch
    shutil.rmtree(folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    platforms = [f"--platform={tag}_{_PLATFORMS[arch]}" for tag in _TAGS]
    target = [*platforms, f"--python-version={_PYTHON}", "--implementation=cp", "--only-binary=:all:"]
    locked = ["--require-hashes", "--no-deps", "-r", str(_ROOT / "requirements.lock")]
    subprocess.run([*pip, "download", *target, *locked, "-d", str(folder)], check=True)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=_ROOT, check=True, capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": "0"})
    return sorted(folder.glob("*.whl"))


def unpack_wheels(wheels: list[Path], root: Path) -> None:
    """Unpack wheels; programs, headers and the tools of development that some bring are left out."""
    site = root / SITE
    site.mkdir(parents=True, exist_ok=True)
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                place = _place(name)
                if place is not None and not name.endswith("/"):
                    target = site / place
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.read(name))


def compile_files(root: Path, folder: str) -> None:
    """Compile the modules of a folder; what was compiled is never compared with its source again.

    Raises SystemExit if the interpreter that runs this cannot write files for the one of the image.
    """
    if sys.version_info[:2] != (3, 11):
        raise SystemExit("the image has Python 3.11: build it with Python 3.11 (`make image PYTHON=python3.11`)")
    program = [sys.executable, "-B", "-m", "compileall", "-q", "-j1"]
    places = ["-s", str(root), "-p", "/", "--invalidation-mode", "unchecked-hash"]
    seed = {"PYTHONHASHSEED": "0", "PATH": os.environ["PATH"]}
    subprocess.run([*program, *places, str(root / folder)], check=True, env=seed)


def _place(name: str) -> str | None:
    """Return where a member of a wheel goes, None for what is left out."""
    first, _, rest = name.partition("/")
    if first.endswith(".data"):
        scheme, _, path = rest.partition("/")
        return path if scheme in ("purelib", "platlib") else None
    return None if name.endswith((".pyi", ".pyx", ".pxd", ".c", ".h")) else name
