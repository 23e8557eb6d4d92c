"""Explanations of a review's results: lines with places in the texts, and on request the smallest change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pyverno.engine.explain.explanation import Explanation
from pyverno.engine.explain.nodes import RuleTrace
from pyverno.engine.request import Operation
from pyverno.engine.result import Status
from pyverno.errors import Location, UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.offline.session import Session
from pyverno.report.explanation import Line, Places, change_lines, rule_lines
from pyverno.report.ruleplaces import RulePlaces
from pyverno.value import dataclass

__all__ = ["ChangeWanted", "explain_rules", "place_of", "read_change_wanted"]

_BAD: Final = (Status.FAIL, Status.ERROR, Status.WARN)
_MOST_LINES: Final = 500
"""Lines of one rule; the rest is counted."""


@dataclass(frozen=True, slots=True)
class ChangeWanted:
    """Names the result whose smallest change is searched: `resource` counts the resources of the text from 0."""

    resource: int
    policy: str
    rule: str


def read_change_wanted(request: JSONObject) -> ChangeWanted | None:
    """Return the result that `change` of a request names, None without one; raises UsageError for another form."""
    found = request.get("change")
    if found is None:
        return None
    match found:
        case {"resource": int(resource), "policy": str(policy), "rule": str(rule)}:
            return ChangeWanted(resource, policy, rule)
        case _:
            raise UsageError("`change` must name `resource` (a number), `policy` and `rule`")


def explain_rules(
    session: Session,
    document: Document,
    manifest: JSONObject,
    *,
    operation: Operation | None,
    old: JSONObject | None,
    change: ChangeWanted | None,
    rule_places: RulePlaces,
) -> list[JSONObject]:
    """Return the rules in the order in which they ran, each with its lines; those that did not match come last.

    Copies of rules for other kinds that do not match are left out. `change` names the result of this resource whose
    smallest change is searched.
    """
    places = Places(document.location, rule_places.find)
    return [
        _rule(explanation, trace, places, change)
        for explanation in session.explain(manifest, operation=operation, old=old)
        for trace in explanation.rules
        if trace.matched or not trace.rule.origin
    ]


def _rule(explanation: Explanation, trace: RuleTrace, places: Places, change: ChangeWanted | None) -> JSONObject:
    info = trace.rule
    found: JSONObject = {
        "policy": info.policy.key,
        "kind": info.policy.kind,
        "rule": info.name,
        "matched": trace.matched,
        "isOld": trace.is_old,
        "statuses": [each.status.value for each in trace.results],
        "lines": [*_lines(rule_lines(trace, places))],
    }
    if change is not None and (change.policy, change.rule) == (info.policy.key, info.name):
        failed = next((result for result in trace.results if result.status in _BAD), None)
        if failed is not None:
            found["change"] = [*_lines(change_lines(explanation.change(failed), places))]
    return found


def _lines(lines: Iterable[Line]) -> Iterator[JSON]:
    left = 0
    for number, line in enumerate(lines):
        if number >= _MOST_LINES:
            left += 1
            continue
        place = None if line.place is None or not line.place.line else place_of(line.place)
        yield {"depth": line.depth, "text": line.text, "word": line.word.lower(), "place": place}
    if left:
        yield {"depth": 1, "text": f"({left} more lines are left out)", "word": "", "place": None}


def place_of(location: Location) -> JSONObject:
    """Return a location as JSON: the name of the text, line and column."""
    return {"input": location.file, "line": location.line, "column": location.column}
