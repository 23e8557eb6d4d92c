"""Results of `pyverno apply` as text: findings that need attention with their locations, and with `-v` all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from pyverno.cli.apply.judge import PAYLOAD, JudgedResource
from pyverno.cli.apply.options import ApplyOptions
from pyverno.cli.style import Style
from pyverno.engine.result import Status
from pyverno.offline.session import Session
from pyverno.report.finding import Finding, finding
from pyverno.report.ruleplaces import RulePlaces
from pyverno.report.text import text_lines
from pyverno.value import replace

__all__ = ["findings_of", "print_text"]


_UNHAPPY = (Status.FAIL, Status.WARN, Status.ERROR)


def findings_of(judged: Iterable[JudgedResource], session: Session, *, audit_warn: bool) -> Iterator[Finding]:
    """Yield every result with its locations."""
    places = RulePlaces(session.compilation)
    for item in judged:
        ref = item.ref
        for result in item.results:
            blamed = None
            if item.blamed is not None:
                blamed = item.blamed.get((result.rule.policy.key, result.rule.name))
            if blamed is None and result.status in _UNHAPPY and result.target is None:
                blamed = session.blame(item.resource, result, is_payload=item.payload_kind == PAYLOAD)
            yield finding(
                result,
                ref,
                item.document,
                audit_warn=audit_warn,
                blamed=blamed,
                rule_location=places.of_result(result),
            )


def print_text(
    options: ApplyOptions, judged: Sequence[JudgedResource], session: Session, stream: TextIO, style: Style
) -> None:
    """Print the findings that need attention, with -v all results."""
    shown_of = judged if options.is_verbose else map(_unhappy, judged)
    found = findings_of(shown_of, session, audit_warn=options.audit_warn)
    shown = (each for each in found if options.is_verbose or each.is_problem)
    stream.writelines(f"{line}\n" for line in text_lines(shown, paint=style.role, most=options.max_results))


def _unhappy(item: JudgedResource) -> JudgedResource:
    """Return a resource without the results that passed: most of a large run."""
    results = tuple(result for result in item.results if result.status is not Status.PASS)
    return replace(item, results=results)
