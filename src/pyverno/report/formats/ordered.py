"""Texts of results in the order of reports, compressed: by policy, rule and source, within a rule by object."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from pyverno.report.packed import Packed
from pyverno.report.policyreport import ReportEntry, result_order

__all__ = ["OrderedTexts"]

_OF_RULE = 3
"""The number of parts of `result_order` that are those of the rule."""


class OrderedTexts:
    """Takes the texts of results in any order; the order in which they are read is that of `result_order`."""

    def __init__(self) -> None:
        self._rules: dict[tuple[str | int, ...], tuple[array[int], Packed]] = {}
        self._objects: dict[tuple[str | int, ...], int] = {}

    def add(self, entry: ReportEntry, text: str) -> None:
        """Add the text of one result."""
        order = result_order(entry)
        rule, key = order[:_OF_RULE], order[_OF_RULE:]
        kept = self._rules.get(rule)
        if kept is None:
            kept = self._rules[rule] = array("L"), Packed()
        kept[0].append(self._objects.setdefault(key, len(self._objects)))
        kept[1].add(text)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def __iter__(self) -> Iterator[str]:
        keys = [*self._objects]
        for rule in sorted(self._rules):
            numbers, packed = self._rules[rule]
            texts = [*packed]
            for at in sorted(range(len(texts)), key=lambda at, numbers=numbers: keys[numbers[at]]):  # type: ignore[misc]
                yield texts[at]
