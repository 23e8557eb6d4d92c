"""Results of `pyverno apply` for machines: policy reports, exceptions, and findings in several formats.

`pyverno.report` makes their contents.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from pyverno.cli.apply.judge import JudgedResource
from pyverno.cli.apply.options import ApplyOptions
from pyverno.cli.apply.text import findings_of
from pyverno.cli.terminal import Stream, terminal_of
from pyverno.errors import NOWHERE
from pyverno.kube.json import JSON, encode
from pyverno.kube.resource import Resource
from pyverno.kube.time.duration import format_duration
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.session import Session
from pyverno.report.exceptions import exception_for
from pyverno.report.formats.mergedreports import merged_reports
from pyverno.report.formats.ordered import OrderedTexts
from pyverno.report.formats.registry import WRITERS
from pyverno.report.policyreport import ReportEntry
from pyverno.report.problem import Problem, problems_of
from pyverno.report.rendered import rendered

if TYPE_CHECKING:
    from pyverno.cli.apply.outcome import Outcome
    from pyverno.compiler.lints.lint import Diagnostic
    from pyverno.report.finding import Finding

__all__ = ["print_exceptions", "print_findings", "print_reports"]


def print_reports(options: ApplyOptions, judged: Iterable[JudgedResource], outcome: Outcome, stream: Stream) -> None:
    """Print the merged report of all cluster policies, then one report per namespaced policy."""
    lost = _losing(outcome)
    form = options.output_format
    stream.writelines(merged_reports(_entries(judged, outcome), form=form, audit_warn=options.audit_warn, lost=lost))


def print_exceptions(options: ApplyOptions, judged: Iterable[JudgedResource], outcome: Outcome, stream: Stream) -> None:
    """Print a PolicyException for every failing result of a cluster policy."""
    ttl = format_duration(options.ttl) if options.ttl > 0 else ""

    texts = OrderedTexts()

    def take(entry: ReportEntry) -> None:
        is_cluster = not entry.result.rule.policy.namespace
        exception = exception_for(entry, ttl=ttl, audit_warn=options.audit_warn) if is_cluster else None
        if exception is not None:
            texts.add(entry, f"---\n{_render(exception, options)}\n")

    for _ in rendered(_entries(judged, outcome), take, _losing(outcome)):
        pass
    stream.writelines(texts)


def print_findings(
    options: ApplyOptions,
    judged: Iterable[JudgedResource],
    session: Session,
    outcome: Outcome,
    stream: Stream,
    *,
    lints: Sequence[Diagnostic] = (),
) -> None:
    """Print every result with its locations, and the problems of the run, in the selected format.

    SARIF, the format of code scanning, also has the lints' findings in the policies.
    """
    found: Iterable[Finding] = findings_of(judged, session, outcome, audit_warn=options.audit_warn)
    if lints and options.format == "sarif":
        from pyverno.cli.lint.output import lint_findings  # few runs have any

        found = chain(found, lint_findings(lints, status="warn"))
    problems: list[Problem] = []

    def all_found() -> Iterator[Finding]:
        yield from found
        problems.extend(problems_of(outcome.problems))  # with those that arose meanwhile

    own = terminal_of(stream, options.format)
    own.writelines(WRITERS[options.format](all_found(), problems, outcome.lost_finding))


def _losing(outcome: Outcome) -> Callable[[ReportEntry, Exception], None]:
    def lost(entry: ReportEntry, error: Exception) -> None:
        rule = entry.result.rule
        outcome.lose(f"the result of `{rule.policy.key}/{rule.name}` for {entry.resource}", NOWHERE, error)

    return lost


def _entries(judged: Iterable[JudgedResource], outcome: Outcome) -> Iterator[ReportEntry]:
    now = int(time.time())

    def render(item: JudgedResource) -> tuple[ReportEntry, ...]:
        ref, uid = item.ref, Resource(item.manifest).uid
        return tuple([ReportEntry(result, ref, now, uid) for result in item.results])

    return chain.from_iterable(rendered(judged, render, outcome.lost_item))


def _render(value: JSON, options: ApplyOptions) -> str:
    return encode(value) if options.output_format == "json" else dump_yaml(value)
