"""The repository of the judged tree, read as objects and names of commits: nothing that it configures is used.

Whoever wrote the tree may have written its `.git` too. Git gets a repository of ours, a temporary folder with a
configuration of ours and a copy of the references, and the judged one as a store of objects only. So there is no
filter, hook, alias, pager, monitor, credential helper, remote or included file, neither the index nor the attributes
are read, and nothing is fetched. A folder that only looks like a bare repository is never found.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pyverno.errors import UsageError
from pyverno.lazyregex import regex
from pyverno.offline.files import check_local
from pyverno.offline.git.process import GitLimits, closed_environment, entries, run_git, server_environment
from pyverno.value import dataclass, field

# trust rows: environment, git-repository

__all__ = ["Repository", "open_repository"]

SECONDS: Final = 60.0
_LIMITS: Final = GitLimits(seconds=SECONDS, files=1_000_000, memory=16 * 1024 * 1024 * 1024)
"""A repository on this disk may be larger than a clone for its policies."""
_LINK_BYTES: Final = 4096
_MOST_REFERENCES: Final = 200_000
_MOST_BYTES: Final = 256 * 1024 * 1024
_HEADS: Final = ("HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD")
_KEPT: Final = {
    "extensions.objectformat": regex(r"sha1|sha256"),
    "extensions.refstorage": regex(r"files|reftable"),
}
"""Settings of the judged repository that say how its own data is written, with the values that they may have."""
_KEPT_NAMES: Final = regex(r"(branch)\.([^\x00-\x1f\x7f]+)\.(remote|merge)|(remote)\.([^\x00-\x1f\x7f]+)\.(fetch)")
"""Settings for `@{upstream}`: names of references."""
_PLAIN: Final = regex(r"[A-Za-z0-9+:*/._@-]*")
_PARTIAL: Final = regex(r"extensions\.partialclone|remote\..+\.(promisor|partialclonefilter)")


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository of a working folder; `root` is its top.

    `task` begins the texts of errors.
    """

    root: Path
    task: str
    is_partial: bool
    _folder: Path = field(repr=False)
    _environment: Mapping[str, str] = field(repr=False)

    def commit(self, revision: str) -> str:
        """Return the id of a commit; raises UsageError for what is no revision."""
        words = ("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        code, output, said = self._run(words)
        if code != 0:
            raise UsageError(f"{self.task}: {said or f'git knows no revision `{revision}`'}")
        return output.read_text("ascii").strip()

    def common(self, commit: str) -> str:
        """Return the last commit that a commit and the current one have in common; the commit itself without one."""
        code, output, _ = self._run(("merge-base", commit, "HEAD"))
        return output.read_text("ascii").strip() if code == 0 else commit

    def files(self, commit: str) -> dict[str, str]:
        """Return the ids of all files of a commit by name."""
        code, output, said = self._run(("ls-tree", "-r", "-z", "--full-tree", commit))
        if code != 0:
            raise self._missing(f"the folders of commit `{commit}`", said)
        found = (each.partition(b"\t") for each in entries(output, self.task))
        return {os.fsdecode(name): head.split()[2].decode() for head, _, name in found}

    def content(self, blob: str, name: str) -> bytes:
        """Return a file of a commit by its id; raises UsageError when it is not in this clone."""
        code, output, said = self._run(("cat-file", "blob", blob))
        if code != 0:
            raise self._missing(f"`{name}`", said)
        return output.read_bytes()

    def _missing(self, what: str, said: str) -> UsageError:
        reason = (
            "this is a partial clone: run `git fetch --refetch --no-filter`, or clone without `--filter`"
            if self.is_partial
            else said or "the repository is damaged"
        )
        return UsageError(f"{self.task}: {what} cannot be read ({reason})")

    def _run(self, words: Sequence[str]) -> tuple[int, Path, str]:
        return _git(words, self._folder, self._environment, self.task)


@contextmanager
def open_repository(start: Path, task: str) -> Iterator[Repository]:
    """Yield the repository of a folder; raises UsageError when there is none, or when it belongs to another user."""
    root, own, shared = _find(start, task)
    with tempfile.TemporaryDirectory(prefix="pyverno-git-") as made:
        folder = Path(made).resolve()
        _check_owner(root, own, folder, task)
        environment = closed_environment(folder)
        settings = _settings(shared / "config", folder, environment, task)
        ours = folder / "repository"
        _Copies(task).make(own, shared, ours)
        (ours / "config").write_text(_written(settings), "utf-8")
        names = {"GIT_DIR": str(ours), "GIT_OBJECT_DIRECTORY": str(shared / "objects")}
        environment |= names  # guard: git reads a repository of ours
        is_partial = any(_PARTIAL.fullmatch(key) for key, _ in settings)
        yield Repository(root, task, is_partial, folder, environment)


def _git(words: Sequence[str], folder: Path, environment: Mapping[str, str], task: str) -> tuple[int, Path, str]:
    deadline = time.monotonic() + SECONDS
    return run_git(words, folder=folder, environment=environment, deadline=deadline, limits=_LIMITS, task=task)


# ----------------------------------------------------------------------------------------------------------- finding


def _find(start: Path, task: str) -> tuple[Path, Path, Path]:
    """Return the top folder, the folder of the repository, and that of the one it is a worktree of.

    Only `.git` makes a repository, and the variables of the user's environment: a folder of the tree with the files of
    a bare repository does not.
    """
    given = os.environ.get("GIT_DIR")
    if given:
        root, own = Path(os.environ.get("GIT_WORK_TREE") or start).resolve(), (start / given).resolve()
    else:
        found = next(filter(None, map(_own_folder, _upwards(start.resolve()))), None)
        if found is None:
            raise UsageError(f"{task}: not a git repository (or any of the parent directories): .git")
        root, own = found
    shared = _follow(own / "commondir", own, "")
    if not (shared / "objects").is_dir() or not (own / "HEAD").is_file():
        raise UsageError(f"{task}: `{own}` is not a git repository")
    return root, own, shared


def _upwards(start: Path) -> Iterator[Path]:
    written = os.environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep)
    ceilings = {Path(os.path.realpath(each)) for each in written if Path(each).is_absolute()}
    yield start
    for each in start.parents:
        if each in ceilings:
            return
        yield each


def _own_folder(root: Path) -> tuple[Path, Path] | None:
    marker = root / ".git"  # guard: a folder that looks like a repository is none
    if marker.is_dir():
        return (root, marker.resolve()) if (marker / "HEAD").is_file() else None
    return (root, _follow(marker, root, "gitdir:")) if marker.is_file() else None


def _follow(file: Path, base: Path, prefix: str) -> Path:
    """Return the folder that a file names, with a path relative to `base`; the base where there is no such file."""
    if not file.is_file():
        return base
    with file.open("rb") as opened:
        text = os.fsdecode(opened.read(_LINK_BYTES)).rstrip("\r\n")
    if not text.startswith(prefix) or "\n" in text or "\0" in text:  # guard: a file of git names a folder
        raise UsageError(f"`{file}` names no git repository", file=str(file))
    named = text.removeprefix(prefix).strip()
    check_local(named)
    return (base / named).resolve()


def _check_owner(root: Path, own: Path, folder: Path, task: str) -> None:
    """Raise UsageError for a repository of another user, who would decide what has changed (git: safe.directory)."""
    if os.name != "posix":
        return
    users = {os.geteuid(), *([int(os.environ["SUDO_UID"])] if os.environ.get("SUDO_UID", "").isdigit() else [])}
    if all(each.stat().st_uid in users for each in (root, own)):
        return
    code, output, _ = _git(
        ("config", "--type=path", "-z", "--get-all", "safe.directory"), folder, server_environment(), task
    )
    trusted: list[str] = []
    for each in output.read_text("utf-8", "surrogateescape").split("\0")[:-1] if code == 0 else ():
        trusted = [*trusted, each] if each else []  # an empty one takes the others back
    if not any(_covers(each, root) for each in trusted):  # guard: a repository of another user decides nothing
        raise UsageError(
            f"{task}: the repository `{root}` belongs to another user; if you trust it, run "
            f"`git config --global --add safe.directory {root}`"
        )


def _covers(trusted: str, root: Path) -> bool:
    if trusted == "*":
        return True
    if trusted.endswith("/*"):
        return root.is_relative_to(trusted.removesuffix("/*"))
    return Path(trusted).is_absolute() and os.path.realpath(trusted) == str(root)


# ----------------------------------------------------------------------------------------------------------- copying


def _settings(file: Path, folder: Path, environment: Mapping[str, str], task: str) -> tuple[tuple[str, str], ...]:
    """Return the settings of the judged repository as data: git reads the file as any file, without its includes."""
    if not file.is_file():
        return ()
    # from a copy: the file may become a pipe
    copy = folder / "settings"
    _Copies(task).copy(file, copy)
    code, output, said = _git(
        ("config", "--file", str(copy), "--no-includes", "--list", "-z"), folder, environment, task
    )
    if code != 0:  # guard: a configuration that git cannot read is an error
        raise UsageError(f"{task}: `{file}` cannot be read ({said.replace(str(copy), str(file))})")
    found = (each.partition("\n") for each in output.read_text("utf-8", "surrogateescape").split("\0"))
    return tuple((key, value) for key, _, value in found if key)


def _written(settings: Sequence[tuple[str, str]]) -> str:
    """Return our configuration: how objects and references are written, and the branches that branches follow."""
    kept = {key: value for key, value in settings if key in _KEPT and _KEPT[key].fullmatch(value)}
    lines = ["[core]", "\tbare = true", f"\trepositoryformatversion = {int(bool(kept))}"]
    lines += [f"[extensions]\n\t{key.rpartition('.')[2]} = {value}" for key, value in kept.items()]
    for key, value in settings:
        found = _KEPT_NAMES.fullmatch(key)
        if found is not None and _PLAIN.fullmatch(value):
            section, name, last = (each for each in found.groups() if each is not None)
            escaped = name.replace("\\", "\\\\").replace('"', '\\"')
            lines += [f'[{section} "{escaped}"]', f"\t{last} = {value}"]
    return "\n".join([*lines, ""])


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class _Copies:
    """Copies of the references of a repository: plain files, so many of them and no larger than the bounds."""

    def __init__(self, task: str) -> None:
        self._task = task
        self._files = 0
        self._bytes = 0

    def make(self, own: Path, shared: Path, into: Path) -> None:
        """Copy the references of a repository, and those of its worktree, into one of ours."""
        for name in ("refs", "objects"):
            (into / name).mkdir(parents=True)
        for each in ("packed-refs", "shallow"):
            self.copy(shared / each, into / each)
        for source in dict.fromkeys((shared, own)):
            for name in ("refs", "logs", "reftable"):
                self._folder(source / name, into / name)
        for each in _HEADS:
            self.copy(own / each, into / each)

    def copy(self, source: Path, target: Path) -> None:
        """Copy a file; what is no plain file is left out."""
        if not source.is_file():
            return
        # a pipe that takes the place of the file does not hold the run up
        with suppress(FileNotFoundError), open(source, "rb", opener=_without_waiting) as opened:
            self._count(os.fstat(opened.fileno()).st_size)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(opened, file)

    def _folder(self, source: Path, target: Path) -> None:
        for parent, _, names in os.walk(source):
            below = target / os.path.relpath(parent, source)
            for name in names:
                file = Path(parent, name)
                if not file.is_symlink():
                    self.copy(file, below / name)

    def _count(self, size: int) -> None:
        self._files += 1
        self._bytes += size
        if self._files > _MOST_REFERENCES or self._bytes > _MOST_BYTES:
            raise UsageError(f"{self._task}: the repository has more references than can be read")
