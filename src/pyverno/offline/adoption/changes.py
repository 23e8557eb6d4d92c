"""Changes since a commit: the documents of files whose content differs from that of the commit.

Git names the files of the commit and their ids; the files themselves are compared here, byte by byte and then document
by document, whatever index, ignore files and attributes of the repository say about them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.offline.files import read_file
from pyverno.offline.git.repository import Repository, open_repository

__all__ = ["Changes", "changes_since"]

_FLAG = "--changed-since"


class Changes:
    """The files of a repository that differ from a commit; documents are compared by their text.

    `files` are the ids of the commit's files by name.
    """

    def __init__(self, repository: Repository, files: Mapping[str, str]) -> None:
        self._repository = repository
        self._files = files
        self._differing: dict[str, bool] = {}
        self._old: dict[str, frozenset[str]] = {}
        self._last: tuple[Document | None, bool] = (None, False)
        self._relinked: dict[str, bool] = {}

    def is_changed(self, document: Document) -> bool:
        """Return whether a document is new or has another text; files that the commit lacks count as changed."""
        name = self._name(document.file) if document.line else None
        if name is None:
            return True
        if self._is_relinked(document.file):
            return True
        if not self._differs(name):
            return False
        if not document.shares_text(self._last[0]):  # items of a list do
            self._last = document, _own_text(document) not in self._old_texts(name)
        return self._last[1]

    def names(self, file: str) -> bool:
        """Return whether a file of the repository is new or has another content."""
        name = self._name(file)
        return name is not None and (self._is_relinked(file) or self._differs(name))

    def _name(self, file: str) -> str | None:
        """Return the name of a file below the root; None for stdin, addresses and files elsewhere."""
        path = Path(os.path.realpath(file))
        if not path.is_file() or not path.is_relative_to(self._repository.root):
            return None
        return path.relative_to(self._repository.root).as_posix()

    def _is_relinked(self, file: str) -> bool:
        """Return whether a link on the way to a file is new or has another target: old content in a new place."""
        if file not in self._relinked:
            links = (each for each in _links(Path.cwd() / file) if each.is_relative_to(self._repository.root))
            self._relinked[file] = any(map(self._is_new_link, links))  # guard: a new link to an old file is a change
        return self._relinked[file]

    def _is_new_link(self, link: Path) -> bool:
        old = self._files.get(link.relative_to(self._repository.root).as_posix())
        return old is None or old not in _ids(os.fsencode(link.readlink()), len(old))

    def _differs(self, name: str) -> bool:
        if name not in self._differing:
            old = self._files.get(name)
            self._differing[name] = old is None or old not in _ids(read_file(self._repository.root / name), len(old))
        return self._differing[name]

    def _old_texts(self, name: str) -> frozenset[str]:
        if name not in self._old:
            self._old[name] = self._texts(name)
        return self._old[name]

    def _texts(self, name: str) -> frozenset[str]:
        if name not in self._files:
            return frozenset()  # a new file
        content = self._repository.content(self._files[name], name)
        try:
            return frozenset(_own_text(each) for each in load_documents(content, file=name))
        except PyvernoError:
            return frozenset()  # an unreadable old file makes all its documents new


@contextmanager
def changes_since(revision: str) -> Iterator[Changes]:
    """Yield the changes of the working folder since a commit, or since its branch left the current one.

    Files that the commit lacks are changed. Raises UsageError for what is no revision or no repository.
    """
    if revision.startswith("-"):
        raise UsageError(f"`{revision}` is no revision of git")
    with open_repository(Path.cwd(), _FLAG) as repository:
        # the other branch may have newer commits: only changes of this branch count
        base = repository.common(repository.commit(revision))
        yield Changes(repository, repository.files(base))


def _links(path: Path) -> Iterator[Path]:
    """Yield the links through which an absolute path leads, each in the folder where it really is."""
    place, steps = Path(path.anchor), [*reversed(path.parts[1:])]
    seen: set[Path] = set()
    while steps:
        step = steps.pop()
        place = place.parent if step == ".." else place / step
        if not place.is_symlink():
            continue
        if place in seen:
            place = Path(os.path.realpath(place))
            continue
        seen.add(place)
        yield place
        target = place.parent / place.readlink()
        place, steps = Path(target.anchor), [*steps, *reversed(target.parts[1:])]


def _ids(content: bytes, length: int) -> Iterator[str]:
    """Yield the ids that git gives a content, as it is and with the ends of lines that git keeps."""
    kinds = {40: "sha1", 64: "sha256"}
    for each in dict.fromkeys((content, content.replace(b"\r\n", b"\n"))):
        digest = hashlib.new(kinds.get(length, "sha1"), b"blob %d\0" % len(each), usedforsecurity=False)
        digest.update(each)
        yield digest.hexdigest()


def _own_text(document: Document) -> str:
    lines: Sequence[str] = document.own_lines[1]
    return "\n".join(line.rstrip() for line in lines if line.strip() and line.strip() != "---")
