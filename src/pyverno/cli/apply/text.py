"""Results of `pyverno apply` as text: findings that need attention with their locations, and with `-v` all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyverno.cli.apply.judge import PAYLOAD, JudgedResource
from pyverno.cli.apply.options import ApplyOptions
from pyverno.cli.style import Style
from pyverno.engine.result import ResourceRef, RuleResult, Status
from pyverno.offline.session import Session
from pyverno.report.finding import Finding, finding
from pyverno.report.ruleplaces import RulePlaces
from pyverno.report.text import text_lines

if TYPE_CHECKING:
    from pyverno.cli.apply.outcome import Outcome

__all__ = ["findings_of", "lines_of"]


_UNHAPPY = (Status.FAIL, Status.WARN, Status.ERROR)


def findings_of(
    judged: Iterable[JudgedResource],
    session: Session,
    outcome: Outcome,
    *,
    audit_warn: bool,
    only_unhappy: bool = False,
) -> Iterator[Finding]:
    """Yield every result with its locations, with `only_unhappy` those that did not pass."""
    places = RulePlaces(session.compilation)
    for item in judged:
        ref: ResourceRef | None = None
        for result in item.results:
            if only_unhappy and result.status is Status.PASS:
                continue
            try:
                ref = ref or item.ref
                found = _finding(item, ref, result, session, places, audit_warn=audit_warn)
            except Exception as error:  # a bug in one result costs that one
                rule = f"`{result.rule.policy.key}/{result.rule.name}`"
                outcome.lose(f"a result of {rule} for `{item.name}`", item.document.location(), error)
            else:
                yield found


def _finding(
    item: JudgedResource,
    ref: ResourceRef,
    result: RuleResult,
    session: Session,
    places: RulePlaces,
    *,
    audit_warn: bool,
) -> Finding:
    blamed = None
    if item.blamed is not None:
        blamed = item.blamed.get((result.rule.policy.key, result.rule.name))
    if blamed is None and result.status in _UNHAPPY and result.target is None:
        blamed = session.blame(item.resource, result, is_payload=item.payload_kind == PAYLOAD)
    location = places.of_result(result)
    return finding(result, ref, item.document, audit_warn=audit_warn, blamed=blamed, rule_location=location)


def lines_of(
    options: ApplyOptions, judged: Iterable[JudgedResource], session: Session, outcome: Outcome, style: Style
) -> Iterator[str]:
    """Yield the lines of the findings that need attention, with -v of all results, after all resources were judged."""
    is_verbose = options.is_verbose
    found = findings_of(judged, session, outcome, audit_warn=options.audit_warn, only_unhappy=not is_verbose)
    lines = text_lines(
        found, paint=style.role, most=options.max_results, only_problems=not is_verbose, lost=outcome.lost_finding
    )
    yield from (f"{line}\n" for line in lines)
