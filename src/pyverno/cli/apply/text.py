"""Results of `pyverno apply` for people: what needs attention with its places, and with `-v` everything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from pyverno.cli.apply.judge import JudgedResource
from pyverno.cli.apply.options import ApplyOptions
from pyverno.cli.style import Style
from pyverno.engine.result import Status
from pyverno.report.finding import Finding, finding
from pyverno.report.text import text_lines

__all__ = ["findings_of", "print_text"]


def findings_of(judged: Iterable[JudgedResource], *, audit_warn: bool) -> Iterator[Finding]:
    """Yield every result with its locations."""
    for item in judged:
        ref = item.ref
        for result in item.results:
            yield finding(result, ref, item.document, audit_warn=audit_warn)


def print_text(options: ApplyOptions, judged: Sequence[JudgedResource], stream: TextIO, style: Style) -> None:
    """Print what needs attention, with -v all results."""
    found = findings_of(judged if options.is_verbose else map(_unhappy, judged), audit_warn=options.audit_warn)
    shown = (each for each in found if options.is_verbose or each.is_problem)
    stream.writelines(f"{line}\n" for line in text_lines(shown, paint=style.role, most=options.max_results))


def _unhappy(item: JudgedResource) -> JudgedResource:
    """Return a resource without the results that passed: most of a large run."""
    results = tuple(result for result in item.results if result.status is not Status.PASS)
    return JudgedResource(item.document, item.manifest, item.resource, results, item.problem, item.payload_kind)
