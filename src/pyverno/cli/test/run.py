"""Run the suites of `pyverno test` and print the results.

Each suite is run on its own, here or in a worker process, and gives text and rows; they are printed in the order in
which they were found, so that the output does not depend on the number of workers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from pyverno.cli.errors import report_error
from pyverno.cli.faults import report_faults
from pyverno.cli.progress import tracked
from pyverno.cli.style import Style, style_for
from pyverno.cli.test.check import IGNORED, Row, check_rows
from pyverno.cli.test.find import FoundSuite, find_suites
from pyverno.cli.test.options import SuiteOptions
from pyverno.cli.test.report import render, table
from pyverno.cli.test.strict import vacuous_checks
from pyverno.cli.test.suite import load_suite
from pyverno.errors import PyvernoError, UsageError
from pyverno.value import dataclass

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["SuiteOutcome", "run_suite", "run_tests"]


@dataclass(frozen=True, slots=True)
class SuiteOutcome:
    """The outcome of one suite: log lines, rows, unreadable files, and the error that ended it ("" = none)."""

    lines: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    unread: tuple[str, ...] = ()
    vacuous: tuple[str, ...] = ()
    error: str = ""
    was_run: bool = True


@dataclass(slots=True)
class _Totals:
    """The totals of a run."""

    passed: int = 0
    failed: int = 0
    vacuous: int = 0
    broken: int = 0
    unread: int = 0

    def error(self) -> str:
        """Return the text of the last line, "" when all is well."""
        parts = (
            (self.failed, f"{self.failed} tests failed"),
            (self.vacuous, f"{self.vacuous} vacuous checks found by --strict"),
            (self.broken, f"found {self.broken} errors after loading tests"),
            (self.unread, f"{self.unread} resource files could not be read"),
        )
        return ", ".join(text for count, text in parts if count)


def run_tests(options: SuiteOptions) -> int:
    """Run all suites and print the outcome; returns the exit code."""
    if options.selector_errors:
        _print("", "Filter errors:", *(f"  Error: {error}" for error in options.selector_errors))
    with ExitStack() as stack:
        try:
            suites = [
                suite
                for source in options.sources
                for suite in find_suites(source, options.file_name, options.git_branch, stack)
            ]
        except PyvernoError as error:
            _print("", f"Error loading tests: {error}")
            raise
        return _run(suites, options)


def _run(suites: Sequence[FoundSuite], options: SuiteOptions) -> int:
    bad = [suite for suite in suites if suite.test is None]
    if not suites:
        _print("", "No test yamls available")
        if options.require_tests:
            raise UsageError("no tests found")
        return 0
    if bad:
        _print("", "Test errors:")
        for suite in bad:
            _print(*_load_error(suite))
    style = style_for(sys.stdout, remove_color=options.remove_color or bool(options.output_format))
    totals = _Totals(broken=len(bad))
    good = [suite for suite in suites if suite.test is not None]
    failed: list[Row] = []
    vacuous: list[str] = []
    for suite, outcome in zip(good, _outcomes(good, options), strict=True):
        _print_suite(suite, outcome, options, style)
        failed += [row for row in outcome.rows if row.counts_as_failed]
        totals.passed += sum(not row.counts_as_failed for row in outcome.rows)
        totals.broken += bool(outcome.error)
        totals.unread += len(outcome.unread)
        vacuous += [f"{suite.name}: {text}" for text in outcome.vacuous]
    totals.failed, totals.vacuous = len(failed), len(vacuous)
    _print_summary(totals, failed, vacuous, options, style)
    error = totals.error()
    if error:
        sys.stdout.flush()
        report_error(error)
    return 1 if error else 0


def _load_error(suite: FoundSuite) -> tuple[str, ...]:
    if not suite.is_deprecated:
        return f"  Path: {suite.name}", f"    Error: {suite.shown(suite.error)}"
    text = f"test file {suite.name} uses a deprecated schema — please migrate to the latest format"
    warning = f"WARNING: {suite.name} lacks apiVersion, kind or metadata.name; `pyverno fix test` rewrites it"
    return warning, f"  Path: {suite.name}", f"    Error: {text}"


def _outcomes(suites: Sequence[FoundSuite], options: SuiteOptions) -> Iterator[SuiteOutcome]:
    jobs = [(suite, options) for suite in suites]
    with _executor(min(options.workers, len(jobs))) as executor:
        outcomes: Iterable[SuiteOutcome] = executor.map(_job, jobs) if executor else map(_job, jobs)
        # where the tables themselves appear one after the other, they are the progress
        yield from outcomes if sys.stdout.isatty() else tracked(outcomes, len(jobs), "test suites")


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


def _job(job: tuple[FoundSuite, SuiteOptions]) -> SuiteOutcome:
    return run_suite(*job)


def run_suite(found: FoundSuite, options: SuiteOptions) -> SuiteOutcome:
    """Load, judge and check one suite; an error that ends it is part of the outcome."""
    test = found.test
    if test is None:
        return SuiteOutcome(error=found.error)
    asked = options.selector.select(test.results)
    if not asked:
        without = ("the test has no results",) if options.strict and not test.results else ()
        return SuiteOutcome(vacuous=without, was_run=False)
    lines = [f"Loading test  ( {found.name} ) ..."]
    try:
        suite = load_suite(test, found.path.parent, lines.append)
        judged = suite.judge()
        report_faults(result for each in judged for result in each.review.results)
        lines.append("  Checking results ...")
        rows = tuple(check_rows(suite, judged, asked))
        vacuous = tuple(vacuous_checks(suite, judged, rows, asked)) if options.strict else ()
    except PyvernoError as error:
        return SuiteOutcome(lines=tuple(lines), error=found.shown(str(error)))
    except RecursionError:
        return SuiteOutcome(lines=tuple(lines), error="a document is nested too deeply")
    return SuiteOutcome(
        lines=tuple(lines),
        rows=tuple(row for row in rows if row.outcome != IGNORED),
        unread=tuple(found.shown(f"failed to load resources ({error})") for error in suite.errors),
        vacuous=tuple(found.shown(text) for text in vacuous),
    )


def _print(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _print_suite(suite: FoundSuite, outcome: SuiteOutcome, options: SuiteOptions, style: Style) -> None:
    if not outcome.was_run:
        return
    _print(*outcome.lines)
    if outcome.error:
        sys.stdout.flush()
        report_error(f"failed to run test {suite.name} ({outcome.error})")
        return
    for text in outcome.unread:
        sys.stdout.flush()
        report_error(f"{suite.name}: {text}")
    _print("")
    rows, detailed = outcome.rows, options.detailed_results
    if options.output_format:
        _print(render(rows, options.output_format, detailed=detailed))
    elif rows:
        _print(table(rows, style, detailed=detailed))
    _print("")


def _print_summary(
    totals: _Totals, failed: Sequence[Row], vacuous: Sequence[str], options: SuiteOptions, style: Style
) -> None:
    if vacuous:
        _print("", f"Vacuous checks : {len(vacuous)}", *(f"  {line}" for line in vacuous))
    if not options.fail_only:
        _print("", f"Test Summary: {totals.passed} tests passed and {totals.failed} tests failed", "")
        return
    _print("", f"Test Summary: {totals.failed} out of {totals.passed + totals.failed} tests failed", "")
    if not failed:
        return
    _print("Aggregated Failed Test Cases : ")
    if options.output_format:
        _print(render(failed, options.output_format, detailed=options.detailed_results))
    else:
        _print(table(failed, style, detailed=options.detailed_results))
