"""Claims about generated pass-checks."""

import pytest

from pyverno.kube.json import JSON
from pyverno.lang.pattern.fast import passcheck
from pyverno.lang.pattern.validate import compile_pattern

PASSING: list[tuple[JSON, JSON]] = [
    ({"spec": {"=(hostPID)": "false"}}, {"spec": {"hostPID": False}}),
    ({"spec": {"=(hostPID)": False}}, {"spec": {}}),
    ({"c": [{"X(p)": "", "n": "?*"}]}, {"c": [{"n": "a"}, {"n": "b"}]}),
    ({"c": [{"(n)": "a*", "p": "x"}]}, {"c": [{"n": "b"}, {"n": "ab", "p": "x"}]}),
    ({"c": [{"(n)": "a*", "(m)": ">0", "p": "x"}]}, {"c": [{"n": "b"}, {"n": "ab", "m": 3, "p": "x"}]}),
    ({"^(c)": [{"n": "a"}]}, {"c": [{"n": "b"}, {"n": "a"}]}),
    ({"u": ">0 & <100"}, {"u": 5}),
    ({"u": ">=0"}, {"u": 0}),
    ({"u": 5, "v": None, "w": 1.5, "y": "*"}, {"u": 5, "w": 1.5, "y": []}),
    ({"u": ["a | b"]}, {"u": ["a", "b", "a"]}),
    ({"u": [["a"]]}, {"u": [["a"]]}),
    ({"(k)": "Pod", "<(x)": "1", "u": "a"}, {"k": "Pod", "u": "a"}),
    ({"=(metadata)": {"=(annotations)": {"=(example.com/*)": "a | b"}}}, {"metadata": {"annotations": {"x": "y"}}}),
    ({"metadata": {"labels": {"a*": "?*", "b": 1}}}, {"metadata": {"labels": {"ab": "c"}}}),
    ({"+(a)": "x"}, {"+(a)": "x"}),
    ({}, {}),
]


@pytest.mark.parametrize(("pattern", "resource"), PASSING)
def test_common_shapes_are_confirmed_without_the_exact_tier(pattern: JSON, resource: JSON) -> None:
    """The fast tier must pay where policies are usually met."""
    passes = compile_pattern(pattern).passes
    assert passes is not None
    assert passes(resource) is True


def test_all_common_shapes_fuse_into_one_function() -> None:
    """Patterns share look-ups; the whole passes only when every part does."""
    patterns = [compile_pattern({"root": {str(index): pattern}}) for index, (pattern, _) in enumerate(PASSING)]
    resource = {"root": {str(index): value for index, (_, value) in enumerate(PASSING)}}
    fused = passcheck.fuse(patterns)
    assert fused is not None
    assert fused(resource) is True
    for index in range(len(PASSING)):
        broken = {"root": {**resource["root"], str(index): "broken"}}
        assert fused(broken) is not True


def test_one_alternative_is_enough() -> None:
    """Alternatives stand for anyPattern, next to other patterns."""
    first, second = compile_pattern({"a": "1"}), compile_pattern({"b": "2"})
    both = passcheck.fuse([compile_pattern({"c": "x"}), (first, second)])
    assert both is not None
    assert [both({"c": "x", "b": "2"}), both({"c": "x"}), both({"a": "1"})] == [True, False, False]


@pytest.mark.parametrize(
    "patterns", [[], [{"a": []}], [{"a": "x"}, {"X(a)": ""}], [{"^(a)": ["x"]}]], ids=["none", "empty", "both", "odd"]
)
def test_what_can_not_pass_has_no_check(patterns: list[JSON]) -> None:
    """Contradictions and patterns that accept nothing are left to the exact tier."""
    assert passcheck.fuse([compile_pattern(pattern) for pattern in patterns]) is None


def test_a_pattern_that_is_too_large_has_no_check() -> None:
    """Code is generated only while it pays; the exact tier has no such limit."""
    pattern = {str(index): "x" for index in range(30_000)}
    compiled = compile_pattern(pattern)
    assert compiled.passes is None
    assert compiled.match(pattern | dict.fromkeys(pattern, "x")).status.value == "pass"


def test_a_deep_pattern_is_checked() -> None:
    """Below a certain depth the generated code calls the exact tier."""
    pattern: JSON = "x"
    resource: JSON = "x"
    for _ in range(80):
        pattern, resource = {"=(a)": [pattern]}, {"a": [resource]}
    passes = compile_pattern(pattern).passes
    assert passes is not None
    assert passes(resource) is True


@pytest.mark.parametrize("resource", [None, [], "x", 1, {"a": None}, {"a": {"b": []}}, {"a": [[]]}, {"a": {}}])
def test_odd_resources_are_never_an_exception(resource: JSON) -> None:
    """A check returns a result for every resource."""
    passes = compile_pattern({"a": {"b": "x | y", "c": [{"d": "?*"}]}}).passes
    assert passes is not None
    assert passes(resource) is False


def test_a_label_spelled_like_the_wildcard_is_still_judged() -> None:
    """A key of the resource that holds a star itself does not count as missing."""
    compiled = compile_pattern({"metadata": {"labels": {"=(a*)": "x"}}})
    assert compiled.passes is not None
    assert compiled.passes({"metadata": {"labels": {"a*": "y"}}}) is not True


def test_float_numbers_lose_what_a_float_loses() -> None:
    """Beyond 2^53 a pattern of anyPattern is the nearest float, in both tiers."""
    compiled = compile_pattern({"a": 2**53 + 1}, float_numbers=True)
    assert compiled.passes is not None
    assert [compiled.passes({"a": 2**53 + 1}), compiled.passes({"a": 2**53})] == [False, True]


HOSTILE = [
    "'); import os; os.abort() #",
    '"""\n    return True\n"""',
    "{0}",
    "{v0.__class__}",
    "\\",
    "\n        return True",
    "c0",
    "\u2028\x00",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_policy_becomes_source(text: str) -> None:
    """Keys and values of a policy become constants, never code."""
    pattern = {text: text, f"=({text})": [text], "a": {f"X({text})": text}}
    compiled = compile_pattern(pattern)
    assert compiled.passes is None or compiled.passes({}) is False
    single = compile_pattern({"k": {text: "v"}}).passes
    assert single is not None
    assert single({"k": {text: "v"}}) is True
    assert single({"k": {"other": "v"}}) is False


@pytest.mark.parametrize("labels", [{"a/1": "ok"}, {"a/1": "bad"}, {"a/1": "ok", "a/2": "bad"}, {}], ids=str)
@pytest.mark.parametrize("anchor", ["{}", "=({})", "X({})", "({})", "<({})"])
def test_a_condition_about_labels_has_wildcards(labels: JSON, anchor: str) -> None:
    """The wildcard keys of a condition on `metadata` are those of the exact tier, whatever else the list holds."""
    condition: JSON = {"metadata": {"labels": labels}, "size": 2}
    pattern = compile_pattern({"items": [{"(metadata)": {"labels": {anchor.format("a/*"): "ok"}}, "size": 1}]})
    decoys: list[JSON] = [{"metadata": {"labels": {key: "ok"}}, "size": 1} for key in ("a/*", "a/1", "b")]
    assert pattern.passes is not None
    for resource in ({"items": [condition, decoy]} for decoy in decoys):
        assert pattern.passes(resource) is not True or pattern.match(resource).status == "pass"
