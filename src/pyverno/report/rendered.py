"""Findings to texts, one by one, so that a bug in one of them leaves the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pyverno.report.finding import Finding

__all__ = ["Lost", "no_bug", "rendered"]

Lost: TypeAlias = "Callable[[Finding, Exception], None]"
"""Takes a finding that a format cannot write, and the bug; what it adds to the problems is still written."""

Item = TypeVar("Item")
Text = TypeVar("Text")


def no_bug(each: object, error: Exception) -> None:
    """Raise the bug: the caller has no other place for it."""
    raise error


def rendered(
    items: Iterable[Item], render: Callable[[Item], Text], lost: Callable[[Item, Exception], None]
) -> Iterator[Text]:
    """Yield what a format makes of each finding or entry; empty texts are left out.

    >>> from pyverno.engine.result import ResourceRef
    >>> from pyverno.report.finding import Finding
    >>> pod = ResourceRef("v1", "Pod", "", "a")
    >>> [*rendered([Finding("p", "r", pod, "fail"), Finding("q", "r", pod, "")], lambda each: each.status, no_bug)]
    ['fail']
    """
    for each in items:
        try:
            text = render(each)
        except Exception as error:  # a bug in one result costs that one
            lost(each, error)
        else:
            if text:
                yield text
