"""Hostile git repositories, made by git's low-level commands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

__all__ = ["HARMLESS_REPOSITORIES", "REPOSITORIES", "UNSETTLED_REPOSITORIES", "HostileRepository", "make_repository"]

POLICY: Final = b"apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: []}\n"


class HostileRepository:
    """A bare repository; trees are made of entries, which no working folder could hold."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.mkdir(parents=True)
        self._git("init", "--quiet", "--bare", "-b", "main")

    def blob(self, content: bytes) -> str:
        """Add a file and return its id."""
        return self._git("hash-object", "-w", "--stdin", given=content)

    def tree(self, entries: Iterable[tuple[str, bytes, str]]) -> str:
        """Add a folder of entries (mode, name, id), whatever their names are, and return its id."""
        ordered = sorted(entries, key=lambda each: each[1] + (b"/" if each[0] == "40000" else b""))
        data = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in ordered)
        return self._git("hash-object", "-t", "tree", "--literally", "-w", "--stdin", given=data)

    def commit(self, tree: str) -> None:
        """Make the branch `main` lead to a tree."""
        identity = {f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        commit = self._git("commit-tree", tree, "-m", "one", more=identity)
        self._git("update-ref", "refs/heads/main", commit)

    def files(self, files: dict[bytes, bytes]) -> str:
        """Add a folder of plain files and return its id."""
        return self.tree(("100644", name, self.blob(content)) for name, content in files.items())

    def _git(self, *words: str, given: bytes = b"", more: dict[str, str] | None = None) -> str:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | (more or {})
        done = subprocess.run(
            ["git", *words], cwd=self._path, input=given, env=environment, check=True, capture_output=True
        )
        return done.stdout.decode().strip()


def _files(files: dict[bytes, bytes]) -> Callable[[HostileRepository], str]:
    return lambda repository: repository.files(files)


def _entries(*entries: tuple[str, bytes]) -> Callable[[HostileRepository], str]:
    """Entries of one blob, or of a folder with it."""

    def make(repository: HostileRepository) -> str:
        file, folder = repository.blob(POLICY), repository.files({b"p.yaml": POLICY})
        return repository.tree((mode, name, folder if mode == "40000" else file) for mode, name in entries)

    return make


def _doubling(repository: HostileRepository) -> str:
    """Return a folder of 10^8 files, made of nine objects."""
    tree = repository.files({b"f%d.yaml" % number: POLICY for number in range(10)})
    for _ in range(7):
        tree = repository.tree([("40000", b"d%d" % number, tree) for number in range(10)])
    return tree


def _deep(repository: HostileRepository) -> str:
    tree = repository.files({b"p.yaml": POLICY})
    for _ in range(300):
        tree = repository.tree([("40000", b"d", tree)])
    return tree


def _linked(target: bytes) -> Callable[[HostileRepository], str]:
    return lambda repository: repository.tree(
        [("120000", b"link.yaml", repository.blob(target)), ("100644", b"p.yaml", repository.blob(POLICY))]
    )


def _submodule(repository: HostileRepository) -> str:
    modules = b'[submodule "a"]\n\tpath = a\n\turl = ext::sh -c touch% $HOME/touched\n\tupdate = !touch $HOME/touched\n'
    return repository.tree(
        [
            ("160000", b"a", "1" * 40),
            ("100644", b".gitmodules", repository.blob(modules)),
            ("100644", b"p.yaml", repository.blob(POLICY)),
        ]
    )


_HARMLESS: Final[dict[str, Callable[[HostileRepository], str]]] = {
    "a link to a file of the machine": _linked(b"/etc/hostname"),
    "a link out of the folder": _linked(b"../../../../etc/hostname"),
    "a submodule that is a command": _submodule,
    "attributes that name filters": _files(
        {b".gitattributes": b"* filter=lfs diff=lfs merge=lfs -text\n* filter=touch\n", b"p.yaml": POLICY}
    ),
    "a pointer of large files": _files(
        {
            b".gitattributes": b"*.yml filter=lfs\n",
            b".lfsconfig": b"[lfs]\n\turl = http://169.254.169.254/\n",
            b"p.yaml": POLICY,
            b"a.yml": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n",
        }
    ),
    "names of two cases": _files({b"p.yaml": POLICY, b"P.yaml": POLICY}),
    "a name with a space of typographers": _files({"Icon\u00a0a.yaml".encode(): POLICY, b"p.yaml": POLICY}),
    "a name that is an option": _files({b"--upload-pack=x.yaml": POLICY, b"p.yaml": POLICY}),
    "hooks": _files({b"hooks": b"", b".githooks": b"", b"p.yaml": POLICY}),
}
HARMLESS_REPOSITORIES: Final = frozenset(_HARMLESS)
"""Repositories whose policy must be read."""

UNSETTLED_REPOSITORIES: Final = frozenset({"a file and a folder of one name", "a mode that is none"})
"""Repositories that some versions of git read."""

REPOSITORIES: Final[dict[str, Callable[[HostileRepository], str]]] = {
    **_HARMLESS,
    "more files than all": _doubling,
    "a file that grows": _files({b"p.yaml": bytes(64 * 1024 * 1024)}),
    "many files": _files({b"%d.yaml" % number: b"" for number in range(2000)}),
    "a deep folder": _deep,
    "a folder of git's own": _entries(("40000", b".git"), ("100644", b"p.yaml")),
    "a folder of git's own in capitals": _entries(("40000", b".GIT"), ("100644", b"p.yaml")),
    "a folder above": _entries(("40000", b".."), ("100644", b"p.yaml")),
    "a name with a slash": _entries(("100644", b"../../../touched"), ("100644", b"p.yaml")),
    "a name without characters": _entries(("100644", b""), ("100644", b"p.yaml")),
    "a name of two lines": _entries(("100644", b"a\n::error::b.yaml"), ("100644", b"p.yaml")),
    "a name with a control character": _entries(("100644", b"a\x1b]0;b\x07.yaml"), ("100644", b"p.yaml")),
    "a file and a folder of one name": _entries(("100644", b"a"), ("40000", b"a"), ("100644", b"p.yaml")),
    "a mode that is none": _entries(("777777", b"a"), ("100644", b"p.yaml")),
    "an object that is missing": lambda repository: repository.tree(
        [("100644", b"a.yaml", "2" * 40), ("100644", b"p.yaml", repository.blob(POLICY))]
    ),
}
"""Folders by their names; the limits of the tests are far below those of the program."""


def make_repository(path: Path, kind: str) -> None:
    """Make a bare repository of a kind at a path."""
    repository = HostileRepository(path)
    repository.commit(REPOSITORIES[kind](repository))
