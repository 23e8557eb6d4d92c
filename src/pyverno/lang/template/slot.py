"""One variable of a template: its compiled expression for each kind of request, and the errors of its evaluation.

Values of inner variables enter as placeholders, as data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyverno.errors import (
    BudgetExceededError,
    ContextEntryError,
    EvaluationError,
    ExpressionSyntaxError,
    PyvernoError,
    SubstitutionError,
)
from pyverno.kube.json import JSON
from pyverno.lang.runtime import Budget, Runtime
from pyverno.lang.template.location import place_expression, shown_path
from pyverno.lang.template.syntax import PLACEHOLDER, Occurrence
from pyverno.value import dataclass

if TYPE_CHECKING:
    from pyverno.lang.jmespath import Expression

__all__ = ["Query", "Slot", "byte_length", "compile_query", "compile_slot", "text_of"]

_OLD_OBJECT = ("request.object", "request.oldObject")


def text_of(value: JSON, budget: Budget) -> str:
    """Return a value as it is inserted into other text: strings as they are, everything else as compact JSON."""
    if isinstance(value, str):
        return value
    # imported here as everywhere in this module; a value that is no text came out of an expression
    from pyverno.lang.jmespath.values import text_of as written

    return written(value, budget)


def byte_length(text: str) -> int:
    """Return the length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Query:
    """An expression with its text; when it does not parse, `problem` is the error of every evaluation.

    `source` is the text as it is written, with nested variables in braces: what errors show, since the values of
    nested variables may be a Secret's. `offset` is that of the character at fault.
    """

    text: str
    expression: Expression | None
    problem: str = ""
    source: str = ""
    offset: int = 0

    def evaluate(self, scope: Mapping[str, JSON], runtime: Runtime, placeholders: Sequence[JSON], path: str) -> JSON:
        """Return the value; raises SubstitutionError with Kyverno's text, BudgetExceededError as it comes."""
        expression = self.expression
        if expression is None:
            raise self.failure(self.problem, path)
        try:
            return expression.evaluate(scope, runtime, placeholders)
        except BudgetExceededError:
            raise
        except ContextEntryError as error:
            raise self.failure(error.message, path, is_missing=error.is_missing) from error
        except EvaluationError as error:
            reason = f"JMESPath query failed: {error.message}"
            raise self.failure(reason, path, is_missing=error.is_missing) from error
        except PyvernoError as error:
            raise self.failure(error.message, path) from error
        except RecursionError as error:
            raise self.failure("the value is nested too deeply", path) from error

    def failure(self, reason: str, path: str, *, is_missing: bool = False) -> SubstitutionError:
        """Return the error that this variable cannot be resolved."""
        shown = self.source or self.text
        text = f"failed to resolve {shown} at path {shown_path(path)}: {reason}"
        return SubstitutionError(text, is_missing=is_missing)


def compile_query(text: str, source: str = "", *, is_data: bool = False) -> Query:
    """Compile the expression of a variable; never raises, a problem is reported on evaluation.

    Expressions of policies are remembered by their text; one that `is_data` is not.
    """
    source = source or text
    if not text:
        return Query(text, None, "invalid query (nil)")
    # imported here, because most templates hold no variables
    from pyverno.lang.jmespath import compile_expression, parse_expression

    try:
        return Query(text, parse_expression(text) if is_data else compile_expression(text), source=source)
    except (ExpressionSyntaxError, EvaluationError) as error:
        problem = PLACEHOLDER.sub("…", f"incorrect query {source}: {error.message}")
        offset = error.offset if isinstance(error, ExpressionSyntaxError) else 0
        return Query(text, None, problem, source, offset)


@dataclass(frozen=True, slots=True)
class Slot:
    """A variable at its place: one query for ordinary requests, one for DELETE, and `@` looks at `target` first."""

    query: Query
    delete: Query
    target: Query | None
    placeholders: tuple[int, ...]
    constant: str | None
    path: str

    def evaluate(
        self, scope: Mapping[str, JSON], runtime: Runtime, deleting: bool, prefix: str, values: Sequence[JSON]
    ) -> JSON:
        """Return the value; `values` are those of the earlier slots of the same string."""
        if self.constant is not None:
            return self.constant
        query = self.delete if deleting else self.query
        if self.target is not None and _has_target(scope):
            query = self.target
        return query.evaluate(scope, runtime, tuple([values[each] for each in self.placeholders]), prefix + self.path)


def _has_target(scope: Mapping[str, JSON]) -> bool:
    try:
        scope["target"]
    except KeyError:
        return False
    return True


def compile_slot(occurrence: Occurrence, path: str, *, is_data: bool = False) -> Slot:
    """Compile the variable at a path of its document; variables in data are not cached."""
    text = occurrence.text
    if occurrence.constant is not None:
        nothing = Query("", None)
        return Slot(nothing, nothing, None, (), occurrence.constant, path)
    target = None
    if text == "@":
        target = compile_query(place_expression(path, "target"))
        text = place_expression(path, "request.object")
    source = text if text != occurrence.text else occurrence.source
    query = compile_query(text, source, is_data=is_data)
    # COMPAT: Kyverno replaces plain text, wherever it is in the expression.
    on_delete = text.replace(*_OLD_OBJECT)
    delete = query if on_delete == text else compile_query(on_delete, source.replace(*_OLD_OBJECT), is_data=is_data)
    return Slot(query, delete, target, occurrence.placeholders, None, path)
