"""Lists that an expression makes by loops over others: projections, filters and flattening, as CEL macros.

A sequence is kept as its loops until a consumer is known, so that `length(list[?x]) > 0` becomes `exists` and no list
is built. Each loop binds a variable to the elements of a source (or to the keys of a map) that fulfil a condition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyverno.compiler.migration.text import TRUE, Cel, CelType, Level, all_of, any_of, call, compare, literal
from pyverno.value import dataclass

if TYPE_CHECKING:
    from pyverno.compiler.migration.expressions.value import Value

__all__ = ["Loop", "Sequence"]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """One variable over one source: an expression for a list or map, and what its elements must fulfil.

    `strict` is the source where it must exist; `source` is empty where it does not. With `is_map` the source is a map
    and the variable one of its keys.
    """

    variable: str
    source: Cel
    strict: Cel
    condition: Cel = TRUE
    is_map: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """Loops, each inside the one before it, and what the innermost one gives."""

    loops: tuple[Loop, ...]
    element: Value

    def exists(self, test: Callable[[Value], Cel]) -> Cel:
        """Return whether some element passes a test."""
        body = all_of([self.element.present, test(self.element)])
        for loop in reversed(self.loops):
            inner = all_of([loop.condition, body])
            if inner.text == "false":
                return inner
            if inner.text == "true":
                body = compare(call("size", loop.source, returns=CelType.INT), ">", literal(0))
            else:
                body = loop.source.macro("exists", loop.variable, inner)
        return body

    def includes(self, wanted: Cel) -> Cel | None:
        """Return whether a value is one of the elements, where these are those of the innermost source; else None."""
        last = self.loops[-1]
        if last.condition.text != "true" or self.element.cel.text != last.variable or not self.element.is_always:
            return None
        body = compare(wanted, "in", last.source)
        for loop in reversed(self.loops[:-1]):
            body = loop.source.macro("exists", loop.variable, all_of([loop.condition, body]))
        return body

    def all(self, test: Callable[[Value], Cel]) -> Cel:
        """Return whether every element passes a test."""
        body = any_of([self.element.present.not_(), test(self.element)])
        for loop in reversed(self.loops):
            inner = any_of([loop.condition.not_(), body])
            if inner.text == "true":
                return inner
            body = loop.source.macro("all", loop.variable, inner)
        return body

    def written(self, *, total: bool) -> Cel:
        """Return the list; without `total` a missing outermost source is an error, and not an empty list."""
        last = len(self.loops) - 1
        body: Cel | None = None
        for number in range(last, -1, -1):
            loop = self.loops[number]
            source = loop.strict if number == 0 and not total else loop.source
            if number == last:
                condition = all_of([loop.condition, self.element.present])
                body = _map(loop, source, condition, self.element.cel)
            else:
                assert body is not None  # noqa: S101 - made by the round before
                body = _map(loop, source, loop.condition, body).method("flatten", returns=CelType.LIST)
        assert body is not None  # noqa: S101 - there is at least one loop
        return body


def _map(loop: Loop, source: Cel, condition: Cel, element: Cel) -> Cel:
    if element.text == loop.variable and not loop.is_map:
        if condition.text == "true":
            return source
        return source.macro("filter", loop.variable, condition, CelType.LIST)
    inner = element.text if condition.text == "true" else f"{condition.text}, {element.text}"
    return Cel(f"{source.within(Level.PRIMARY)}.map({loop.variable}, {inner})", CelType.LIST)
