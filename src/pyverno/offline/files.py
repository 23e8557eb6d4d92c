"""Files, folders, globs and standard input, read into documents.

Paths are taken in the order in which they are given and folders in order of name, so that every run reads the same. One
unreadable or malformed file is one error; the others are still read.
"""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyverno.errors import DocumentError, Location, PyvernoError, UsageError
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.offline.folderrules import FolderRules, Skipped, check_name, check_regular, list_folder
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.offline.links import FollowedLinks

# trust rows: judged-file, named-file, standard-input

__all__ = [
    "STDIN",
    "DocumentCache",
    "Loaded",
    "check_local",
    "find_yaml",
    "load_files",
    "read_file",
    "read_stdin",
]

STDIN = "-"
SUFFIXES = (".yaml", ".yml")
MAX_FILE_BYTES = 512 * 1024 * 1024


@dataclass(slots=True)
class Loaded:
    """Read documents, one error for every unreadable file, and the files of folders that are no manifests."""

    documents: list[Document] = field(default_factory=list)
    errors: list[PyvernoError] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def read_file(path: Path) -> bytes:
    """Return the bytes of a file; raises UsageError with the reason when it cannot be read."""
    check_local(str(path))
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            is_large = found.st_size > MAX_FILE_BYTES
            if not is_large:
                # a pipe or a device has no size, and may have no end
                content = file.read() if stat.S_ISREG(found.st_mode) else file.read(MAX_FILE_BYTES + 1)
                is_large = len(content) > MAX_FILE_BYTES
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read `{path}`: {reason}", file=str(path)) from error
    if is_large:
        raise DocumentError(f"file is larger than {MAX_FILE_BYTES} bytes", location=Location(str(path)))
    return content


def check_local(path: str) -> None:
    """Raise UsageError for a path on another machine: reading it would disclose this machine's user.

    Windows takes both slashes; elsewhere such a path has no use either.
    """
    if path[:2] in ("\\\\", "//", "\\/", "/\\"):
        raise UsageError(f"`{path}` is a path on another machine, which is not read")


def read_stdin() -> bytes:
    """Return all of standard input."""
    return sys.stdin.buffer.read()


def find_yaml(folder: Path, *, recursive: bool = True, skipped: list[Skipped] | None = None) -> Iterator[Path]:
    """Yield the .yaml and .yml files below a folder in order of name; names that start with a dot are left out.

    Links out of the folder are left out, too, and added to `skipped`; without it they are errors.
    """
    from pyverno.offline.links import FollowedLinks  # most runs name files

    links = FollowedLinks(folder)

    def search(below: Path) -> Iterator[Path]:
        for entry in list_folder(below, folder)[0]:
            is_folder = entry.is_dir()
            if not (recursive if is_folder else entry.suffix in SUFFIXES) or links.leave_out(entry, skipped):
                continue
            if not is_folder:
                check_name(entry)
                yield check_regular(entry)
            elif links.should_enter(entry):
                check_name(entry)
                yield from search(entry)

    return search(folder)


def expand(paths: Iterable[str], *, recursive: bool = True, skipped: list[Skipped] | None = None) -> Iterator[Path]:
    """Yield the files that paths, folders and glob patterns name; raises UsageError for a path that does not exist.

    `skipped` takes the links out of folders, as for `find_yaml`; a path that is named as it is may be a link.
    """
    for text in paths:
        check_local(text)
        path = Path(text)
        if path.is_dir():
            yield from find_yaml(path, recursive=recursive, skipped=skipped)
        elif path.exists():
            yield path
        elif glob.has_magic(text):
            found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - patterns may be absolute
            if not found:
                raise UsageError(f"no file matches `{text}`")
            links = _links_of(text)
            kept = [check_regular(Path(each)) for each in found if not links.leave_out(Path(each), skipped)]
            yield from expand(map(str, kept), recursive=recursive, skipped=skipped)
        else:
            raise UsageError(f"`{text}` does not exist", file=text)


def _links_of(pattern: str) -> FollowedLinks:
    """Return the links below the folder that a glob begins with."""
    from pyverno.offline.links import FollowedLinks  # as above

    parts = Path(pattern).parts
    first = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    return FollowedLinks(Path(*parts[:first]))


class DocumentCache:
    """The documents of files by path, as long as time and size of a file stay the same, for runs that are repeated.

    `reads` counts the files that were read.
    """

    def __init__(self) -> None:
        self._held: dict[str, tuple[tuple[int, int], tuple[Document, ...]]] = {}
        self.reads = 0

    def load(self, path: Path) -> tuple[Document, ...]:
        """Return the documents of a file, read only if it changed; unreadable files are not cached."""
        stamp = _stamp(path)
        held = self._held.get(str(path))
        if held is not None and stamp is not None and held[0] == stamp:
            return held[1]
        self.reads += 1
        documents = load_documents(read_file(path), file=str(path))
        if stamp is not None:
            self._held[str(path)] = (stamp, documents)
        return documents


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def load_files(
    paths: Sequence[str],
    *,
    recursive: bool = True,
    stdin: bytes | None = None,
    folders: FolderRules | None = None,
    cache: DocumentCache | None = None,
) -> Loaded:
    """Read documents from files, folders, globs and `-` (standard input, or `stdin` when given).

    `folders` states which files of folders are read, and leaves out what is no manifest; without it these are all .yaml
    and .yml files. A `cache` gives the documents of files that it has seen.
    """
    loaded = Loaded()
    for text in paths:
        if text == STDIN:
            _take(loaded, read_stdin() if stdin is None else stdin, STDIN)
            continue
        try:
            if folders is not None and Path(text).is_dir():
                check_local(text)
                _take_folder(loaded, Path(text), folders, cache)
                continue
            for path in expand([text], recursive=recursive, skipped=None if folders is None else loaded.skipped):
                _take_file(loaded, path, cache)
        except PyvernoError as error:
            loaded.errors.append(error)
    return loaded


def _take_folder(loaded: Loaded, folder: Path, rules: FolderRules, cache: DocumentCache | None) -> None:
    # imported here, because most runs name files
    from pyverno.offline.folders import find_files, foreign_reason

    for path in find_files(folder, rules, loaded.skipped):
        try:
            documents = _documents(path, cache)
        except PyvernoError as error:
            if rules.skips_foreign and isinstance(error, DocumentError) and not _may_be_manifest(path):
                loaded.skipped.append(Skipped(str(path), "no manifest: neither YAML nor with apiVersion and kind"))
            else:
                loaded.errors.append(error)
            continue
        reason = foreign_reason([each.value for each in documents]) if rules.skips_foreign else ""
        if reason:
            loaded.skipped.append(Skipped(str(path), reason))
        else:
            loaded.documents.extend(documents)


def _may_be_manifest(path: Path) -> bool:
    """Return whether a file that is no YAML may have been meant as a manifest; so may one that cannot be read."""
    from pyverno.offline.folders import may_be_manifest

    try:
        return may_be_manifest(read_file(path))
    except PyvernoError:
        return True


def _documents(path: Path, cache: DocumentCache | None) -> tuple[Document, ...]:
    return load_documents(read_file(path), file=str(path)) if cache is None else cache.load(path)


def _take_file(loaded: Loaded, path: Path, cache: DocumentCache | None) -> None:
    try:
        loaded.documents.extend(_documents(path, cache))
    except PyvernoError as error:
        loaded.errors.append(error)


def _take(loaded: Loaded, data: bytes, name: str) -> None:
    try:
        loaded.documents.extend(load_documents(data, file=name))
    except PyvernoError as error:
        loaded.errors.append(error)
