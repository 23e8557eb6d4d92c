"""The programs helm, kustomize and kubectl, in an environment of their own, within bounds of time, memory and output.

The environment has an empty home: no plugins, repositories, caches, kubeconfig or credentials of the user. What would
reach another machine fails: git may use no protocol, and web addresses lead to a proxy that is not there.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyverno.errors import UsageError
from pyverno.offline.files import MAX_FILE_BYTES
from pyverno.programs import run_program, search_path
from pyverno.value import dataclass

# trust rows: chart, environment

__all__ = ["render"]

_NO_PROXY_THERE: Final = "http://127.0.0.1:9"
_OF_SYSTEM: Final = ("SYSTEMROOT", "TEMP", "TMP", "TMPDIR")
_FOLDERS: Final = {
    "HOME": "home",
    "USERPROFILE": "home",
    "APPDATA": "home",
    "LOCALAPPDATA": "home",
    "XDG_CONFIG_HOME": "config",
    "XDG_CACHE_HOME": "cache",
    "XDG_DATA_HOME": "data",
    "HELM_CONFIG_HOME": "config/helm",
    "HELM_CACHE_HOME": "cache/helm",
    "HELM_DATA_HOME": "data/helm",
    "HELM_PLUGINS": "plugins",
    "KUSTOMIZE_PLUGIN_HOME": "plugins",
}


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Bounds of one run. A program in Go reserves more memory than it uses."""

    seconds: float = 300.0
    memory: int = 16 * 1024 * 1024 * 1024


_BOUNDS: Final = _Bounds()


def render(command: Sequence[str], what: str, *, values: Sequence[bytes] = (), is_open: bool = False) -> bytes:
    """Return the output of a program; raises UsageError with its error text if it fails.

    It runs in an empty folder, so that all paths of the command must be absolute. `values` are contents of values files
    for helm. `is_open` gives it the environment of the user, and with it a way to other machines.
    """
    task = f"{what} cannot be rendered"
    with tempfile.TemporaryDirectory(prefix="pyverno-render-") as made:
        folder = Path(made).resolve()
        flags = []
        for number, content in enumerate(values):
            file = folder / f"values-{number}.yaml"
            file.write_bytes(content)
            flags.append(f"--values={file}")
        code, output, said = run_program(
            (*command, *flags),
            folder=folder,
            environment=dict(os.environ) if is_open else _closed(folder),
            deadline=time.monotonic() + _BOUNDS.seconds,
            bounds=_BOUNDS,
            check=lambda output: _check_size(output, task),
            task=task,
        )
        if code != 0:
            raise UsageError(f"{task}: {said.replace(f'{folder}{os.sep}', '')}")
        _check_size(output, task)
        return output.read_bytes()


def _closed(folder: Path) -> dict[str, str]:
    found = {key: os.environ[key] for key in _OF_SYSTEM if key in os.environ}
    for key, name in _FOLDERS.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        found[key] = str(folder / name)
    return found | {
        "PATH": search_path(os.environ.get("PATH", os.defpath)),
        "KUBECONFIG": os.devnull,
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        **{key: _NO_PROXY_THERE for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") for key in (name, name.lower())},
        "LC_ALL": "C",
    }


def _check_size(output: Path, task: str) -> None:
    if output.stat().st_size > MAX_FILE_BYTES:
        raise UsageError(f"{task} (its output is larger than {MAX_FILE_BYTES} bytes)")
