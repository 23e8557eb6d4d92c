"""Kubernetes' library of regular expressions: find, findAll."""

from __future__ import annotations

from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.libraries.costs import by_regex
from pyverno.lang.cel.regex import Pattern
from pyverno.lang.cel.runtime.evaluation import ITEM_BYTES, Evaluation
from pyverno.lang.cel.work import instant

__all__ = ["REGEX_FIND"]


def _pattern(evaluation: Evaluation, function: str, text: str, subject: str) -> Pattern:
    try:
        return evaluation.pattern(function, text, subject)
    except EvaluationError as error:
        raise OperandError(f"Illegal regex: {error.message}", f"Illegal regex: {error.detailed}") from None


@function("find", "string.(string) -> string", cost=by_regex(), metered=True, pattern=1, work=instant)
def find(evaluation: Evaluation, text: str, pattern: str) -> str:
    """The first match of a pattern, empty when there is none.

    CEL: 'abc 123'.find('[0-9]+') ⇒ '123'
    """
    match = _pattern(evaluation, "find", pattern, text).search(text)
    return (match.group(0) or "") if match is not None else ""


@function(
    "findAll",
    "string.(string) -> list(string)",
    "string.(string, int) -> list(string)",
    cost=by_regex(),
    metered=True,
    pattern=1,
    work=instant,
)
def find_all(evaluation: Evaluation, text: str, pattern: str, limit: int = -1) -> list[str]:
    """The matches of a pattern, at most `limit` of them when that is not negative.

    CEL: 'a1b22'.findAll('[0-9]+', 1) ⇒ ['1']
    """
    found: list[str] = []
    budget = evaluation.runtime.budget
    for match in _pattern(evaluation, "findAll", pattern, text).matches(text, budget):
        if len(found) == limit:
            break
        found.append(match.group(0) or "")
        budget.produce(ITEM_BYTES + match.end() - match.start())
    return found


REGEX_FIND: Final = Library(
    "kubernetes.regex", (find, find_all), introduced="1.0", doc="Finding by regular expressions."
)
