"""Whether the value of an expression can hold text of a variable: never said of one that does."""

from __future__ import annotations

from itertools import product

import pytest

from pyverno.errors import EvaluationError, ExpressionSyntaxError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.jmespath.origins import can_hold
from pyverno.lang.runtime import Runtime

CANARY = "canary"
SCOPE: dict[str, JSON] = {
    "taken": {"a": CANARY, "list": [CANARY, "x"], "map": {CANARY: "x"}, "a-b": CANARY},
    "own": {"a": "policy", "list": ["x", {"name": CANARY[:3]}], "map": {"a": "b"}},
    "a": "root",
}
ATOMS = ["taken.a", "taken", "own.a", "own.list", "'text'", "@", "taken.list[0]", "\ue0000\ue001", "'\ue0000\ue001'",
         '`["\ue0000\ue001"]`', "`[\ue0000\ue001]`", "*"]  # fmt: skip
FORMS = [
    "{0} || {1}", "{0} && {1}", "!{0}", "{0} == {1}", "[{0}, {1}]", "{{k: {0}, l: {1}}}", "{0} | {1}", "{0} | a",
    "{0} | @.a", "({0}).a", "({0})[0]", "({0})[1:]", "({0})[].name", "({0})[*]", "({0}).*", "({0})[?@ == {1}]",
    "own[?{0}]", "own.list[?name == {0}].name", "own.\ue0000\ue001", "taken.\ue0000\ue001", "own.\"\ue0000\ue001\"",
    "join('', [to_string({0}), to_string({1})])", "map(&to_string(@), [{0}, {1}])", "max_by([{0}], &to_string({1}))",
    "not_null({0}, {1})", "lookup({0}, {1})", "keys({0})", "values({0})", "merge({{k: {0}}}, {{l: {1}}})",
    "to_array({0})",
    "items({0}, 'k', 'v')", "object_from_lists([to_string({0})], [{1}])", "replace_all({0}, 'a', {1})", "length({0})",
    "split({0}, {1})", "contains({0}, {1})", "regex_replace_all('a', {0}, {1})", "sort_by([{0}], &to_string(@))",
    "{{\ue0000\ue001: {0}}}", "[{0}, [{1}]][]", "own.[{0}]", "type({0})", "`{{\"a\": \"\ue0000\ue001\"}}`.a",
]  # fmt: skip


def texts(value: JSON) -> str:
    """Return all that a value holds, as one text."""
    if isinstance(value, dict):
        return " ".join(f"{key} {texts(item)}" for key, item in value.items())
    return " ".join(map(texts, value)) if isinstance(value, list) else str(value)


PAIRS = [*((atom, "own.a") for atom in ATOMS), *(("own.a", atom) for atom in ATOMS)]


@pytest.mark.parametrize("outer", ["{0}", *(form for form in FORMS if "{0}" in form)])
def test_what_holds_a_text_is_never_called_free_of_it(outer: str) -> None:
    """Every form around every form of two values, one of which may be the canary."""
    wrong: list[str] = []
    seen = 0
    for form, (first, second) in product(FORMS, PAIRS):
        text = outer.format(form.format(first, second), "own.a")
        try:
            expression = compile_expression(text)
            value = expression.evaluate(SCOPE, Runtime(), (CANARY,))
        except (EvaluationError, ExpressionSyntaxError):
            continue
        seen += 1
        if CANARY in texts(value) and not can_hold(expression.ast, {"taken"}.__contains__, filled=True):
            wrong.append(text)
    assert [] == wrong[:5]
    assert seen > 50


@pytest.mark.parametrize(
    "text",
    [
        "own.a", "own.\ue0000\ue001", 'own."\ue0000\ue001"', "taken.a == 'x' && '*' || own.a", "!taken.a",
        "own.list[?name == taken.a].name | [0]", "lookup(own, taken.a)", "own.taken", "'x' || 'y'", "own[?taken].a",
        "map(&to_string(@), own.list)", "{taken: own.a}.taken", "own | taken",
    ],
)  # fmt: skip
def test_what_only_chooses_puts_nothing_in(text: str) -> None:
    """The twin: conditions and names of fields choose a value, and are not in it."""
    assert not can_hold(compile_expression(text).ast, {"taken"}.__contains__, filled=True)
