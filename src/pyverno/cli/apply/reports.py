"""Results of `pyverno apply` for machines: policy reports, exceptions, and findings in several formats.

`pyverno.report` makes their contents.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TextIO

from pyverno.cli.apply.judge import JudgedResource
from pyverno.cli.apply.options import ApplyOptions
from pyverno.cli.apply.text import findings_of
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON, encode
from pyverno.kube.resource import Resource
from pyverno.kube.time.duration import format_duration
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.session import Session
from pyverno.report.exceptions import exception_for
from pyverno.report.formats.registry import FORMATTERS
from pyverno.report.policyreport import ReportEntry, merged_reports, result_order
from pyverno.report.problem import problems_of

if TYPE_CHECKING:
    from pyverno.compiler.lints.lint import Diagnostic
    from pyverno.report.finding import Finding

__all__ = ["print_exceptions", "print_findings", "print_reports"]


def print_reports(options: ApplyOptions, judged: Sequence[JudgedResource], stream: TextIO) -> None:
    """Print the merged report of all cluster policies, then one report per namespaced policy."""
    reports = merged_reports([*_entries(judged)], audit_warn=options.audit_warn)
    for number, report in enumerate(reports):
        if number or report["kind"] == "PolicyReport":
            stream.write("---\n")
        stream.write(_render(report, options) + "\n")


def print_exceptions(options: ApplyOptions, judged: Sequence[JudgedResource], stream: TextIO) -> None:
    """Print a PolicyException for every failing result of a cluster policy."""
    entries = [entry for entry in _entries(judged) if not entry.result.rule.policy.namespace]
    ttl = format_duration(options.ttl) if options.ttl > 0 else ""
    for entry in sorted(entries, key=result_order):
        exception = exception_for(entry, ttl=ttl, audit_warn=options.audit_warn)
        if exception is not None:
            stream.write(f"---\n{_render(exception, options)}\n")


def print_findings(
    options: ApplyOptions,
    judged: Sequence[JudgedResource],
    session: Session,
    problems: Sequence[PyvernoError],
    stream: TextIO,
    *,
    lints: Sequence[Diagnostic] = (),
) -> None:
    """Print every result with its locations, and the problems of the run, in the selected format.

    SARIF, the format of code scanning, also has the lints' findings in the policies.
    """
    found: Iterable[Finding] = findings_of(judged, session, audit_warn=options.audit_warn)
    if lints and options.format == "sarif":
        from pyverno.cli.lint.output import lint_findings  # few runs have any

        found = chain(found, lint_findings(lints, status="warn"))
    stream.write(FORMATTERS[options.format](found, problems_of(problems)))


def _entries(judged: Iterable[JudgedResource]) -> Iterator[ReportEntry]:
    now = int(time.time())
    for item in judged:
        ref, uid = item.ref, Resource(item.manifest).uid
        for result in item.results:
            yield ReportEntry(result, ref, now, uid)


def _render(value: JSON, options: ApplyOptions) -> str:
    return encode(value) if options.output_format == "json" else dump_yaml(value)
