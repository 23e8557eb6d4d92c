"""Laws of validation patterns and overlays, over generated patterns and resources."""

from __future__ import annotations

import contextlib
import copy

from pyverno.errors import PatchError
from pyverno.kube.json import JSON
from pyverno.lang.pattern.anchors import parse_anchor
from pyverno.lang.pattern.fast import passcheck
from pyverno.lang.pattern.mutate import compile_overlay
from pyverno.lang.pattern.outcome import Status
from pyverno.lang.pattern.validate import compile_pattern
from tests.bench.naive import naive_match
from tests.property import inputs as st
from tests.property.inputs import Draw, Inputs, law

KEYS = st.sampled_from(["a", "b", "c", "name", "metadata", "labels", "annotations"])
LABEL_KEYS = st.sampled_from(["a", "ab", "abc", "b", "a*", "?b", "*"])
MODIFIERS = st.sampled_from(["", "=", "X", "^", "<", "+"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 70),
    st.sampled_from([0.0, 1.0, 1.5, 60.0, 1e21, 1e-7, 2**53 + 1]),
    st.sampled_from(["", "0", "1", "5", "5.0", "1m", "60s", "60", "1Gi", "1024Mi", "a", "ab", "true", "false", "null"]),
)
LEAVES = st.one_of(
    SCALARS,
    st.sampled_from(["*", "?*", "a*", "?", "!a", "!a*", ">0", "<5", ">=1", "<=60", "1-10", "1!-10", "!1-5", "a | b"]),
    st.sampled_from(
        ["1m", ">=60s", "<1Gi", "0", ">1 & <5", "true | false", "!", ">", "|", "&", "a|", "1m-1h", "-5--1"]
    ),
    st.text(alphabet="ab15m*?!<>=|&- ", max_size=6),
)


def anchored(keys: Inputs[str]) -> Inputs[str]:
    """Generate keys of which half carry an anchor."""
    plain_or_anchored = st.tuples(st.booleans(), MODIFIERS, keys)
    return plain_or_anchored.map(lambda drawn: f"{drawn[1]}({drawn[2]})" if drawn[0] else drawn[2])


def patterns_over(children: Inputs[JSON]) -> Inputs[JSON]:
    """Generate maps and lists around patterns, labels with wildcard keys among them."""
    labels = st.dictionaries(anchored(LABEL_KEYS), LEAVES, max_size=3)
    metadata = st.dictionaries(
        st.sampled_from(["labels", "=(labels)", "annotations", "name"]), labels | LEAVES, max_size=2
    )
    return st.one_of(
        st.dictionaries(anchored(KEYS), children, max_size=4),
        st.lists(children, max_size=2),
        st.dictionaries(st.sampled_from(["metadata", "=(metadata)", "a"]), metadata, max_size=2),
    )


PATTERNS = st.recursive(LEAVES, patterns_over, max_leaves=10)
RESOURCES = st.recursive(
    SCALARS,
    lambda children: st.one_of(
        st.dictionaries(KEYS, children, max_size=4),
        st.lists(children, max_size=3),
        st.fixed_dictionaries({"metadata": st.fixed_dictionaries({"labels": st.dictionaries(LABEL_KEYS, SCALARS)})}),
    ),
    max_leaves=12,
)


EACH = 4
"""Resources per pattern: compiling a pattern costs more than judging by it."""

_RARELY, _MOSTLY, _SHORT = st.integers(0, 11), st.integers(0, 4), st.integers(0, 3)
_OTHER = st.sampled_from([1, 3, "a", "ab", True, False, "60s", None, "1Gi"])


def _case(draw: Draw) -> tuple[JSON, list[JSON]]:
    """Draw a pattern with resources, most of them of much the same shape: many pass or nearly do."""
    pattern = draw(PATTERNS)
    return pattern, [*(_shaped(draw, pattern) for _ in range(EACH - 1)), draw(RESOURCES)]


def _shaped(draw: Draw, pattern: JSON) -> JSON:
    if draw(_RARELY) == 0:
        return draw(RESOURCES)
    if isinstance(pattern, dict):
        return {_plain(key): _shaped(draw, value) for key, value in pattern.items() if draw(_MOSTLY) or _is_bare(key)}
    if isinstance(pattern, list):
        return [_shaped(draw, pattern[index % len(pattern)]) for index in range(draw(_SHORT))] if pattern else []
    chosen = draw(_RARELY)
    return pattern if chosen < 2 else [pattern] if chosen == 2 else draw(_OTHER)


def _is_bare(key: str) -> bool:
    return parse_anchor(key) is None


def _plain(key: str) -> str:
    anchor = parse_anchor(key)
    return (key if anchor is None else anchor.key).replace("*", "x").replace("?", "y")


CASES = st.composite(_case)


@law(CASES, st.booleans(), few=200, each=EACH)
def test_compiled_and_naive_agree(case: tuple[JSON, list[JSON]], float_numbers: bool) -> None:
    """The closures give the status, path and message of the plain interpreter."""
    pattern, resources = case
    compiled = compile_pattern(pattern, float_numbers=float_numbers)
    for resource in resources:
        outcome = compiled.match(resource)
        expected = naive_match(pattern, resource, float_numbers=float_numbers)
        assert (outcome.status.value, outcome.path, outcome.message) == expected


@law(CASES, st.booleans(), few=200, each=EACH)
def test_a_passed_check_means_that_the_pattern_passes(case: tuple[JSON, list[JSON]], float_numbers: bool) -> None:
    """The generated tier never returns "passes" where the exact tier does not."""
    pattern, resources = case
    compiled = compile_pattern(pattern, float_numbers=float_numbers)
    for resource in resources:
        if compiled.passes is not None and compiled.passes(resource) is True:
            assert compiled.match(resource).status is Status.PASS


@law(CASES, st.booleans(), few=200, each=EACH)
def test_what_generated_functions_decide_is_what_closures_decide(case: tuple[JSON, list[JSON]], floats: bool) -> None:
    """Status and path are equal, and the message of what is no FAIL."""
    pattern, resources = case
    compiled = compile_pattern(pattern, float_numbers=floats)
    for resource in resources:
        exact, decided = compiled.match(resource), compiled.decide(resource)
        assert (decided.status, decided.path) == (exact.status, exact.path)
        assert decided.message == exact.message or decided.status is Status.FAIL


def _several(draw: Draw) -> tuple[list[JSON], list[JSON]]:
    """Draw patterns with resources that have something of each of them."""
    patterns = draw(st.lists(PATTERNS, min_size=1, max_size=3))
    return patterns, [*(_merged(draw, patterns) for _ in range(EACH - 1)), draw(RESOURCES)]


@law(st.composite(_several), few=200, each=EACH)
def test_fused_checks_keep_the_law(case: tuple[list[JSON], list[JSON]]) -> None:
    """A fused check passes only where every pattern passes; alternatives, where one of them does."""
    patterns, resources = case
    compiled = [compile_pattern(pattern) for pattern in patterns]
    together, either = passcheck.fuse(compiled), passcheck.fuse([tuple(compiled)])
    for resource in resources:
        statuses = [pattern.match(resource).status for pattern in compiled]
        if together is not None and together(resource) is True:
            assert set(statuses) == {Status.PASS}
        if either is not None and either(resource) is True:
            assert Status.PASS in statuses


def _merged(draw: Draw, patterns: list[JSON]) -> JSON:
    shapes = [_shaped(draw, pattern) for pattern in patterns]
    maps = [shape for shape in shapes if isinstance(shape, dict)]
    return {key: value for shape in maps for key, value in shape.items()} if maps else shapes[0]


@law(CASES, few=200, each=EACH)
def test_inputs_stay_as_they_are(case: tuple[JSON, list[JSON]]) -> None:
    """Neither matching nor resolving an overlay changes pattern or resource, and nothing but a clean error escapes."""
    before = copy.deepcopy(case)
    pattern, resources = case
    compiled, overlay = compile_pattern(pattern), compile_overlay(pattern)
    for resource in resources:
        compiled.match(resource)
        with contextlib.suppress(PatchError):
            overlay.resolve(resource)
    assert case == before
