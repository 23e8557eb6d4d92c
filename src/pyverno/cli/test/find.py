"""Finding test suites: files of one name below folders, in this machine or in a git repository.

Every document of such a file is one suite, or one error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from pyverno.cli.bounds import own_tree
from pyverno.errors import Location, PyvernoError, UsageError
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.clifiles import is_deprecated
from pyverno.offline.files import read_file
from pyverno.offline.folderrules import check_depth, check_name, check_regular
from pyverno.offline.git.clone import cloned, is_git_url, parse_git_url
from pyverno.offline.links import FollowedLinks
from pyverno.offline.testfile import TestFile, read_test_file
from pyverno.report.problem import Problem, problem_of
from pyverno.value import dataclass, replace

# trust rows: test-suite

__all__ = ["FoundSuite", "count_files", "find_suites"]


@dataclass(frozen=True, slots=True)
class FoundSuite:
    """One document of a test file, or the reason why it cannot be read.

    `problem` is that reason for formats with places. `clone` is the temporary folder of a git repository ("" = none),
    which no output shows. The suite names files below `roots` only.
    """

    path: Path
    test: TestFile | None = None
    error: str = ""
    problem: Problem | None = None
    is_deprecated: bool = False
    clone: str = ""
    roots: tuple[Path, ...] = ()

    def without_clone(self, text: str) -> str:
        """Return a text without the path of the temporary folder."""
        return text.replace(f"{self.clone}{os.sep}", "").replace(self.clone, ".") if self.clone else text

    @property
    def name(self) -> str:
        """The path as the output shows it."""
        return self.without_clone(str(self.path))

    def problem_of(self, error: PyvernoError) -> Problem:
        """Return an error as a problem of the run; without a place it gets that of the file."""
        found = problem_of(error)
        where = found.location if found.location.file else Location(str(self.path))
        place = Location(self.without_clone(where.file), where.line, where.column)
        return Problem(self.without_clone(found.message), found.code, place)


def find_suites(
    source: str, file_name: str, branch: str, stack: ExitStack, *, roots: tuple[Path, ...] = ()
) -> list[FoundSuite]:
    """Return the suites of one argument; clones live until `stack` is closed.

    Suites name files below `roots` only: those of their repository by default, or outside of one, below the argument.
    Raises UsageError for a folder or repository that does not exist.
    """
    if not is_git_url(source):
        return _suites_below(Path(source), file_name, "", roots)
    folder = stack.enter_context(cloned(parse_git_url(source, branch)))
    root = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)
    return _suites_below(folder, file_name, str(root), (root,))


def count_files(folder: Path, file_name: str) -> int:
    """Return the number of files of a name below a folder; 0 for a file, which is named itself."""
    return sum(1 for _ in _files(folder, file_name)) if folder.is_dir() else 0


def _suites_below(folder: Path, file_name: str, clone: str, roots: tuple[Path, ...]) -> list[FoundSuite]:
    if not folder.exists():
        raise UsageError(f"`{folder}` does not exist")
    files = [folder] if folder.is_file() else sorted(_files(folder, file_name))
    around = own_tree(folder.parent if folder.is_file() else folder)
    tree = roots or (around,)  # guard: tests that are found have a tree
    return [replace(suite, roots=tree) for path in files for suite in _suites_of(path, clone)]


def _files(folder: Path, file_name: str) -> Iterator[Path]:
    """Yield the files of that name, hidden folders included; links to folders are not followed.

    Raises UsageError for one that is a link out of the folder.
    """
    links = FollowedLinks(folder)
    for parent, folders, names in os.walk(folder):
        check_depth(Path(parent), folder)
        if ".git" in folders:
            folders.remove(".git")
        if file_name in names:
            check_name(Path(parent))
            links.leave_out(Path(parent) / file_name, None)
            yield Path(parent) / file_name


def _suites_of(path: Path, clone: str) -> Iterator[FoundSuite]:
    try:
        documents = load_documents(read_file(check_regular(path)), file=str(path))
    except PyvernoError as error:
        yield _unreadable(path, error, clone)
        return
    for document in documents:
        if is_deprecated(document):
            text = "the test file uses a deprecated schema: apiVersion, kind or metadata.name is missing"
            deprecated = _unreadable(path, UsageError(text, location=document.location()), clone)
            yield replace(deprecated, error="", is_deprecated=True)
            continue
        try:
            yield FoundSuite(path, read_test_file(document), clone=clone)
        except PyvernoError as error:
            yield _unreadable(path, error, clone)


def _unreadable(path: Path, error: PyvernoError, clone: str) -> FoundSuite:
    found = FoundSuite(path, error=str(error), clone=clone)
    return replace(found, problem=found.problem_of(error))
