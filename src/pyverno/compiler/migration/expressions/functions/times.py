"""Functions on times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyverno.compiler.migration.expressions.functions.arguments import Translation, made, text_cel
from pyverno.compiler.migration.expressions.value import BOOLEAN, Value
from pyverno.compiler.migration.text import Cel, CelType, all_of, call, compare

if TYPE_CHECKING:
    from pyverno.compiler.migration.expressions.translator import Translator

__all__ = ["FUNCTIONS"]


def _timestamp(translator: Translator, name: str, value: Value) -> Cel:
    return call("timestamp", text_cel(translator, name, value), returns=CelType.TIMESTAMP)


def _order(name: str, operator: str) -> Translation:
    def translate(translator: Translator, left: Value, right: Value) -> Value:
        cel = compare(_timestamp(translator, name, left), operator, _timestamp(translator, name, right))
        return made(cel, BOOLEAN, left, right)

    return translate


def between(translator: Translator, time: Value, start: Value, end: Value) -> Value:
    """`time_between` holds between two times, not at them."""
    moment, first, last = (_timestamp(translator, "time_between", each) for each in (time, start, end))
    return made(all_of([compare(moment, ">", first), compare(moment, "<", last)]), BOOLEAN, time, start, end)


FUNCTIONS: Final[Mapping[str, Translation]] = {
    "time_before": _order("time_before", "<"),
    "time_after": _order("time_after", ">"),
    "time_between": between,
}
