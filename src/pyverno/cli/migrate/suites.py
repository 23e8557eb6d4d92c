"""Test suites of converted policies: changes their rows and files, and runs them before and after.

A suite is converted when at least one of its policies was. Its unconverted policies are copied with it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from pyverno.cli.equivalent.admission import refusal_of
from pyverno.cli.migrate.conversion import Conversion
from pyverno.cli.migrate.report import RuleLine
from pyverno.cli.migrate.suitefiles import MovedSuite, relative
from pyverno.cli.migrate.suiterows import reference_of, settle_rows
from pyverno.cli.test.find import FoundSuite, find_suites
from pyverno.cli.test.options import DEFAULT_FILE, SuiteOptions
from pyverno.cli.test.run import SuiteOutcome, run_suite
from pyverno.compiler.migration.outcome import Note, Refused, UnconvertibleError
from pyverno.compiler.migration.policy import PolicyConversion, RuleOutcome
from pyverno.compiler.migration.related.successors import Successor, Successors, successors_of
from pyverno.compiler.migration.related.suites import convert_suite
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import expand_lists, load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.files import read_file
from pyverno.offline.manifests import load_manifests
from pyverno.offline.rewriting import replace_file
from pyverno.policy.cleanup import CleanupPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.decode import decode
from pyverno.sinks.filenames import file_names, inside
from pyverno.value import dataclass, replace

__all__ = ["migrate_suites"]


@dataclass(frozen=True, slots=True)
class _ConvertedSuite:
    """A converted suite: where it goes, its document, and the notes about it."""

    found: FoundSuite
    path: Path
    document: JSONObject
    notes: tuple[Note, ...]

    @property
    def position(self) -> int:
        """The number of the document in its file."""
        return self.found.test.document.index if self.found.test is not None else 0


def migrate_suites(
    sources: Sequence[str],
    conversions: Sequence[Conversion],
    book: SchemaBook,
    folder: Path | None,
    kube_version: str,
) -> list[RuleLine]:
    """Convert the suites of files and folders, run them before and after, and return their lines of the report.

    They go to `folder`, where the converted policies are already; None = in place.
    """
    batch = _Batch(conversions, book, folder)
    lines: list[RuleLine] = []
    made: list[tuple[_ConvertedSuite, SuiteOutcome]] = []
    for root, found in _find_suites(sources, folder):
        try:
            each = batch.converted(root, found)
        except UnconvertibleError as error:
            lines.append(_line(found, "not convertible", refused=error.refused))
            continue
        if each is not None:
            # in place, the suite's policies are already converted
            before = SuiteOutcome() if folder is None else run_suite(found, SuiteOptions())
            made.append((each, before))
    _write(made, batch.copies, folder)
    return lines + [_run_converted(each, before, kube_version) for each, before in made]


def _find_suites(sources: Sequence[str], folder: Path | None) -> Iterator[tuple[Path, FoundSuite]]:
    """Yield the suites of the arguments with the folder below which each was found, each suite once."""
    seen: set[tuple[Path, int]] = set()
    own = folder.resolve() if folder is not None else None
    with ExitStack() as stack:
        for source in sources:
            root = Path(source) if Path(source).is_dir() else Path(source).parent
            for found in find_suites(source, DEFAULT_FILE, "", stack):
                place = found.path.resolve(), found.test.document.index if found.test is not None else -1
                is_own = own is not None and own != root.resolve() and place[0].is_relative_to(own)
                if place not in seen and not is_own:
                    seen.add(place)
                    yield root, found


class _Batch:
    """The conversions that suites may be for, and the files that go with the suites."""

    def __init__(self, conversions: Sequence[Conversion], book: SchemaBook, folder: Path | None) -> None:
        self.conversions, self.book, self.folder = conversions, book, folder
        self.copies: dict[Path, Path] = {}
        self._paths: set[tuple[Path, int]] = set()

    def converted(self, root: Path, found: FoundSuite) -> _ConvertedSuite | None:
        """Return a suite for the new policies, None for one whose policies all stay; raises UnconvertibleError."""
        test = found.test
        if test is None:
            raise UnconvertibleError("suite", "", found.error or "the suite is of an old form", "pyverno fix test")
        named = [each for path in (*test.policies, *test.exceptions) for each in self._behind(found, path)]
        if not any(each.text for each in named):
            return None
        successors = Successors()
        for each in named:
            successors = successors.joined(_successors(each, self.book))
        place = found.path if self.folder is None else self.folder / os.path.relpath(found.path, root)
        moved = MovedSuite(found.path.parent, place.parent, root)
        files = {path: self._files(found, path, place.parent) for path in (*test.policies, *test.exceptions)}
        converted = convert_suite(test.document.value, successors, {key: each for key, each in files.items() if each})
        document = converted.documents[0]
        if self.folder is not None:
            if place.resolve() == found.path.resolve():
                raise UnconvertibleError("suite-place", "", "the new suite would replace it", "write to another folder")
            key = place.resolve(), test.document.index
            if key in self._paths:
                raise UnconvertibleError("suite-place", "", f"another suite goes to {place}", "convert them apart")
            self._paths.add(key)
            document = moved.document(document, self.copies)
        # it names files of the new folder, and of the old suite
        widened = found if self.folder is None else replace(found, roots=(*found.roots, self.folder))
        return _ConvertedSuite(widened, place, document, converted.notes)

    def _behind(self, found: FoundSuite, path: str) -> Sequence[Conversion]:
        """Return the conversions of the documents that a suite names by a path."""
        place = (found.path.parent / path).resolve()
        return [each for each in self.conversions if Path(each.document.file).resolve().is_relative_to(place)]

    def _files(self, found: FoundSuite, path: str, folder: Path) -> Sequence[str]:
        """Return the files that take the place of a file of policies; none where it stays."""
        behind = self._behind(found, path)
        if self.folder is None or not any(each.text for each in behind):
            return ()
        files = []
        for each in behind:
            if each.text:
                files.append(relative(self.folder / f"{each.stem}.yaml", folder))
            else:
                # the old file also holds converted policies: the others get a file of their own
                stems = (other.stem for other in self.conversions)
                name = file_names([*stems, f"{each.stem}.kept"])[-1] + ".yaml"
                _write_text(inside(folder, name), dump_yaml(each.source, sort_keys=False))
                files.append(name)
        return files


def _successors(conversion: Conversion, book: SchemaBook) -> Successors:
    written = decode(conversion.document).policy
    if isinstance(written, ClusterPolicy):
        rules = tuple(RuleOutcome(each.rule, each.policies, each.refused) for each in conversion.lines)
        made = PolicyConversion(conversion.source, conversion.documents, conversion.remaining, rules)
        return successors_of(written, made, book)
    if isinstance(written, CleanupPolicy) and conversion.documents:
        key, kind = conversion.name, str(conversion.documents[0]["kind"])
        return Successors((Successor(key, "", key, kind, frozenset({"*"})),))
    return Successors()


def _write(made: Sequence[tuple[_ConvertedSuite, SuiteOutcome]], copies: dict[Path, Path], folder: Path | None) -> None:
    for source, target in copies.items():
        if folder is not None:
            inside(folder, os.path.relpath(target, folder))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        except OSError as error:
            raise UsageError(f"cannot copy `{source}`: {(error.strerror or str(error)).lower()}") from error
    by_path: dict[Path, list[_ConvertedSuite]] = {}
    for each, _ in made:
        by_path.setdefault(each.path, []).append(each)
    for path, suites in by_path.items():
        if folder is not None:
            inside(folder, os.path.relpath(path, folder))
        _write_documents(path, suites, suites[0].found.path)


def _write_documents(path: Path, suites: Sequence[_ConvertedSuite], source: Path) -> None:
    """Write suites to a file, with the other documents of the file that they are from."""
    changed = {each.position: each.document for each in suites}
    documents = load_documents(read_file(source), file=str(source))
    texts = [dump_yaml(changed.get(at, each.value), sort_keys=False) for at, each in enumerate(documents)]
    _write_text(path, "---\n".join(texts))


def _write_text(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error
    replace_file(path, text.encode())


def _run_converted(made: _ConvertedSuite, before: SuiteOutcome, kube_version: str) -> RuleLine:
    """Run a converted suite and return its line: it must pass if the old one did."""
    after, notes = _run(made), made.notes
    if _failures(after) and not _failures(before):
        # inadmissible objects, and skips that are passes now, are no differences
        names = [str(made.path.parent / each) for each in made.document.get("resources") or ()]
        is_refused = refusal_of(kube_version)
        refused = {reference_of(each) for each in _objects(names) if is_refused(each)}
        settled = settle_rows(made.document, after.rows, refused)
        if settled.notes:
            made, notes = replace(made, document=settled.documents[0]), (*notes, *settled.notes)
            _write_documents(made.path, [made], made.path)
            after = _run(made)
    failed = _failures(after)
    where = (str(made.path),)
    if not failed:
        return _line(made.found, "converted (tested)", where, notes=notes)
    if old := _failures(before):
        reason = f"the suite does not pass with the old policies either: {old}"
        return _line(made.found, "converted, not tested", where, reason, notes=notes)
    return _line(made.found, "converted, differs", where, failed, notes=notes)


def _run(made: _ConvertedSuite) -> SuiteOutcome:
    with ExitStack() as stack:
        suites = find_suites(str(made.path), DEFAULT_FILE, "", stack, roots=made.found.roots)
        return run_suite(suites[made.position], SuiteOptions())


def _objects(names: Sequence[str]) -> list[JSONObject]:
    """Return the objects of files; files that cannot be read are an error of the suite already."""
    return [each.value for each in expand_lists(load_manifests(names).documents)]


def _failures(outcome: SuiteOutcome) -> str:
    """Return why a suite does not pass, an empty text if it does."""
    if outcome.errors:
        return "; ".join(outcome.errors)
    rows = [each for each in outcome.rows if each.counts_as_failed]
    texts = [f"{each.policy} {each.rule} on {each.resource}: {each.reason}" for each in rows[:3]]
    more = f"; {len(rows) - 3} more" if len(rows) > 3 else ""
    return "; ".join([*texts, *outcome.unread]) + more


def _line(
    found: FoundSuite,
    state: str,
    where: tuple[str, ...] = (),
    reason: str = "",
    *,
    refused: Refused | None = None,
    notes: tuple[Note, ...] = (),
) -> RuleLine:
    name = found.test.name if found.test is not None else ""
    return RuleLine(str(found.path), f"suite {name or found.path}", "", state, where, reason, refused, notes)
