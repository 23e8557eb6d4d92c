"""Lowering of the head that every foreach has: which elements it goes over, with what variables, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyverno.compiler.parser import Parser, lower_preconditions
from pyverno.compiler.rules.context import data_names, lower_context
from pyverno.engine.actions.elements import Elements

if TYPE_CHECKING:
    from pyverno.policy.generate import GenerateForeach
    from pyverno.policy.mutate import MutateForeach
    from pyverno.policy.validate import ValidateForeach

__all__ = ["lower_elements"]


def lower_elements(
    each: ValidateForeach | MutateForeach | GenerateForeach, parser: Parser, *, depth: int = 0
) -> Elements | None:
    """Compile list, context and preconditions of a foreach at a depth; None, reported, when there is no list."""
    query = parser.query(each.elements, (*each.path, "list"))
    if query is None:
        if not each.elements:
            parser.report("foreach.list is required", (*each.path, "list"), code="foreach")
        return None
    parser.data = data_names(each.context, parser.data)
    return Elements(
        query,
        lower_context(each.context, parser),
        lower_preconditions(each.preconditions, parser, (*each.path, "preconditions")),
        depth,
    )
