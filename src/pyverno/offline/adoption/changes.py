"""Changes since a commit: the documents of files that git sees changed, compared with those of the commit.

The git program does the work, in the working folder, without hooks and without programs that a repository configures.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.yaml.documents import Document, load_documents

__all__ = ["Changes", "changes_since", "file_at"]

TIMEOUT_SECONDS = 60.0


class Changes:
    """The files below `root` that differ from a commit; documents are compared by their text."""

    def __init__(self, root: Path, commit: str, files: frozenset[str]) -> None:
        self._root = root
        self._commit = commit
        self._files = files
        self._old: dict[str, frozenset[str]] = {}
        self._last: tuple[Document | None, bool] = (None, False)

    def is_changed(self, document: Document) -> bool:
        """Return whether a document is new or has another text; files unknown to git count as changed."""
        name = self._name(document.file) if document.line else None
        if name is None:
            return True
        if name not in self._files:
            return False
        if not document.shares_text(self._last[0]):  # items of a list do
            self._last = document, _own_text(document) not in self._old_texts(name)
        return self._last[1]

    def names(self, file: str) -> bool:
        """Return whether a file of the repository is new or has another content."""
        return self._name(file) in self._files

    def _name(self, file: str) -> str | None:
        """Return the name of a file below the root; None for stdin, addresses and files elsewhere."""
        path = Path(os.path.realpath(file))
        if not path.is_file() or not path.is_relative_to(self._root):
            return None
        return path.relative_to(self._root).as_posix()

    def _old_texts(self, name: str) -> frozenset[str]:
        if name not in self._old:
            self._old[name] = _texts_of(self._root, self._commit, name)
        return self._old[name]


def changes_since(revision: str) -> Changes:
    """Return the changes of the working folder since a commit, or since its branch left the current one.

    Files that git does not know yet are changed. Raises UsageError with git's own words.
    """
    if revision.startswith("-"):
        raise UsageError(f"`{revision}` is no revision of git")
    root = Path(os.path.realpath(_git(Path.cwd(), "rev-parse", "--show-toplevel").rstrip("\n")))
    commit = _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", wrong=revision).strip()
    # the other branch may have newer commits: only changes of this branch count
    common = _run(root, "merge-base", commit, "HEAD")
    base = common.stdout.decode().strip() if common.returncode == 0 else commit
    differing = _git(root, "diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames", base, "--")
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return Changes(root, base, frozenset(name for name in (differing + new).split("\0") if name))


def file_at(folder: Path, revision: str, name: str, *, flag: str) -> bytes | None:
    """Return the content of a file below a folder as it was in a revision, None if there was none.

    Raises UsageError for an unknown revision; its text begins with the name of the flag.
    """
    if revision.startswith("-"):
        raise UsageError(f"{flag}: `{revision}` is no revision of git")
    words = ("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    commit = _git(folder, *words, wrong=revision, flag=flag).strip()
    found = _run(folder, "cat-file", "blob", f"{commit}:./{name}", flag=flag)
    return found.stdout if found.returncode == 0 else None


def _texts_of(root: Path, commit: str, name: str) -> frozenset[str]:
    found = _run(root, "cat-file", "blob", f"{commit}:{name}")
    if found.returncode != 0:
        return frozenset()  # a new file
    try:
        return frozenset(_own_text(each) for each in load_documents(found.stdout, file=name))
    except PyvernoError:
        return frozenset()  # an unreadable old file makes all its documents new


def _own_text(document: Document) -> str:
    lines: Sequence[str] = document.own_lines[1]
    return "\n".join(line.rstrip() for line in lines if line.strip() and line.strip() != "---")


def _git(folder: Path, *words: str, wrong: str = "", flag: str = "--changed-since") -> str:
    done = _run(folder, *words, flag=flag)
    if done.returncode != 0:
        text = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise UsageError(f"{flag}: {text or f'git knows no revision `{wrong}`'}")
    return done.stdout.decode("utf-8", "surrogateescape")


def _run(folder: Path, *words: str, flag: str = "--changed-since") -> subprocess.CompletedProcess[bytes]:
    settings = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "core.quotePath=false")
    try:
        return subprocess.run(  # noqa: S603 - a fixed program; revisions never begin with a dash
            ["git", *settings, *words],  # noqa: S607
            cwd=folder,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise UsageError(f"{flag} needs the program `git`, which is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"{flag}: git gave no answer within {TIMEOUT_SECONDS:.0f} seconds") from error
