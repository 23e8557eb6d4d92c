"""One run of `pyverno apply`: read, review, print, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyverno.cli.apply.judge import JudgedResource, judge
from pyverno.cli.apply.load import Inputs, check_not_empty, load_inputs, open_session
from pyverno.cli.apply.options import ApplyOptions, check_options
from pyverno.cli.errors import report_error, report_note, report_warning, write_as_utf8
from pyverno.cli.faults import report_faults
from pyverno.cli.progress import tracked
from pyverno.errors import PyvernoError, UsageError
from pyverno.offline.files import Skipped
from pyverno.offline.session import Session
from pyverno.report.summary import Summary

if TYPE_CHECKING:
    from pyverno.compiler.lints.lint import Diagnostic

__all__ = ["exit_code", "run_apply"]


def run_apply(options: ApplyOptions) -> int:
    """Run the command and return its exit code; raises UsageError for unusable flags and companion files."""
    for text in check_options(options):
        report_warning(text)
    if options.is_machine_output:
        write_as_utf8()
    inputs = load_inputs(options)
    if options.cluster:
        from pyverno.cli.apply.cluster import cluster_session

        with cluster_session(options, inputs) as (live, session):
            return _run(options, live, session)
    if inputs.registry is None:
        return _run(options, inputs, open_session(inputs))
    from pyverno.cli.registries import opened_registries

    with opened_registries(inputs.registry) as registries:
        return _run(options, inputs, open_session(inputs, registries))


def _run(options: ApplyOptions, inputs: Inputs, session: Session) -> int:
    from pyverno.cli.apply.output import Output

    for text in (*inputs.warnings, *_scope_warnings(session), *_policy_warnings(session)):
        report_warning(text)
    lints = _lint(options, inputs, session)
    for diagnostic in lints:
        report_warning(str(diagnostic))
    output = Output(options, session, sys.stdout)
    if not options.is_kyverno:
        _report_skipped(inputs.skipped)
        if not options.allow_empty and not session.errors:
            check_not_empty(inputs, output.rules)
    problems: list[PyvernoError] = [*inputs.errors, *session.errors]
    for error in problems:
        report_error(error)
    output.header(len(inputs.manifests))
    judged: list[JudgedResource] = []
    summary = Summary(erred=output.refused if options.is_kyverno else len(problems))
    resources = judge(inputs, session, workers=options.workers, continue_on_fail=options.continue_on_fail)
    for item in tracked(resources, len(inputs.manifests), "resources"):
        judged.append(item)
        report_faults(item.results)
        summary.count_all(item.results, audit_warn=options.audit_warn)
        if item.problem:
            summary.erred += 1
            text = f"failed to apply policies on resource {item.ref.name} ({item.problem})"
            report_error(text)
            problems.append(UsageError(text, location=item.document.location()))
        output.changes(item)
    output.results(judged, summary, problems, lints)
    code, reason = exit_code(options, summary, has_problems=bool(problems))
    if reason:
        (sys.stderr if options.is_machine_output else sys.stdout).write(reason)
    return code


def _lint(options: ApplyOptions, inputs: Inputs, session: Session) -> Sequence[Diagnostic]:
    """Return what `pyverno lint` finds in the policies."""
    if options.no_lint or options.is_kyverno:
        return ()
    from pyverno.compiler.lints.run import lint_documents  # `--no-lint` does without

    return lint_documents(session.compilation.items, kinds=inputs.kinds, crds=inputs.crds)


_SHOWN = 5


def _report_skipped(skipped: Sequence[Skipped]) -> None:
    """Write how many files of folders are no manifests, and which ones."""
    if not skipped:
        return
    listed = ", ".join(f"{each.path} ({each.reason})" for each in skipped[:_SHOWN])
    more = f", and {len(skipped) - _SHOWN} more" if len(skipped) > _SHOWN else ""
    report_note(f"skipped {len(skipped)} {'file' if len(skipped) == 1 else 'files'}: {listed}{more}")


def _scope_warnings(session: Session) -> Iterator[str]:
    for item in session.compilation.items:
        written = item.written
        if written is not None and item.policy is not None and item.policy.info.namespace and not written.namespace:
            yield f"{item.policy.info.kind} `{written.name}` has no namespace, it counts as one of `default`"


def _policy_warnings(session: Session) -> Iterator[str]:
    for item in session.compilation.items:
        if item.written is not None:
            yield from (f"policy {item.written.name}: {text}" for text in item.warnings)


def exit_code(options: ApplyOptions, summary: Summary, *, has_problems: bool) -> tuple[int, str]:
    """Return the exit code and the line that explains it.

    >>> exit_code(ApplyOptions(warn_exit_code=3), Summary(warned=1), has_problems=False)
    (3, 'exit as warnExitCode is 3')
    """
    if summary.failed or summary.erred or has_problems:
        return 1, ""
    if summary.warned and options.warn_exit_code:
        return options.warn_exit_code, f"exit as warnExitCode is {options.warn_exit_code}"
    if options.warn_no_pass and not summary.passed:
        return options.warn_exit_code, "exit as no objects satisfied policy\n"
    return 0, ""
