"""The work of `pyverno migrate`: convert every policy, judge it beside its source, write what the flags ask for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyverno.cli.equivalent.admission import admission_of
from pyverno.cli.errors import bug_text, report_error
from pyverno.cli.migrate.certificate import Settings
from pyverno.cli.migrate.conversion import Conversion, convert_document
from pyverno.cli.migrate.output import Bugs, check_folder, print_diff, with_stems, write_folder, write_in_place
from pyverno.cli.migrate.plan import plan_steps, print_steps
from pyverno.cli.migrate.report import RuleLine, render_report
from pyverno.cli.migrate.suitefiles import split_suites
from pyverno.cli.progress import tracked
from pyverno.cli.terminal import STDERR, STDOUT
from pyverno.compiler import compile_documents
from pyverno.compiler.migration.outcome import Refused
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.errors import DocumentError, Location, PyvernoError, UsageError, raise_all
from pyverno.kube.json import JSONObject
from pyverno.kube.wildcard import compile_wildcard
from pyverno.kube.yaml.documents import Document
from pyverno.offline.files import STDIN, read_stdin
from pyverno.offline.manifests import load_manifests
from pyverno.offline.policies import load_policy_documents
from pyverno.offline.resources import read_objects
from pyverno.value import dataclass, replace

if TYPE_CHECKING:
    from pyverno.cli.migrate.examples import Examples

__all__ = ["MigrateOptions", "run_migrate"]

_DONE, _LEFT, _UNUSABLE = 0, 1, 2
_TRACKED = "policies converted"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateOptions:
    """All flags of a conversion."""

    policies: tuple[str, ...]
    selected: tuple[str, ...] = ()
    unsafe: bool = False
    target: str = "cel"
    crds: tuple[str, ...] = ()
    kube_version: str = "1.35"
    objects: int = 500
    seed: int = 1
    seeds: tuple[str, ...] = ()
    diff: bool = False
    write: str = ""
    in_place: bool = False
    plan: bool = False
    check: bool = False
    report: str = "text"
    workers: int = 1


def run_migrate(options: MigrateOptions) -> int:
    """Run the command and return its exit code."""
    try:
        _refuse_combinations(options)
        stdin = read_stdin() if STDIN in options.policies else None
        policies, suites = split_suites(options.policies)
        documents = _load(policies, stdin)
        raise_all(_all_errors(documents))
        work = _Work(options, stdin, documents)
        if suites and not options.check:
            from pyverno.cli.migrate.examples import suite_examples  # most runs have no suites

            work.examples = suite_examples(suites)
        if options.write:
            _refuse_twins(documents)
        bugs = Bugs()
        found = with_stems(_convert(work), bugs)
        for each in found:
            if each.bug:
                bugs.report(each.bug, each.document)
        if options.check:
            return max(check_folder(found, Path(options.write), bugs), bugs.code)
        _write(options, found, bugs)
        lines = [line for each in found for line in each.lines]
        if suites and (options.write or options.in_place):
            from pyverno.cli.migrate.suites import migrate_suites  # most runs have no suites

            book, _ = work.prepare()
            folder = Path(options.write) if options.write else None
            lines += migrate_suites(suites, found, book, folder, options.kube_version)
    except PyvernoError as error:
        report_error(error)
        return _UNUSABLE
    STDERR.write(render_report(lines, options.report))
    return bugs.code or (_DONE if all(line.is_good for line in lines) else _LEFT)


def _all_errors(documents: Sequence[Document]) -> list[PyvernoError]:
    """Return every error of every document in the order of the text, before any is converted."""
    return [
        error
        for document in documents
        for error in sorted(compile_documents([document]).errors, key=lambda each: _place(each.location or Location()))
    ]


def _place(location: Location) -> tuple[int, int]:
    return location.line, location.column


def _convert(work: _Work) -> list[Conversion]:
    """Convert all documents, in several processes where there is work for them."""
    options, documents = work.options, work.documents
    if options.workers == 1 or len(documents) < options.workers * 2:
        return [_converted(work, document) for document in tracked(documents, len(documents), _TRACKED)]
    # imported for runs over many policies only
    import multiprocessing
    import threading
    from concurrent.futures import ProcessPoolExecutor

    # a fork starts with everything imported, but is safe only without threads
    forks = sys.platform == "linux" and threading.active_count() == 1
    context = multiprocessing.get_context("fork" if forks else "spawn")
    if forks:
        work.prepare()
    with ProcessPoolExecutor(options.workers, mp_context=context, initializer=_start, initargs=(work,)) as pool:
        return list(tracked(pool.map(_convert_one, documents, chunksize=4), len(documents), _TRACKED))


class _Work:
    """The work of one process; schemas are read in the process that uses them."""

    def __init__(self, options: MigrateOptions, stdin: bytes | None, documents: Sequence[Document]) -> None:
        self.options = options
        self.documents = documents
        self.stdin = stdin
        self.crds = _objects(options.crds)
        self.seeds = _objects(options.seeds)
        self.examples: Examples | None = None
        self._ready: tuple[SchemaBook, Settings] | None = None

    def prepare(self) -> tuple[SchemaBook, Settings]:
        """Read the schemas, once in a process."""
        if self._ready is None:
            options = self.options
            crds = tuple(self.crds)
            admit = admission_of(options.kube_version, crds)
            settings = Settings(options.objects, options.seed, options.kube_version, admit, tuple(self.seeds), crds)
            self._ready = SchemaBook(options.kube_version, self.crds), settings
        return self._ready

    def convert(self, document: Document) -> Conversion:
        """Convert one document."""
        options = self.options
        book, settings = self.prepare()
        if self.examples is not None:
            settings = replace(settings, seeds=(*settings.seeds, *self.examples.of(document.file)))
        tests = [compile_wildcard(each) for each in options.selected]
        return convert_document(
            document,
            book,
            settings,
            selected=lambda rule: not tests or any(test(rule) for test in tests),
            is_unsafe=options.unsafe,
            is_tested=not options.check,
            text=None if self.stdin is None or document.file != STDIN else self.stdin.decode(errors="replace"),
            others=self.documents,
            target=options.target,
        )


_STARTED: list[_Work] = []
"""The work of a process that was started for it."""


def _start(work: _Work) -> None:
    _STARTED[:] = [work]


def _convert_one(document: Document) -> Conversion:
    return _converted(_STARTED[0], document)


def _converted(work: _Work, document: Document) -> Conversion:
    """Convert one document; a bug costs this one."""
    try:
        return work.convert(document)
    except PyvernoError:
        raise
    except Exception as error:  # a bug in one document costs that one
        name = str((document.value.get("metadata") or {}).get("name") or "")
        refused = Refused("bug", "", "a bug ended its conversion", "the error names the place")
        line = RuleLine(document.file, name, "", "not convertible", refused=refused)
        return Conversion(document, (line,), bug=f"policy `{name}` cannot be converted: {bug_text(error)}")


def _refuse_combinations(options: MigrateOptions) -> None:
    chosen = [name for name in ("diff", "write", "in_place", "plan") if getattr(options, name)]
    if len(chosen) > 1:
        flags = " and ".join(f"`--{name.replace('_', '-')}`" for name in chosen[:2])
        raise UsageError(f"{flags} cannot be combined")
    if options.check and not options.write:
        raise UsageError("`--check` needs the folder that `--write` filled")
    if options.in_place and STDIN in options.policies:
        raise UsageError("`--in-place` cannot change stdin")


def _refuse_twins(documents: Sequence[Document]) -> None:
    """Refuse two documents for one object of a cluster before the work: their files would be one."""
    seen: dict[tuple[str, str, str], Document] = {}
    for document in documents:
        meta = document.value.get("metadata") or {}
        key = str(document.value.get("kind")), str(meta.get("namespace") or ""), str(meta.get("name") or "")
        first = seen.setdefault(key, document)
        if key[2] and first is not document:
            raise DocumentError(
                f"a second {key[0]} `{key[2]}`, beside that of {first.file}: `--write` has one file for both; "
                "convert them into folders of their own",
                location=document.location(("metadata", "name")),
                path="metadata.name",
            )


def _load(policies: Sequence[str], stdin: bytes | None) -> Sequence[Document]:
    loaded = load_policy_documents(policies, stdin=stdin)
    raise_all(loaded.errors)
    if not loaded.documents:
        where = " in " + ", ".join(f"`{each}`" for each in policies) if policies else ": name them beside their suites"
        raise UsageError(f"there is no policy{where}")
    return loaded.documents


def _objects(sources: Sequence[str]) -> list[JSONObject]:
    if not sources:
        return []
    loaded = load_manifests(sources)
    objects, errors = read_objects(loaded.documents)
    raise_all((*loaded.errors, *errors))
    return [each.value for each in objects]


def _write(options: MigrateOptions, found: Sequence[Conversion], bugs: Bugs) -> None:
    if options.plan:
        plans = bugs.each((each for each in found if each.documents), _plan)
        STDOUT.write("---\n".join(plans))
    elif options.diff:
        STDOUT.writelines(bugs.each(found, print_diff))
    elif options.write:
        write_folder(found, Path(options.write), bugs)
    elif options.in_place:
        write_in_place(found)
    else:
        STDOUT.write("---\n".join(each.text for each in found if each.text))


def _plan(conversion: Conversion) -> str:
    return print_steps(plan_steps(conversion.source, conversion.documents, conversion.remaining))
