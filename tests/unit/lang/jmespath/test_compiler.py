"""Results of expressions: missing keys, projections, operators, placeholders and limits."""

import json

import pytest

from pyverno.errors import BudgetExceededError, EvaluationError, UnknownKeyError
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.runtime import Budget, Runtime
from tests.unit.lang.jmespath.hosts import evaluate

DOCUMENT = {"a": {"b": {"c": 1}, "n": None, "l": [1]}, "s": "str", "o": {"x": 1, "y": None}}


@pytest.mark.parametrize("text", ["zz", "a.b.zz", "a.zz.c", "zz[0]", "s && zz", "a.zz.{k: c}", "s && a.zz", "(zz)"])
def test_a_missing_key_is_an_error_here(text):
    """A map without the key, at the end of an expression."""
    with pytest.raises(UnknownKeyError) as caught:
        evaluate(text, DOCUMENT)
    assert 'Unknown key "zz" in path' == caught.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.n.c", None),
        ("a.l[9]", None),
        ("a.l[-1]", 1),
        ("a.l.x", None),
        ("s[0]", None),
        ("s.x", None),
        ("zz[*].x", None),
        ("zz[0:1]", None),
        ("a.zz[]", None),
        ("zz[?x==`1`]", None),
        ("zz.*", None),
        ("zz || 'd'", "d"),
        ("zz || qq", None),
        ("zz && 'd'", None),
        ("s | zz", None),
        ("!zz", True),
        ("[zz, s]", [None, "str"]),
        ("a.{k: zz}", {"k": None}),
        ("a.n.{k: zz}", None),
        ("zz == `null`", True),
        ("to_string(zz)", "null"),
        ("not_null(zz, s)", "str"),
        ("a.l[*].zz", []),
        ("a.l[?zz]", []),
        ("o.*", [1]),
        ("o.*.type(@)", ["null", "null", "number", "null"]),
        ("abs(zz)[]", None),
        ("abs(zz).*", None),
        ("abs(zz)[?a]", None),
    ],
)
def test_a_missing_key_is_null_here(text, expected):
    """The places in which the fork swallows the error, and values that are no maps."""
    assert expected == evaluate(text, DOCUMENT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`1` == `1.0`", True),
        ("`true` == `1`", False),
        ("`0` == `false`", False),
        ('`{"a": 1, "b": [2]}` == `{"b": [2.0], "a": 1}`', True),
        ("'1' == `1`", False),
        ("'a' != 'b'", True),
        ("`2` > `1`", True),
        ("`true` > `0`", None),
        ("'b' > 'a'", None),
        ("`0` || 'x'", 0),
        ("'' || 'x'", "x"),
        ("`[]` && 'x'", []),
        ("!`0`", False),
    ],
)
def test_numbers_are_equal_by_value_and_never_booleans(text, expected):
    """Integers and floats are one kind; zero is true."""
    result = evaluate(text)
    assert (expected, type(expected)) == (result, type(result))


def test_a_step_of_zero_is_an_error():
    """As in a slice of the specification."""
    with pytest.raises(EvaluationError, match="Invalid slice, step cannot be 0"):
        evaluate("[::0]", [1])


def test_an_unknown_function_is_found_when_it_is_called():
    """Compiling accepts it, as upstream."""
    assert frozenset({"nope"}) == compile_expression("a || nope(b)").functions
    with pytest.raises(EvaluationError, match="unknown function: nope"):
        evaluate("nope(b)", {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("length(zz)", 'Invalid type for: <nil>, expected: []jmespath.JpType{"string", "array", "object"}'),
        ('to_upper(`[1, "a"]`)', 'Invalid type for: [1 a], expected: []jmespath.JpType{"string"}'),
        ("to_upper()", "incorrect number of args"),
        ("to_upper('a', 'b')", "incorrect number of args"),
        ("not_null()", "Invalid arity."),
        ("merge()", "Invalid arity."),
    ],
)
def test_arguments_are_checked_with_the_texts_of_the_fork(text, message):
    """Types in Go rendering, no function name."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(text, {})
    assert message == caught.value.detailed


class Lazy(dict):
    """A document that loads a key when it is read."""

    def __missing__(self, key):
        if key == "lazy":
            return {"name": "x"}
        if key == "broken":
            raise EvaluationError("cannot load")
        raise KeyError(key)

    def materialise(self):
        return {**self, "lazy": self["lazy"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lazy.name", "x"),
        ("other || lazy.name", "x"),
        ("keys(@)", ["lazy", "plain"]),
        ("*", [1, {"name": "x"}]),
        ("@ && 'yes'", "yes"),
        ("@.lazy.name", "x"),
        ("{n: lazy.name}", {"n": "x"}),
    ],
)
def test_a_lazy_root_is_read_by_key_and_loaded_as_a_whole_only_when_needed(text, expected):
    """Root documents load through `__missing__` and `materialise`."""
    assert expected == evaluate(text, Lazy(plain=1))


def test_an_error_of_a_lazy_root_comes_through():
    """Only KeyError means that a key is missing."""
    with pytest.raises(EvaluationError, match="cannot load"):
        evaluate("broken.x || 'd'", Lazy())


PLACEHOLDER = "\ue0000\ue001"
SECOND = "\ue0001\ue001"


@pytest.mark.parametrize(
    ("text", "placeholders", "expected"),
    [
        (f"d.{PLACEHOLDER}", ("key1",), "deep"),
        (f"d.key{PLACEHOLDER}", (1,), "deep"),
        (f'd."{PLACEHOLDER}"', ("key1",), "deep"),
        (f'd."a{PLACEHOLDER}"', ('"b',), "quote"),
        (f"l[{PLACEHOLDER}]", (1,), "b"),
        (f"l[{PLACEHOLDER}:{SECOND}]", (0, 1), ["a"]),
        (f"l[-1:{PLACEHOLDER}]", ("9",), ["b"]),
        (f"'x{PLACEHOLDER}y'", ("' || 'z",), "x' || 'zy"),
        (f"'{PLACEHOLDER}'", ({"a": 1},), '{"a":1}'),
        (f'`"x{PLACEHOLDER}"`', ('", "b',), 'x", "b'),
        (f"`{PLACEHOLDER}`", ([1, "a"],), [1, "a"]),
        (f"`{PLACEHOLDER}`", ("5",), 5),
        (f'`{{"{PLACEHOLDER}": [{SECOND}, 2]}}`', ("k", None), {"k": [None, 2]}),
        (f"{{{PLACEHOLDER}: l[0]}}", ("k",), {"k": "a"}),
        (f"{PLACEHOLDER}.key1", ("d",), "deep"),
    ],
)
def test_the_value_of_a_hole_is_data_in_every_place(text, placeholders, expected):
    """Nested variables are names, numbers and texts, never syntax."""
    document = {"d": {"key1": "deep", 'a"b': "quote"}, "l": ["a", "b"]}
    assert expected == evaluate(text, document, placeholders)


@pytest.mark.parametrize(
    ("text", "placeholders", "error"),
    [
        (f"{PLACEHOLDER}", ("a.b",), 'Unknown key "a.b" in path'),
        (f"{PLACEHOLDER}", ("keys(@)",), 'Unknown key "keys(@)" in path'),
        (f"l[{PLACEHOLDER}]", ("*",), "an index must be a whole number but got: *"),
        (f"'{PLACEHOLDER}'", (), "no value was given for the nested variable 0"),
    ],
)
def test_the_value_of_a_hole_is_never_parsed_as_an_expression(text, placeholders, error):
    """A value that looks like syntax is used as a key or refused."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(text, {"a": {"b": 1}, "l": []}, placeholders)
    assert error == caught.value.detailed


@pytest.mark.parametrize(
    ("text", "resource"),
    [
        (" | ".join(["[@, @]"] * 40), "bytes"),
        (" | ".join(["[@, @][]"] * 40), "bytes"),
        (" | ".join(["{a: @, b: @}"] * 40), "bytes"),
        (" | ".join(["join('', [@, @])"] * 40), "bytes"),
        (" | ".join(["replace_all(@, 'x', 'xxxxxxxx')"] * 40), "bytes"),
        (" | ".join(["replace_all(@, '', 'xxxxxxxx')"] * 40), "bytes"),
        (" | ".join(["regex_replace_all('x', @, 'xxxxxxxx')"] * 40), "steps"),
        (" | ".join(["base64_encode(@)"] * 80), "bytes"),
        ("random('" + "a{1000}" * 70 + "')", "bytes"),
        ("random('((a*)*)*')", "bytes"),
    ],
)
def test_values_that_grow_without_end_are_stopped(text, resource):
    """Doubling ends at the budget, long before memory does."""
    with pytest.raises(BudgetExceededError) as caught:
        evaluate(text, "x")
    assert resource == caught.value.resource


def test_projected_elements_are_charged():
    """One step per element and function call."""
    runtime = Runtime(budget=Budget(steps=100))
    expression = compile_expression("[*].length(@)")
    assert [1] * 10 == expression.evaluate(["a"] * 10, runtime)
    with pytest.raises(BudgetExceededError):
        expression.evaluate(["a"] * 1000, runtime)


def test_deep_documents_are_read():
    """Neither fields nor comparisons nor texts recurse."""
    deep = leaf = {}
    for _ in range(5000):
        leaf["a"] = {}
        leaf = leaf["a"]
    assert {} == evaluate(".".join(["a"] * 5000), deep)
    assert evaluate("@ == @", deep) is True
    assert json.dumps("a") in evaluate("to_string(@)", deep)


def test_the_input_is_never_changed():
    """Sorting, merging and reversing give new values."""
    document = {"l": [3, 1, 2], "o": {"a": 1}}
    before = json.dumps(document)
    for text in ("sort(l)", "reverse(l)", "sort_by(l, &@)", "merge(o, {b: l})", "l[::-1]", "map(&@, l)"):
        evaluate(text, document)
    assert before == json.dumps(document)


@pytest.mark.parametrize("operator", ["[]", "[].a", "[?a]", "[?a].b", ".*", ".*.a", "[][]", "[] || 'x'", "[*]"])
@pytest.mark.parametrize(
    "call", ["parse_json('{')", "parse_yaml('{')", "abs('x')", "base64_decode('%')", "to_upper(l)"]
)
def test_an_error_of_a_function_is_an_error_under_every_projection(call, operator):
    """An error must not become an empty list, for which a condition on all items would be true."""
    with pytest.raises(EvaluationError):
        evaluate(call + operator, {"l": [1]})
