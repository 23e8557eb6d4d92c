"""Scripts and commands of scenarios: programs of this machine, with the cluster's kubeconfig, in a copy of the folder.

What a script writes stays in the copy; the corpus is never changed. This module must never look into a script.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pyverno.kube.json import encode
from pyverno.kube.yaml.documents import load_documents

__all__ = ["copy_folder", "copy_kubeconfig", "run_program"]

_NAME: Final = "chainsaw"


def copy_folder(folder: Path, scratch: Path, read: Callable[[Path], bytes]) -> Path:
    """Copy the folder of a scenario and the files beside it to a place that may be written to; return the copy.

    `read` gives the documents of the copy. Links are followed by the corpus already.
    """
    beside = scratch / folder.parent.name
    beside.mkdir(parents=True, exist_ok=True)
    for path in folder.parent.iterdir():
        if path.is_file():
            shutil.copy(path, beside / path.name)
    copy = Path(shutil.copytree(folder, beside / folder.name, dirs_exist_ok=True))
    for path in folder.glob("*.yaml"):
        (copy / path.name).write_bytes(read(path))
    return copy


def copy_kubeconfig(kubeconfig: Path, scratch: Path) -> Path:
    """Copy a kubeconfig, which scripts may change, with the names that chainsaw gives its cluster, user and context."""
    (document,) = load_documents(kubeconfig.read_bytes(), file=kubeconfig.name)
    (cluster,), (user,) = document.value["clusters"], document.value["users"]
    context = {"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}
    entries = {"clusters": [{**cluster, "name": _NAME}], "users": [{**user, "name": _NAME}], "contexts": [context]}
    path = scratch / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(encode({**document.value, **entries, "current-context": _NAME}))
    return path


async def run_program(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], seconds: float
) -> dict[str, Any]:
    """Run a program and return what expressions see of it: `error` (null when it went well), `stdout` and `stderr`.

    A program that takes longer than `seconds` is ended, with everything that it started.
    """
    inherited = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "TMPDIR": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *arguments,
        cwd=folder,
        env={**inherited, **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    error = None
    try:
        async with asyncio.timeout(seconds):
            stdout, stderr = await process.communicate()
        if process.returncode:
            error = f"exit status {process.returncode}"
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = await process.communicate()
        error = "signal: killed"
    said = {"stdout": stdout, "stderr": stderr}
    return {"error": error, **{key: text.decode(errors="replace").strip() for key, text in said.items()}}
