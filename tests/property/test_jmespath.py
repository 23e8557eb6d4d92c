"""Laws of the JMESPath dialect: it agrees with the reference library where no key is missing, and never crashes."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.visitor import TreeInterpreter

from pyverno.errors import PyvernoError, UnknownKeyError
from pyverno.kube.json import equal
from pyverno.lang.jmespath import compile_expression, dump
from pyverno.lang.runtime import Budget, Runtime
from tests.property import inputs as st
from tests.property.inputs import Inputs, law

FAILED = object()

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -2.5]) | st.sampled_from("abc")
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.fixed_dictionaries({"a": inner, "b": inner, "c": inner}),
    max_leaves=20,
)
"""Every map has the same three keys, so that no expression below meets a missing one."""

NAMES = st.sampled_from(["a", "b", "c", '"a"'])
LITERALS = st.sampled_from(["`1`", "`1.0`", "`true`", "`null`", "'a'", '`[1, "a"]`', "`{}`", "`0`", "`[]`"])
INDICES = st.sampled_from(["[0]", "[-1]", "[*]", "[]"])
SLICES = st.sampled_from(["[1:]", "[::-1]", "[:2]"])
OPERATORS = st.sampled_from(["||", "&&", "|", "<", ">="])
# inside lists the library takes 1 and true for equal, so only plain values are compared
COMPARISONS = st.sampled_from(
    ["== `1`", "!= `1.0`", "== 'a'", "!= 'b'", "== `null`", "== `[]`", "!= `{}`", "== `true`"]
)
FUNCTIONS = st.sampled_from(["length", "type", "to_array", "reverse", "sort", "max", "not_null", "abs", "ceil"])


def larger(inner: Inputs[str]) -> Inputs[str]:
    """Combine expressions in the ways of the grammar."""
    return st.one_of(
        st.tuples(inner, NAMES).map(lambda pair: f"({pair[0]}).{pair[1]}"),
        st.tuples(inner, INDICES).map("".join),
        # right behind an index the library forgets that a slice projects, so a pipe is between
        st.tuples(inner, SLICES).map(lambda pair: f"({pair[0]} | @){pair[1]}"),
        st.tuples(inner, INDICES, NAMES).map(lambda parts: f"({parts[0]}){parts[1]}.{parts[2]}"),
        st.tuples(inner, OPERATORS, inner).map(lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"),
        st.tuples(inner, COMPARISONS).map(lambda pair: f"({pair[0]}) {pair[1]}"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]})[?{pair[1]}]"),
        st.tuples(inner, inner, NAMES).map(lambda parts: f"({parts[0]})[?{parts[1]}].{parts[2]}"),
        st.tuples(inner, inner).map(lambda pair: f"[{pair[0]}, {pair[1]}]"),
        st.tuples(inner, inner).map(lambda pair: f"{{x: {pair[0]}, y: {pair[1]}}}.[x, y]"),
        st.tuples(inner, inner).map(lambda pair: f"map(&({pair[0]}), to_array({pair[1]}))"),
        st.tuples(FUNCTIONS, inner).map(lambda pair: f"{pair[0]}({pair[1]})"),
        inner.map(lambda text: f"contains(to_array({text}), 'a')"),
        inner.map(lambda text: f"!({text})"),
        inner.map(lambda text: f"({text}).*"),
    )


EXPRESSIONS = st.recursive(NAMES | LITERALS | st.just("@"), larger, max_leaves=8)


class _Reference(TreeInterpreter):
    """The library without what it adds to the language: there, and in Go, only numbers have an order."""

    def visit_comparator(self, node: Any, value: Any) -> Any:
        found = super().visit_comparator(node, value)
        is_order = node["value"] not in ("eq", "ne")
        return (
            None if is_order and any(isinstance(self.visit(side, value), str) for side in node["children"]) else found
        )


@law(EXPRESSIONS, DOCUMENTS, few=400)
def test_it_agrees_with_the_reference_library_where_no_key_is_missing(text, document):
    """Same result; where the library fails, anything typed is accepted (the fork swallows some errors)."""
    before = copy.deepcopy(document)
    expression = compile_expression(text)
    try:
        expected = _Reference(jmespath.Options()).visit(jmespath.compile(text).parsed, document)
    except (JMESPathError, TypeError):
        expected = FAILED
    try:
        result = expression.evaluate(document, Runtime())
    except PyvernoError as error:
        assert expected is FAILED or (expected is None and isinstance(error, UnknownKeyError)), error
    else:
        assert expected is FAILED or equal(expected, result)
    assert equal(before, document)


PIECES = st.sampled_from(
    [
        *"abc.,:*@&|!<>=()[]{}'\"`\\-01 #\n",
        *("[?", "[]", "||", "&&", "`1`", "'x'", "length(", "sort_by(", "\ue0000\ue001", "random(", "regex_match("),
        *("parse_yaml(", "add(", "to_string(", "é", "\ue000", "\ue001", "items("),
    ]
)


@law(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=30), DOCUMENTS, few=400)
def test_no_text_and_no_document_crashes(text, document):
    """For any expression and document the answer is a value or a typed error."""
    try:
        expression = compile_expression(text)
    except PyvernoError:
        return
    assert dump(expression.ast).endswith("}\n")
    with suppress(PyvernoError):
        expression.evaluate(document, Runtime(budget=Budget(steps=10_000)), (document,))
