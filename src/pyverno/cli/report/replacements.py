"""Results of a policy beside those of its replacements: objects that only one side has a problem with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyverno.errors import UsageError
from pyverno.report.collected import Collected
from pyverno.report.table import draw_table
from pyverno.value import dataclass

__all__ = ["Replacement", "compare_replacement", "read_replacements"]

_HEADERS = ("NAMED BY", "NAMESPACE", "RESOURCE", "MESSAGE")
_LONGEST = 120

ObjectKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Replacement:
    """A policy, and the policies that replace it."""

    old: str
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    """The objects with results of some policies, and one problem of each object that has any."""

    judged: frozenset[ObjectKey]
    problems: dict[ObjectKey, Collected]


def read_replacements(texts: Iterable[str]) -> tuple[Replacement, ...]:
    """Read `OLD=NEW` or `OLD=NEW+NEW`; raises UsageError for another form.

    >>> read_replacements(["a=a-x+a-y"])
    (Replacement(old='a', new=('a-x', 'a-y')),)
    """
    found = []
    for text in texts:
        old, _, new = text.partition("=")
        names = tuple(each for each in new.split("+") if each)
        if not old or not names:
            raise UsageError(f'invalid argument "{text}" for "--diff" flag: expected OLD=NEW or OLD=NEW+NEW')
        found.append(Replacement(old, names))
    return tuple(found)


def compare_replacement(replacement: Replacement, results: Sequence[Collected]) -> tuple[str, bool]:
    """Return the differences as text, and whether both sides judged objects and have problems with the same ones."""
    # a policy and its replacement may share a name; then the source tells them apart
    shares_name = replacement.old in replacement.new
    old = _side(
        each for each in results if each.finding.policy == replacement.old and not (shares_name and _is_cel(each))
    )
    new = _side(
        each
        for each in results
        if each.finding.policy in replacement.new and (_is_cel(each) or each.finding.policy != replacement.old)
    )
    names = " and ".join(replacement.new)
    head = f"{replacement.old} and {names}: "
    empty = [name for name, side in ((replacement.old, old), (f"new {names}", new)) if not side.judged]
    if empty:
        return f"{head}no results of {' or '.join(empty)}, nothing was compared\n", False
    rows = [_row("old", old.problems[key]) for key in sorted(old.problems.keys() - new.problems.keys())]
    rows += [_row("new", new.problems[key]) for key in sorted(new.problems.keys() - old.problems.keys())]
    both = len(old.problems.keys() & new.problems.keys())
    if not rows:
        return f"{head}problems of the same {both} objects, among {len(old.judged | new.judged)}\n", True
    return f"{head}{len(rows)} objects differ, {both} are named by both\n\n{draw_table(_HEADERS, rows)}\n", False


def _is_cel(each: Collected) -> bool:
    """Return whether a result is of a policy in CEL: Kyverno names the kind in the source."""
    return each.source.casefold() not in ("", "kyverno")


def _side(results: Iterable[Collected]) -> _Side:
    judged: set[ObjectKey] = set()
    problems: dict[ObjectKey, Collected] = {}
    for each in results:
        found = each.finding.resource
        key = (found.namespace, found.kind, found.name)
        judged.add(key)
        if each.finding.is_problem:
            problems.setdefault(key, each)
    return _Side(frozenset(judged), problems)


def _row(side: str, each: Collected) -> tuple[str, ...]:
    found = each.finding
    message = found.message if len(found.message) <= _LONGEST else f"{found.message[: _LONGEST - 1]}…"
    return side, found.resource.namespace, f"{found.resource.kind}/{found.resource.name}", message
