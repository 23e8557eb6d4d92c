"""The git program within bounds of time, memory, bytes and files, and the environments that it gets.

Servers and repositories choose what git reads. Only a clone reaches a server, with what the user's environment and
configuration say about servers; every other run has neither, and reads no configuration at all but the one it is given.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyverno.errors import UsageError
from pyverno.programs import run_program, search_path
from pyverno.value import dataclass

# trust rows: environment, git-clone

__all__ = ["LIMITS", "SETTINGS", "GitLimits", "closed_environment", "entries", "run_git", "server_environment"]

MAX_CLONE_SECONDS: Final = 300.0
MAX_CLONE_BYTES: Final = 512 * 1024 * 1024
MAX_CLONE_FILES: Final = 50_000
MAX_CLONE_DEPTH: Final = 64
MAX_GIT_MEMORY: Final = 2 * 1024 * 1024 * 1024

_LISTED_BYTES: Final = 1024
"""Bytes of the output for each file: git lists a commit with the paths of its files."""
_PART_BYTES: Final = 64 * 1024
_INHERITED: Final = ("GIT_CONFIG_", "GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_SSL_", "GIT_ASKPASS", "GIT_EXEC_PATH")
"""Prefixes of the variables of git that say how to reach servers."""
_OF_SYSTEM: Final = ("SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "GIT_EXEC_PATH")

_NEVER: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}

SETTINGS: Final = tuple(
    word
    for setting in (
        "core.symlinks=false",
        f"core.hooksPath={os.devnull}",
        "core.fsmonitor=false",
        f"core.attributesFile={os.devnull}",
        "safe.bareRepository=explicit",
        "http.followRedirects=false",
        "http.lowSpeedLimit=1",
        "http.lowSpeedTime=60",
        "fetch.uriProtocols=",
        "transfer.bundleURI=false",
        "promisor.acceptFromServer=none",
        "pack.threads=2",  # each has memory of its own
        "core.packedGitWindowSize=32m",
        "core.bigFileThreshold=16m",
        "gc.auto=0",
        "maintenance.auto=false",
        "submodule.recurse=false",
    )
    for word in ("-c", setting)
)
"""The settings of every run, which go before those of all configuration files."""


@dataclass(frozen=True, slots=True)
class GitLimits:
    """Bounds of all runs for one clone: seconds, bytes and files of its folder, and bytes of memory of each process.

    `depth` is that of folders. `memory` holds on Linux alone.
    """

    seconds: float = MAX_CLONE_SECONDS
    bytes: int = MAX_CLONE_BYTES
    files: int = MAX_CLONE_FILES
    depth: int = MAX_CLONE_DEPTH
    memory: int = MAX_GIT_MEMORY


LIMITS: Final = GitLimits()


def run_git(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    deadline: float,
    limits: GitLimits = LIMITS,
    task: str = "failed to clone repository",
) -> tuple[int, Path, str]:
    """Run git until it ends; return its exit code, the file of its output, and its last words for people as one line.

    `deadline` is a time of `time.monotonic`. Raises UsageError when git is not installed, or goes beyond its bounds.
    """
    return run_program(
        ("git", *SETTINGS, *words),
        folder=folder,
        environment=environment,
        deadline=deadline,
        bounds=limits,
        check=lambda output: _check_size(folder, output, limits, task),
        task=task,
    )


def entries(listed: Path, task: str) -> Iterator[bytes]:
    """Yield the entries of a listing, of which a few stay in memory: a small repository can list millions."""
    rest = b""
    with listed.open("rb") as file:
        while part := file.read(_PART_BYTES):
            *whole, rest = (rest + part).split(b"\0")
            yield from filter(None, whole)
            if len(rest) > _PART_BYTES:
                raise UsageError(f"{task} (a name of a file is too long)")


def server_environment() -> dict[str, str]:
    """Return the environment for a clone: the user's, with the variables of git that say how to reach servers."""
    # the others name the repository of a hook, or trace the data that git sends
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key.startswith(_INHERITED)
    }
    return {**inherited, **_NEVER, "GIT_ALLOW_PROTOCOL": "file:http:https"}


def closed_environment(home: Path) -> dict[str, str]:
    """Return the environment for reading a repository: no configuration of user or machine, and no way to a server.

    `home` is an empty folder.
    """
    kept = {key: os.environ[key] for key in _OF_SYSTEM if key in os.environ}
    own = {
        "PATH": search_path(os.environ.get("PATH", os.defpath)),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(home),
        "GIT_ALLOW_PROTOCOL": "",
    }
    return {**kept, **_NEVER, **own}  # guard: a repository is read without configuration and servers


def _check_size(folder: Path, output: Path, limits: GitLimits, task: str) -> None:
    # a clone has about as many files of git's own as of the repository
    size = files = 0
    listed = output.stat().st_size
    for parent, _, names in os.walk(folder):
        files += len(names)
        for name in names:
            with suppress(OSError):  # git has just removed it
                size += os.lstat(f"{parent}{os.sep}{name}").st_size
    if size > 2 * limits.bytes or files > 3 * limits.files or listed > _LISTED_BYTES * limits.files:
        raise UsageError(f"{task} (it is larger than {limits.bytes} bytes, or {limits.files} files)")
