"""The regex library of cel-go: `regex.replace`, `regex.extract`, `regex.extractAll`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.declarations import CallCost, Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.libraries.costs import value_size
from pyverno.lang.cel.regex import Match, Pattern
from pyverno.lang.cel.runtime.evaluation import ITEM_BYTES, Evaluation
from pyverno.lang.cel.values import NONE, Optional, Value
from pyverno.lang.cel.work import reading

__all__ = ["REGEX_EXTRACTION"]

CHARACTERS_PER_STEP: Final = 4


def _search_cost(extra: int, *, rounds_up: bool) -> CallCost:
    def cost(args: tuple[Value, ...], result: Value) -> int:
        search = (value_size(args[0]) + 1) * 0.1 * ((value_size(args[1]) + 1) * 0.25)
        total = 1 + search + value_size(result) + extra
        return math.ceil(total) if rounds_up else int(total)

    return cost


def _single_group(pattern: Pattern) -> None:
    if pattern.groups > 1:
        problem = "regular expression has more than one capturing group"
        raise OperandError(problem, f'{problem}: "{pattern.text}"')


@function(
    "regex.replace",
    "(string, string, string) -> string",
    "(string, string, string, int) -> string",
    cost=_search_cost(0, rounds_up=False),
    in_context=True,
    pattern=1,
    work=reading(),
)
def replace(evaluation: Evaluation, text: str, regex: str, replacement: str, count: int = -1) -> str:
    """The text with matches replaced; `\\1` in the replacement is the first group.

    CEL: regex.replace('foo bar', '(fo)o (ba)r', r'\\2 \\1') ⇒ 'ba fo'
    """
    pattern = evaluation.pattern("regex.replace", regex, text)
    if count == 0:
        return text
    parts: list[str] = []
    last = size = 0
    budget = evaluation.runtime.budget
    for done, match in enumerate(pattern.matches(text, budget)):
        if 0 < count <= done:
            break
        budget.charge_steps(len(replacement) // CHARACTERS_PER_STEP)
        piece = "".join(_filled(replacement, match, pattern.groups))
        size += len(piece)
        if len(text) + size > budget.text_bytes:
            evaluation.produce(len(text) + size)
        budget.produce(ITEM_BYTES + len(piece))
        parts += [text[last : match.start()], piece]
        last = match.end()
    return "".join([*parts, text[last:]])


def _filled(replacement: str, match: Match, groups: int) -> Iterator[str]:
    position = 0
    while position < len(replacement):
        char = replacement[position]
        position += 1
        if char != "\\":
            yield char
            continue
        if position >= len(replacement):
            raise _invalid(replacement, "\\ not allowed at end")
        follower = replacement[position]
        position += 1
        if follower == "\\":
            yield "\\"
        elif follower not in "0123456789":
            raise _invalid(replacement, "\\ must be followed by a digit or \\")
        elif int(follower) > groups:
            problem = f"but regex has only {groups} group(s)"
            raise OperandError(
                f"replacement string references a group {problem}",
                f"replacement string references group {follower} {problem}",
            )
        else:
            yield match.group(int(follower)) or ""


def _invalid(replacement: str, problem: str) -> EvaluationError:
    return OperandError(
        f"invalid replacement string: {problem}", f"invalid replacement string: '{replacement}' {problem}"
    )


@function(
    "regex.extract",
    "(string, string) -> optional(string)",
    cost=_search_cost(0, rounds_up=True),
    metered=True,
    pattern=1,
    work=reading(),
)
def extract(evaluation: Evaluation, text: str, regex: str) -> Optional:
    """The first match, or its group when the pattern has one.

    CEL: regex.extract('item-A, item-B', 'item-(\\\\w+)').value() ⇒ 'A'
    """
    pattern = evaluation.pattern("regex.extract", regex, text)
    _single_group(pattern)
    match = pattern.search(text)
    if match is None:
        return NONE
    if pattern.groups == 0:
        return Optional(match.group(0))
    found = match.group(1)
    return Optional(found) if found else NONE


@function(
    "regex.extractAll",
    "(string, string) -> list(string)",
    cost=_search_cost(10, rounds_up=True),
    metered=True,
    pattern=1,
    work=reading(),
)
def extract_all(evaluation: Evaluation, text: str, regex: str) -> list[str]:
    """All matches, or their groups when the pattern has one.

    CEL: regex.extractAll('id:1, id:2', 'id:(\\\\d)') ⇒ ['1', '2']
    """
    pattern = evaluation.pattern("regex.extractAll", regex, text)
    _single_group(pattern)
    budget = evaluation.runtime.budget
    parts: list[str] = []
    for match in pattern.matches(text, budget):
        part = match.group(pattern.groups)
        if part or pattern.groups == 0:
            parts.append(part or "")
            budget.produce(ITEM_BYTES + len(part or ""))
    return parts


REGEX_EXTRACTION: Final = Library(
    "regex",
    (replace, extract, extract_all),
    introduced="1.19 (Kyverno)",
    doc="Replacing and extracting by regular expressions.",
)
