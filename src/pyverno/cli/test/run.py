"""Run the suites of `pyverno test` and print the results.

Each suite is run on its own, here or in a worker process, and gives text and rows; they are printed in the order in
which they were found, so that the output does not depend on the number of workers. With `--output-format` stdout holds
one document about all suites, and everything else is on stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyverno.cli.errors import bug_text, can_show, report_error, report_note, report_warning, write_as_utf8
from pyverno.cli.faults import report_faults
from pyverno.cli.progress import tracked
from pyverno.cli.registries import opened_registries
from pyverno.cli.skipped import counted
from pyverno.cli.style import Style, style_for
from pyverno.cli.terminal import STDERR, STDOUT
from pyverno.cli.test.check import IGNORED, Row, check_rows, missing_files
from pyverno.cli.test.find import FoundSuite, count_files, find_suites
from pyverno.cli.test.options import DEFAULT_FILE, SuiteOptions
from pyverno.cli.test.remarks import invalid_policies, reasons_not_found, unknown_names, unused_names
from pyverno.cli.test.report import render, table
from pyverno.cli.test.strict import vacuous_checks
from pyverno.cli.test.suite import ReviewedManifest, Suite, load_suite
from pyverno.errors import CombinedError, PyvernoError, UsageError
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.files import read_file
from pyverno.offline.git.clone import is_git_url
from pyverno.report.problem import Problem, problem_of
from pyverno.report.table import BOX
from pyverno.value import dataclass

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pyverno.cli.test.coverage import PolicyCoverage
    from pyverno.cli.test.measures import Measures
    from pyverno.cli.test.mutation import MutantOutcome, Selection
    from pyverno.cli.test.write import NewRow
    from pyverno.offline.testfile import ExpectedResult

__all__ = ["SuiteOutcome", "run_suite", "run_tests"]

_PARTS = 4
"""Parts of the mutants for each process, when there are few suites."""


@dataclass(frozen=True, slots=True)
class SuiteOutcome:
    """The outcome of one suite: log lines, rows, unreadable files, and the errors that ended it.

    `problems` are the unreadable files and these errors for formats with places.
    """

    lines: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    unread: tuple[str, ...] = ()
    vacuous: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    was_run: bool = True
    coverage: tuple[PolicyCoverage, ...] = ()
    new_rows: tuple[NewRow, ...] = ()
    is_mutable: bool = False
    """Whether mutants can be run: the suite was loaded and all of its rows are as expected."""


@dataclass(slots=True)
class _Totals:
    """The totals of a run."""

    passed: int = 0
    failed: int = 0
    vacuous: int = 0
    broken: int = 0
    unread: int = 0
    low: tuple[str, ...] = ()
    empty: str = ""

    def error(self) -> str:
        """Return the text of the last line, "" without a problem."""
        parts = (
            (self.failed, f"{self.failed} tests failed"),
            (self.vacuous, f"{self.vacuous} vacuous checks found by --strict"),
            (self.broken, f"found {self.broken} errors after loading tests"),
            (self.unread, f"{self.unread} resource files could not be read"),
        )
        return ", ".join((*(text for count, text in parts if count), *self.low, *filter(None, (self.empty,))))


def run_tests(options: SuiteOptions) -> int:
    """Run all suites and print the outcome; returns the exit code."""
    if options.output_format:
        write_as_utf8()
    if Path(options.file_name).name != options.file_name:
        wrong = f"--file-name takes a name without folders, got `{options.file_name}`"
        raise UsageError(wrong)  # guard: the name of test files is no path
    if options.selector_errors:
        _print(options, "", "Filter errors:", *(f"  Error: {error}" for error in options.selector_errors))
    with ExitStack() as stack:
        try:
            suites = [suite for source in options.sources for suite in _suites(source, options, stack)]
        except PyvernoError as error:
            _print(options, "", f"Error loading tests: {error}")
            if options.output_format:
                STDOUT.of(options.output_format).write(f"{render((), options.output_format, [problem_of(error)])}\n")
            raise
        return _run(suites, options)


def _suites(source: str, options: SuiteOptions, stack: ExitStack) -> list[FoundSuite]:
    """Return the suites of an argument; with --write a folder without one gets one."""
    found = find_suites(source, options.file_name, options.git_branch, stack)
    if found or not options.write or is_git_url(source):
        return found
    from pyverno.cli.test.newsuite import make_suite

    path = make_suite(Path(source), options.file_name)
    _print(options, f"Wrote {path}: a suite of the policies and manifests of its folder")
    return find_suites(str(path), options.file_name, "", stack)


def _run(suites: Sequence[FoundSuite], options: SuiteOptions) -> int:
    bad = [suite for suite in suites if suite.test is None]
    if not suites:
        _print(options, "", "No test yamls available")
        _report_left_out((), options)
        missing = UsageError("no tests found")
        if options.output_format:
            problems = [problem_of(missing)] if options.needs_rows else []
            STDOUT.of(options.output_format).write(f"{render((), options.output_format, problems)}\n")
        if options.needs_rows:
            raise missing
        return 0
    if bad:
        _print(options, "", "Test errors:")
        for suite in bad:
            _print(options, *_load_error(suite))
    style = style_for(STDOUT, remove_color=options.remove_color or bool(options.output_format))
    totals = _Totals(broken=len(bad))
    good = [suite for suite in suites if suite.test is not None]
    rows: list[Row] = []
    vacuous: list[str] = []
    problems = [suite.problem for suite in bad if suite.problem is not None]
    outcomes: list[SuiteOutcome] = []
    for suite, outcome in zip(good, _outcomes(good, options), strict=True):
        outcomes.append(outcome)
        _print_suite(suite, outcome, options, style)
        rows += outcome.rows
        problems += outcome.problems
        totals.passed += sum(not row.counts_as_failed for row in outcome.rows)
        totals.broken += len(outcome.errors)
        totals.unread += len(outcome.unread)
        vacuous += [f"{suite.name}: {text}" for text in outcome.vacuous]
    if options.write:
        _write(list(zip(good, outcomes, strict=True)), options)
    if good and not bad and not any(outcome.was_run for outcome in outcomes):
        totals.empty = _empty(good)
        problems += [Problem(totals.empty, "no-tests")] if options.needs_rows else []
    if options.strict:
        vacuous += [f"--test-case-selector: {error}" for error in options.selector_errors]
    measures = _measure(list(zip(good, outcomes, strict=True)), options)
    failed = [row for row in rows if row.counts_as_failed]
    totals.failed, totals.vacuous = len(failed), len(vacuous)
    _print_summary(totals, failed, vacuous, options, style)
    if measures is not None:
        _print(options, *measures.lines(style, is_ascii=not can_show(STDOUT, BOX)), "")
        totals.low = measures.below(options.fail_under)
        if options.report:
            from pyverno.cli.test.measures import write_report

            write_report(measures, Path(options.report))
    if options.output_format:
        problems += [Problem(text, "vacuous") for text in vacuous]
        problems += [Problem(text, "fail-under") for text in totals.low]
        shown = failed if options.fail_only else rows
        more = None if measures is None else measures.to_json()
        text = render(shown, options.output_format, problems, detailed=options.detailed_results, measures=more)
        STDOUT.of(options.output_format).write(f"{text}\n")
    if totals.empty and not options.needs_rows:
        report_note(totals.empty)
        totals.empty = ""
    _report_left_out(good, options)
    error = totals.error()
    if error:
        STDOUT.flush()
        report_error(error)
    return 1 if error else 0


def _empty(suites: Sequence[FoundSuite]) -> str:
    """Return why no row was run."""
    rows = sum(len(suite.test.results) for suite in suites if suite.test is not None)
    return f"--test-case-selector selects none of {rows} rows" if rows else "the tests have no results to check"


def _report_left_out(suites: Sequence[FoundSuite], options: SuiteOptions) -> None:
    """Write notes on the rows and files that `--test-case-selector` and `--file-name` take away."""
    tests = [suite.test for suite in suites if suite.test is not None]
    rows = sum(len(test.results) for test in tests)
    left = rows - sum(len(options.selector.select(test.results)) for test in tests)
    if 0 < left < rows:  # the run says so where no row is left
        text = f"--test-case-selector leaves out {left} of {counted(rows, 'row')}"
        report_note(text)  # guard: rows that are not run are counted
    if options.file_name == DEFAULT_FILE:
        return
    others = sum(count_files(Path(source), DEFAULT_FILE) for source in options.sources if not is_git_url(source))
    if others:
        text = f"--file-name leaves out {counted(others, 'file')} named `{DEFAULT_FILE}`"
        report_note(text)  # guard: test files of another name are counted


def _load_error(suite: FoundSuite) -> tuple[str, ...]:
    if not suite.is_deprecated:
        return f"  Path: {suite.name}", f"    Error: {suite.without_clone(suite.error)}"
    text = f"test file {suite.name} uses a deprecated schema — please migrate to the latest format"
    warning = f"WARNING: {suite.name} lacks apiVersion, kind or metadata.name; `pyverno fix test` rewrites it"
    return warning, f"  Path: {suite.name}", f"    Error: {text}"


def _outcomes(suites: Sequence[FoundSuite], options: SuiteOptions) -> Iterator[SuiteOutcome]:
    jobs = [(suite, options) for suite in suites]
    with _executor(min(options.workers, len(jobs))) as executor:
        outcomes: Iterable[SuiteOutcome] = executor.map(_job, jobs) if executor else map(_job, jobs)
        # where the tables themselves appear one after the other, they are the progress
        yield from outcomes if STDOUT.isatty() else tracked(outcomes, len(jobs), "test suites")


@contextmanager
def _executor(workers: int) -> Iterator[Executor | None]:
    if workers <= 1:
        yield None
        return
    import multiprocessing
    import threading
    from concurrent.futures import ProcessPoolExecutor

    # a fork starts with everything imported, but is safe only without threads
    forks = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    method = "fork" if forks and sys.platform == "linux" else "spawn"
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context(method)) as executor:
        yield executor


def _write(judged: Sequence[tuple[FoundSuite, SuiteOutcome]], options: SuiteOptions) -> None:
    """Add the new rows to their files, last document first; raises UsageError where that cannot be done."""
    from pyverno.cli.test.write import add_rows
    from pyverno.offline.rewriting import encode_like, replace_file

    for suite, outcome in reversed(judged):
        if not outcome.new_rows or suite.test is None:
            continue
        if suite.clone:
            raise UsageError(f"--write changes files; `{suite.name}` is in a git repository that was cloned")
        written = suite.test.document
        documents = load_documents(read_file(suite.path), file=str(suite.path))
        current = next(each for each in documents if each.index == written.index)
        replace_file(suite.path, encode_like(add_rows(current, outcome.new_rows), read_file(suite.path)))
        number = len(outcome.new_rows)
        _print(options, f"Added {number} {'row' if number == 1 else 'rows'} to {suite.name}: review them")


def _measure(judged: Sequence[tuple[FoundSuite, SuiteOutcome]], options: SuiteOptions) -> Measures | None:
    """Return the measures that the flags request; None = none."""
    if not options.coverage and not options.mutate:
        return None
    from pyverno.cli.test.coverage import merged
    from pyverno.cli.test.measures import Measures

    coverage = merged(each for _, outcome in judged for each in outcome.coverage) if options.coverage else None
    mutants = _mutants(judged, options) if options.mutate else None
    return Measures(coverage, mutants)


def _mutants(judged: Sequence[tuple[FoundSuite, SuiteOutcome]], options: SuiteOptions) -> tuple[MutantOutcome, ...]:
    from pyverno.cli.test.mutation import Selection, merged_mutants

    suites = [suite for suite, outcome in judged if outcome.is_mutable]
    for suite, outcome in judged:
        if outcome.was_run and not outcome.is_mutable:
            report_warning(f"{suite.name}: no mutants are run, because the suite does not pass")
    # few suites are split into parts, so that all processes have work
    parts = -(-_PARTS * options.workers // len(suites)) if suites and options.workers > 1 else 1
    jobs = [
        (suite, options, Selection(options.max_mutants, options.seed, part, parts))
        for suite in suites
        for part in range(parts)
    ]
    with _executor(min(options.workers, len(jobs))) as executor:
        found = executor.map(_mutation_job, jobs) if executor else map(_mutation_job, jobs)
        return merged_mutants(each for own in tracked(found, len(jobs), "mutated suites") for each in own)


def _mutation_job(job: tuple[FoundSuite, SuiteOptions, Selection]) -> tuple[MutantOutcome, ...]:
    from pyverno.cli.test.mutation import run_mutants

    found, options, selection = job
    if found.test is None:
        return ()
    with opened_registries(options.registry) as registries:
        suite = load_suite(
            found.test, found.path.parent, registries=registries, roots=found.roots, looks_up=options.dns
        )
        return tuple(run_mutants(suite, options.selector.select(found.test.results), selection))


def _job(job: tuple[FoundSuite, SuiteOptions]) -> SuiteOutcome:
    return run_suite(*job)


def run_suite(found: FoundSuite, options: SuiteOptions) -> SuiteOutcome:
    """Load, judge and check one suite; an error that ends it is part of the outcome."""
    test = found.test
    if test is None:
        return SuiteOutcome(errors=(found.error,))
    asked = options.selector.select(test.results)
    if not asked and not options.write:
        without = ("the test has no results",) if options.strict and not test.results else ()
        return SuiteOutcome(vacuous=without, was_run=False)
    lines = [f"Loading test  ( {found.name} ) ..."]
    try:
        with opened_registries(options.registry) as registries:
            suite = load_suite(test, found.path.parent, lines.append, registries, found.roots, looks_up=options.dns)
            if options.coverage:
                suite.session.explanations = []
            judged = suite.judge()
        report_faults(result for each in judged for result in each.review.results)
        lines.append("  Checking results ...")
        rows = tuple(check_rows(suite, judged, asked))
        vacuous = tuple(vacuous_checks(suite, judged, rows, asked)) if options.strict else ()
        # --strict counts the rows among its checks
        unknown = (*(() if options.strict else unknown_names(suite, judged, rows, asked)), *unused_names(suite))
        coverage = _coverage(suite, judged, rows, asked, found) if options.coverage else ()
    except PyvernoError as error:
        parts = error.parts if isinstance(error, CombinedError) else (error,)
        texts = tuple(found.without_clone(str(part)) for part in parts)
        problems = tuple(found.problem_of(_cause(part)) for part in parts)
        return SuiteOutcome(lines=tuple(lines), errors=texts, problems=problems)
    except RecursionError:
        return _broken(found, lines, "a document is nested too deeply")
    except Exception as error:  # a bug ends one suite, and the run fails
        return _broken(found, lines, bug_text(error))
    errors = [*suite.errors, *missing_files(suite, rows)]
    return SuiteOutcome(
        lines=tuple(lines),
        rows=tuple(row for row in rows if row.outcome != IGNORED),
        unread=tuple(found.without_clone(f"failed to load resources ({error})") for error in errors),
        vacuous=tuple(found.without_clone(text) for text in vacuous),
        problems=tuple(found.problem_of(error) for error in errors),
        warnings=tuple(found.without_clone(text) for text in (*invalid_policies(suite), *unknown)),
        notes=tuple(reasons_not_found(suite, judged, rows)),
        coverage=coverage,
        new_rows=_new_rows(suite, judged) if options.write else (),
        is_mutable=not errors and not any(row.counts_as_failed for row in rows),
    )


def _broken(found: FoundSuite, lines: Sequence[str], text: str) -> SuiteOutcome:
    return SuiteOutcome(lines=tuple(lines), errors=(text,), problems=(found.problem_of(UsageError(text)),))


def _new_rows(suite: Suite, judged: Sequence[ReviewedManifest]) -> tuple[NewRow, ...]:
    from pyverno.cli.test.write import new_rows

    return new_rows(suite, judged)


def _coverage(
    suite: Suite,
    judged: Sequence[ReviewedManifest],
    rows: Sequence[Row],
    asked: Sequence[ExpectedResult],
    found: FoundSuite,
) -> tuple[PolicyCoverage, ...]:
    from pyverno.cli.test.coverage import coverage_of  # most runs measure nothing

    return coverage_of(suite, judged, rows, asked, found.name)


def _cause(error: PyvernoError) -> PyvernoError:
    """Return the wrapped error that has a location; the outer text names it."""
    inner = error.__cause__
    return inner if error.location is None and isinstance(inner, PyvernoError) else error


def _print(options: SuiteOptions, *lines: str) -> None:
    """Write progress and notes: with a machine-readable format stdout holds the results alone."""
    stream = STDERR if options.output_format else STDOUT
    stream.write("".join(f"{line}\n" for line in lines))


def _print_suite(suite: FoundSuite, outcome: SuiteOutcome, options: SuiteOptions, style: Style) -> None:
    if not outcome.was_run:
        return
    _print(options, *outcome.lines)
    for text in outcome.errors:
        STDOUT.flush()
        report_error(f"failed to run test {suite.name} ({text})")
    if outcome.errors:
        return
    for text in outcome.unread:
        STDOUT.flush()
        report_error(f"{suite.name}: {text}")
    if not options.fail_only:  # Kyverno: then one table at the end has all failures
        _print(options, "")
        if outcome.rows and not options.output_format:
            _print(options, _table(outcome.rows, style, options))
        _print(options, "")
    _print_remarks(suite, outcome)


def _print_remarks(suite: FoundSuite, outcome: SuiteOutcome) -> None:
    if outcome.warnings or outcome.notes:
        STDOUT.flush()
    for text in outcome.warnings:
        report_warning(f"{suite.name}: {text}")
    for text in outcome.notes:
        report_note(f"{suite.name}: {text}")


def _table(rows: Sequence[Row], style: Style, options: SuiteOptions) -> str:
    return table(rows, style, detailed=options.detailed_results, is_ascii=not can_show(STDOUT, BOX))


def _print_summary(
    totals: _Totals, failed: Sequence[Row], vacuous: Sequence[str], options: SuiteOptions, style: Style
) -> None:
    if vacuous:
        _print(options, "", f"Vacuous checks : {len(vacuous)}", *(f"  {line}" for line in vacuous))
    if not options.fail_only:
        _print(options, "", f"Test Summary: {totals.passed} tests passed and {totals.failed} tests failed", "")
        return
    _print(options, "", f"Test Summary: {totals.failed} out of {totals.passed + totals.failed} tests failed", "")
    if failed and not options.output_format:
        _print(options, "Aggregated Failed Test Cases : ", _table(failed, style, options))
