"""A JMESPath expression without surrounding text (`jmesPath`, `list`), in which `{{ variables }}` may be nested.

Values of nested variables are data: they fill placeholders of the compiled expression and are never parsed. This module
must never scan the value of a variable.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.errors import ExpressionSyntaxError, SubstitutionError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath import Expression, compile_expression
from pyverno.lang.runtime import Runtime
from pyverno.lang.template.slot import Query
from pyverno.lang.template.syntax import parse_string
from pyverno.value import dataclass

__all__ = ["ExpressionText", "compile_expression_text"]

_OLD_OBJECT = ("request.object", "request.oldObject")


@dataclass(frozen=True, slots=True)
class ExpressionText:
    """A compiled expression; `inner` are the nested variables with the numbers of the placeholders they read and fill.

    `on_delete` is the same query with `request.object` read as `request.oldObject`, None when it does not mention it.
    `by_name` is there when the text is one variable as a whole: it reads the key that the value of the variable names.
    """

    text: str
    expression: Expression
    inner: tuple[tuple[Query, tuple[int, ...]], ...] = ()
    placeholders: tuple[int, ...] = ()
    on_delete: ExpressionText | None = None
    by_name: Expression | None = None

    @property
    def is_variable(self) -> bool:
        """Whether the text is one variable as a whole."""
        return self.by_name is not None

    def evaluate(
        self, data: JSON, scope: Mapping[str, JSON], runtime: Runtime, *, delete_request: bool = False
    ) -> JSON:
        """Evaluate on `data`; nested variables are looked up in `scope`.

        Raises UnknownKeyError for a missing key at the top, EvaluationError otherwise.
        """
        if delete_request and self.on_delete is not None:
            return self.on_delete.evaluate(data, scope, runtime)
        if not self.inner:
            return self.expression.evaluate(data, runtime)
        values: list[JSON] = []
        for query, placeholders in self.inner:
            assert query.expression is not None  # noqa: S101 - what does not compile is refused at load
            values.append(
                query.expression.evaluate(scope, runtime, [values[placeholder] for placeholder in placeholders])
            )
        return self.expression.evaluate(data, runtime, [values[placeholder] for placeholder in self.placeholders])

    def substitute(self, scope: Mapping[str, JSON], runtime: Runtime, *, delete_request: bool = False) -> None:
        """Look the nested variables up; raises SubstitutionError for one that cannot be resolved."""
        if delete_request and self.on_delete is not None:
            return self.on_delete.substitute(scope, runtime)
        values: list[JSON] = []
        for query, placeholders in self.inner:
            values.append(query.evaluate(scope, runtime, [values[placeholder] for placeholder in placeholders], ""))
        return None


def compile_expression_text(text: str) -> ExpressionText:
    """Compile the text of a query; raises ExpressionSyntaxError.

    >>> compile_expression_text("a.b").evaluate({"a": {"b": 1}}, {}, Runtime())
    1
    """
    query = _compile(text)
    if _OLD_OBJECT[0] in text:
        # Kyverno: on DELETE the text `request.object` of any query means `request.oldObject`
        other = _compile(text.replace(*_OLD_OBJECT))
        return ExpressionText(query.text, query.expression, query.inner, query.placeholders, other, query.by_name)
    return query


def _compile(text: str) -> ExpressionText:
    if "{{" not in text:
        return ExpressionText(text, compile_expression(text))
    try:
        parsed = parse_string(text)
    except SubstitutionError as error:
        raise ExpressionSyntaxError(error.message) from error
    inner = []
    for number, occurrence in enumerate(parsed.occurrences):
        if occurrence.constant is not None:
            raise ExpressionSyntaxError(f"unexpected character in `{text}`", offset=text.index(occurrence.constant))
        try:
            query = Query(occurrence.text, compile_expression(occurrence.text), source=occurrence.source)
        except ExpressionSyntaxError as error:
            from pyverno.lang.template.positions import VariablePositions  # only for what is reported

            offset = VariablePositions(text).find(number, error.offset)
            raise ExpressionSyntaxError(error.message, offset=offset) from error
        inner.append((query, occurrence.placeholders))
    if parsed.whole is not None:
        query, placeholders = inner[parsed.whole]
        assert query.expression is not None  # noqa: S101 - compiled above
        by_name = compile_expression(_placeholder(0))
        return ExpressionText(text, query.expression, tuple(inner), placeholders, by_name=by_name)
    outer: list[str] = []
    numbers: list[int] = []
    for part in parsed.parts:
        if isinstance(part, int):
            outer.append(_placeholder(len(numbers)))
            numbers.append(part)
        else:
            outer.append(part)
    try:
        whole = compile_expression("".join(outer))
    except ExpressionSyntaxError as error:
        from pyverno.lang.template.positions import find_outer_offset  # only for what is reported

        raise ExpressionSyntaxError(error.message, offset=find_outer_offset(text, error.offset)) from error
    return ExpressionText(text, whole, tuple(inner), tuple(numbers))


def _placeholder(number: int) -> str:
    return f"\ue000{number}\ue001"
