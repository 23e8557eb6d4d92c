"""Claims about validation patterns: verdict, path and text."""

import pytest

from pyverno.errors import BudgetExceededError, ExpressionError
from pyverno.kube.json import JSON
from pyverno.lang.pattern.outcome import Status
from pyverno.lang.pattern.validate import compile_pattern
from pyverno.lang.runtime import Budget

MISSING = "conditional anchor mismatch: conditional anchor key doesn't exist in the resource"

CASES: list[tuple[JSON, JSON, str, str]] = [
    # plain keys
    ({}, {"a": 1}, "pass", ""),
    ({"a": "x"}, {"a": "x"}, "pass", ""),
    ({"a": "x"}, {}, "fail", "/a/"),
    ({"a": "<5"}, {}, "pass", ""),
    ({"a": None}, {}, "pass", ""),
    ({"a": "*"}, {"a": {}}, "pass", ""),
    ({"a": "*"}, {"a": False}, "pass", ""),
    ({"a": {"b": "*"}}, {"a": {"b": None}}, "fail", "/a/"),
    ({"a": {"b": "x"}}, {"a": "b"}, "fail", "/a/"),
    ({"+(s)": "a"}, {"s": "a"}, "fail", "/+(s)/"),
    ({"b": "x", "a": "x"}, {}, "fail", "/a/"),
    # conditions
    ({"(s)": "a", "t": "x"}, {"s": "b"}, "skip", ""),
    ({"(s)": "a", "t": "x"}, {"t": "x"}, "skip", ""),
    ({"(s)": "a", "t": "x"}, {"s": "a", "t": "y"}, "fail", "/t/"),
    ({"(s)": "a", "t": "x"}, {"s": "a", "t": "x"}, "pass", ""),
    ({"a": {"(x)": "1"}, "b": "2"}, {"a": {"x": "9"}, "b": "3"}, "skip", ""),
    ({"(a)": "1", "X(b)": ""}, {"a": "2", "b": 1}, "skip", ""),
    ({"(a)": {"X(b)": ""}}, {"a": {"b": 1}}, "skip", ""),
    # equality
    ({"=(s)": "a"}, {}, "pass", ""),
    ({"=(s)": "a"}, {"s": None}, "fail", "/s/"),
    ({"=(s)": {"(x)": "1"}, "t": "y"}, {"s": {"x": "2"}, "t": "z"}, "skip", ""),
    ({"=(s)": {"(x)": "1"}, "=(u)": "1", "t": "y"}, {"s": {"x": "2"}, "u": "1", "t": "z"}, "fail", "/t/"),
    # negation
    ({"X(s)": "any"}, {}, "pass", ""),
    ({"X(s)": "any"}, {"s": None}, "fail", "/s/"),
    ({"=(c)": [{"X(h)": ""}]}, {"c": [{"a": 1}, {"h": 1}]}, "fail", "/c/1/h/"),
    # global
    ({"<(s)": "a", "t": "x"}, {"t": "x"}, "pass", ""),
    ({"<(s)": "a", "t": "x"}, {"s": "b", "t": "y"}, "skip", ""),
    ({"c": [{"<(i)": "a", "p": "x"}]}, {"c": [{"i": "b"}, {"i": "a", "p": "x"}]}, "pass", ""),
    ({"c": [{"<(i)": "a", "p": "x"}]}, {"c": [{"i": "b"}]}, "skip", ""),
    # existence
    ({"^(c)": [{"n": "a"}, {"n": "b"}]}, {"c": [{"n": "b"}, {"n": "a"}]}, "pass", ""),
    ({"^(c)": [{"n": "a"}]}, {"c": []}, "fail", "/c/"),
    ({"^(c)": [{"n": "a"}]}, {"c": {"n": "a"}}, "fail", "/c/"),
    ({"^(c)": {"n": "a"}}, {"c": [{"n": "a"}]}, "fail", "/c/"),
    ({"^(c)": ["a"]}, {"c": ["a"]}, "fail", "/c/"),
    ({"^(c)": [{"(n)": "a", "p": "x"}]}, {"c": [{"n": "b"}]}, "fail", "/c/"),
    ({"^(c)": [{"n": "a"}]}, {}, "pass", ""),
    # lists
    ({"c": [{"(n)": "a*", "p": "x"}]}, {"c": [{"n": "b"}, {"n": "abc", "p": "x"}]}, "pass", ""),
    ({"c": [{"(n)": "a*", "p": "x"}]}, {"c": [{"n": "b"}]}, "skip", ""),
    ({"c": [{"(n)": "a*", "p": "x"}]}, {"c": []}, "pass", ""),
    ({"c": [{"(n)": "a*", "p": "x"}]}, {"c": [{"n": "b"}, {"n": "a", "p": "y"}]}, "fail", "/c/1/p/"),
    ({"c": ["x"]}, {"c": ["x", "y"]}, "fail", "/c/"),
    ({"c": ["x"]}, {"c": []}, "pass", ""),
    ({"c": "x*"}, {"c": ["x1", "x2"]}, "pass", ""),
    ({"c": "x"}, {"c": [["x"]]}, "fail", "/c/"),
    ({"c": [{"a": 1}]}, {"c": {"a": 1}}, "fail", "/c/"),
    ({"c": []}, {"c": []}, "fail", "/c/"),
    ({"c": [["a"], ["b"]]}, {"c": [["a"], ["b"], ["z"]]}, "pass", ""),
    ({"c": [["a"], ["b"]]}, {"c": [["a"], ["x"]]}, "fail", "/c/1/"),
    ({"c": [["a"], ["b"]]}, {"c": [["a"]]}, "error", ""),
    # keys that were never there
    ({"a": {"k": "v"}, "c": [{"^(n)": [{"x": "y"}]}]}, {"a": {"k": "w"}, "c": [{}]}, "error", ""),
    ({"c": [{"(n)": "a", "p": "x"}], "z": "1"}, {"c": [{"m": 1}], "z": "2"}, "skip", ""),
    ({"c": [{"(n)": "a"}], "z": {"y": "1"}}, {"c": [], "z": {"y": "2"}}, "fail", "/z/y/"),
    ({"^(c)": [{"n": "a"}], "X(q)": ""}, {"q": 1}, "fail", "/q/"),
    # roots that are no map
    ("a*", "abc", "pass", ""),
    ([{"a": 1}], [{"a": 1}, {"a": 2}], "fail", "/1/a/"),
    ({"a": 1}, None, "fail", "/"),
]


@pytest.mark.parametrize(("pattern", "resource", "status", "path"), CASES)
def test_a_pattern_gives_status_and_path(pattern: JSON, resource: JSON, status: str, path: str) -> None:
    """The exact tier decides; the generated tier only ever confirms a pass."""
    compiled = compile_pattern(pattern)
    outcome = compiled.match(resource)
    assert (outcome.status.value, outcome.path) == (status, path)
    decided = compiled.decide(resource)
    assert (decided.status.value, decided.path) == (status, path)
    if compiled.passes is not None and compiled.passes(resource) is True:
        assert outcome.status is Status.PASS


MESSAGES: list[tuple[JSON, JSON, str]] = [
    (
        {"a": {"b": 1}},
        {"a": [1]},
        "pattern and resource have different structures. Path: /a/. "
        "Expected map[string]interface {}, found []interface {}",
    ),
    (
        {"a": [1]},
        {"a": 1},
        "validation rule failed at path /a/, resource does not satisfy the expected overlay pattern",
    ),
    ({"a": "x"}, {"a": {"k": [1, None]}}, "resource value does not match pattern at path /a/"),
    ({"a": {"b": "*"}}, {"a": {}}, "/a//b not found"),
    ({"X(a)": 1}, {"a": 1}, "negation anchor matched in resource: /a/ is not allowed"),
    ({"^(a)": [{"b": 1}]}, {"a": []}, "existence anchor validation failed at path /a/"),
    ({"(a)": 1}, {}, MISSING),
    ({"a": [{"(b)": 1}]}, {"a": [{}, {}]}, f"{MISSING}; {MISSING}"),
    ({"<(a)": 1}, {"a": 2}, "global anchor mismatch: resource value does not match pattern at path /a/"),
    ({"a": []}, {"a": []}, "pattern Array empty"),
    (
        {"a": [[1]]},
        {"a": []},
        "validate Array failed, array length mismatch, resource Array len is 0 and pattern Array len is 1",
    ),
    (
        {"^(a)": []},
        {"a": "x"},
        "invalid resource type string: Existence ^ () anchor can be used only on list/array type resource",
    ),
    (
        {"^(a)": "x"},
        {"a": []},
        "invalid pattern type string: Pattern has to be of list to compare against resource",
    ),
    (
        {"^(a)": ["x"]},
        {"a": []},
        "invalid pattern type []interface {}: Pattern has to be of type map to compare against items in resource",
    ),
]


@pytest.mark.parametrize(("pattern", "resource", "message"), MESSAGES)
def test_messages_are_those_of_the_upstream_engine(pattern: JSON, resource: JSON, message: str) -> None:
    """Users and tests rely on these texts, so they equal Kyverno's."""
    assert compile_pattern(pattern).match(resource).message == message


def test_a_value_can_not_talk_its_way_into_a_skip() -> None:
    """Upstream looks for a phrase in the error text, which quotes the resource; here a violation stays one."""
    outcome = compile_pattern({"a": "x"}).match({"a": "conditional anchor mismatch"})
    assert (outcome.status, outcome.path) == (Status.FAIL, "/a/")


def test_float_numbers_reach_every_leaf() -> None:
    """anyPattern compares all numbers as floats."""
    assert compile_pattern({"a": [5]}, float_numbers=True).match({"a": ["5.0"]}).status is Status.PASS
    assert compile_pattern({"a": [5]}).match({"a": ["5.0"]}).status is Status.FAIL


@pytest.mark.parametrize("key", ["a", "(a)", "=(a)", "^(a)", "<(a)"])
def test_a_pattern_that_is_too_deep_is_a_clean_error(key: str) -> None:
    """Ten thousand levels of pattern raise the typed error."""
    pattern: JSON = "x"
    for _ in range(10_000):
        pattern = {key: [pattern]}
    with pytest.raises(ExpressionError, match="nested too deeply"):
        compile_pattern(pattern)


def test_a_pattern_of_moderate_depth_waits_for_its_first_match() -> None:
    """Exact closures are made by the first match, are then kept, and agree with those that were made at once."""
    for levels in (3, 40):
        pattern: JSON = {"a": {"b": [{"=(c)": "x*"}]}}
        resource: JSON = {"a": {"b": [{"c": "y"}]}}
        for _ in range(levels):
            pattern, resource = {"k": pattern}, {"k": resource}
        compiled = compile_pattern(pattern)
        first, second = compiled.match(resource), compiled.match(resource)
        assert first == second
        assert first.path == "/" + "k/" * levels + "a/b/0/c/"


def test_nested_existence_anchors_compile_in_linear_time() -> None:
    """Each level of a pattern is compiled once."""
    pattern: JSON = {"x": "y"}
    resource: JSON = {"x": "y"}
    for _ in range(60):
        pattern, resource = {"^(a)": [pattern]}, {"a": [resource]}
    compiled = compile_pattern(pattern)
    assert compiled.match(resource).status is Status.PASS
    assert compiled.passes is not None
    assert compiled.passes(resource) is True


@pytest.mark.parametrize("key", ["=(a)", "(a)", "a", "<(a)"])
def test_nested_skips_cost_linear_time(key: str) -> None:
    """A skip far below is found once, not once per level."""
    pattern: JSON = {"(x)": "1", "=(y)": "1"}
    resource: JSON = {"x": "2", "y": "2"}
    for _ in range(60):
        pattern, resource = {key: pattern, "=(z)": {"(q)": "1"}}, {"a": resource, "z": {}}
    assert compile_pattern(pattern).match(resource).status is Status.SKIP


def test_a_deep_resource_is_judged() -> None:
    """The depth of a resource does not matter where the pattern does not follow it."""
    resource: JSON = []
    for _ in range(9_000):
        resource = [resource]
    outcome = compile_pattern({"a": "x"}).match({"a": resource})
    assert outcome.status is Status.FAIL
    assert "resource value does not match pattern at path /a/" == outcome.message


def test_the_text_of_a_skip_has_a_bound() -> None:
    """The first problems of a list of which nothing applied are described, the others are counted."""
    outcome = compile_pattern([{"(a)": [{"(b)": 1}]}]).match([{"a": [{}] * 1000}] * 1000)
    assert outcome.status is Status.SKIP
    assert outcome.message.count(MISSING) < 300
    assert outcome.message.endswith("more")


@pytest.mark.parametrize("pattern", [[{"(a)": 1}], {"^(a)": [{"b": 1}]}], ids=["elements", "existence"])
def test_elements_of_long_lists_are_charged(pattern: JSON) -> None:
    """One step for each element, so that a match ends at the limits and the deadline of its review."""
    elements: list[JSON] = [{}] * 5000
    budget = Budget(steps=4000)
    with pytest.raises(BudgetExceededError):
        compile_pattern(pattern).match(elements if isinstance(pattern, list) else {"a": elements}, budget)
