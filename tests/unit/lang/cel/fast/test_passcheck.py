"""Generated pass-checks: what they cover, and that no text of a policy enters the source."""

from typing import Any

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.lang.cel.checking.checked import Checked
from pyverno.lang.cel.checking.structs import DeclaredTypes
from pyverno.lang.cel.fast.passcheck import Claim, compile_pass_check, fuse
from pyverno.lang.cel.types import DYN, Type, struct
from pyverno.lang.codegen import Source

ENVIRONMENT = environment_of_kind("ValidatingPolicy").with_variables({"object": DYN})
POD: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "ghcr.io/x:1", "securityContext": {"privileged": False}}]},
}


@pytest.mark.parametrize(
    "text",
    [
        "object.metadata.name == 'a'",
        "object.metadata.name != 'b' && object.metadata.?namespace.orValue('') == ''",
        "has(object.metadata.labels) && 'app' in object.metadata.labels",
        "object.spec.containers.all(c, c.image.startsWith('ghcr.io/') || c.name == 'x')",
        "object.spec.containers.all(c, c.?securityContext.?privileged.orValue(false) == false)",
        "!object.spec.?hostNetwork.orValue(false)",
        "size(object.spec.containers) < 3 && object.spec.containers.size() >= 1",
        "object.spec.containers.filter(c, c.name == 'z').size() == 0",
        "object.spec.containers.map(c, c.name).exists(n, n == 'c')",
        "(object.spec.containers + object.spec.?initContainers.orValue([])).all(c, c.image.matches('^[a-z]+'))",
        "object.metadata.name in ['a', 'b'] ? object.metadata.labels['app'] == 'x' : false",
    ],
)
def test_usual_expressions_have_a_pass_check(text: str) -> None:
    """The generated function passes where the expression is true, and not where a part is missing."""
    program = ENVIRONMENT.compile(text)
    passes = program.pass_check()
    assert passes is not None
    assert program.evaluate({"object": POD}) is True
    assert passes({"object": POD}) is True
    assert passes({"object": {}}) is False
    assert passes({}) is False


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("object.a == 1", {"a": True}),
        ("object.a != true", {"a": 1}),
        ("has(object.a.b)", {"a": "xbx"}),
        ("object.a[-1] == 1", {"a": [1]}),
        ("object.a[0] == 'a'", {"a": "abc"}),
        ("object.a > 1", {"a": True}),
        ("object.a.contains('b')", {"a": ["b"]}),
        ("object.a", {"a": 1}),
        ("!object.a", {"a": None}),
        ("object.a.all(c, c == 'x')", {"a": "xx"}),
        ("size(object.a) == 0", {"a": None}),
        ("object.?a.?b.orValue(true)", {"a": None}),
    ],
)
def test_pythons_habits_do_not_leak(text: str, document: dict[str, Any]) -> None:
    """Truthiness, negative indexes, text indexing and bool-as-int never make a pass-check pass wrongly."""
    program = ENVIRONMENT.compile(text)
    passes = program.pass_check()
    if passes is None or not passes({"object": document}):
        return
    assert program.evaluate({"object": document}) is True


def test_bools_are_no_numbers() -> None:
    """`object.a == 1` does not pass for true, nor `object.a != true` fail for 1."""
    equal = ENVIRONMENT.compile("object.a == 1").pass_check()
    assert equal is not None
    assert [equal({"object": {"a": value}}) for value in (1, 1.0, True)] == [True, True, False]


def test_no_text_of_an_expression_enters_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are templates and integers; names and literals are constants handed over as values."""
    lines: list[str] = []
    original = Source.line

    def record(self: Source, indent: int, template: str, *numbers: int) -> None:
        lines.append(template)
        original(self, indent, template, *numbers)

    monkeypatch.setattr(Source, "line", record)
    evil = "__import__('os')"
    text = (
        f"object.evilfield == \"{evil}\" && object['evilkey'].startsWith('evil') && "
        "object.all(evilname, evilname != 'e')"
    )
    assert ENVIRONMENT.compile(text).pass_check() is not None
    assert lines
    assert not any("evil" in line or "import" in line or "'" in line or '"' in line for line in lines)


@pytest.mark.parametrize("text", ["dyn(resource.get('v1', 'pods', 'a', 'b')) == null", "object.a - 1 == 2", "1 in [1]"])
def test_what_is_beyond_has_no_pass_check(text: str) -> None:
    """Rare parts have no generated form; the closures answer."""
    assert ENVIRONMENT.compile(text).pass_check() is None


# --- claims: rules with variables, fused ------------------------------------------------------------------------------


def claim(*expressions: str, limit: int = 1_000_000, **variables: str) -> Claim:
    """Check the expressions of a rule; its variables see those before them."""
    fields: dict[str, Type] = {}
    checked: dict[str, Checked] = {}
    for name, text in variables.items():
        checked[name] = _environment(fields).check(text)
        fields[name] = checked[name].type
    environment = _environment(fields)
    return Claim(tuple(environment.check(text) for text in expressions), tuple(checked.items()), limit)


def _environment(fields: dict[str, Type]) -> Any:
    types = DeclaredTypes({"rule.variables": fields})
    return ENVIRONMENT.with_structs(types).with_variables({"variables": struct("rule.variables")})


def lines(monkeypatch: pytest.MonkeyPatch, *claims: Claim) -> list[str]:
    """Return the lines of the function for these claims."""
    written: list[str] = []
    original = Source.line

    def record(self: Source, indent: int, template: str, *numbers: int) -> None:
        written.append(template)
        original(self, indent, template, *numbers)

    with monkeypatch.context() as patch:
        patch.setattr(Source, "line", record)
        assert fuse(claims) is not None
    return written


ALL = "object.spec.containers + object.spec.?initContainers.orValue([])"


@pytest.mark.parametrize(
    ("expressions", "variables", "expected"),
    [
        (["variables.bad.size() == 0"], {"bad": "object.spec.containers.filter(c, c.name != 'c')"}, True),
        (["variables.bad.size() == 0"], {"bad": "object.spec.containers.filter(c, c.name == 'c')"}, False),
        (["variables.a.all(c, c.name in variables.names)"], {"a": ALL, "names": "['c', 'd']"}, True),
        (["variables.p.hasValue()", "variables.p.?app.orValue('') == 'x'"], {"p": "object.metadata.?labels"}, True),
        (["variables.p.hasValue()"], {"p": "object.metadata.?annotations"}, False),
        (["!has(object.gone) || variables.v == 1"], {"v": "object.gone.part"}, True),
        (["object.spec.containers.all(c, c.name != 'c' || variables.v == 'a')"], {"v": "object.metadata.name"}, True),
        (["variables.b"], {"a": "object.metadata.name", "b": "variables.a == 'a' && variables.a != 'b'"}, True),
        (["!variables.b"], {"b": "object.spec.?hostNetwork.orValue(false)"}, True),
        (["variables.m.size() == 0"], {"m": "object.spec.?volumes.orValue([]).map(v, 'volume ' + v.name)"}, True),
        (["variables.m.size() == 0"], {"m": "(has(object.spec.gone) ? ['pod'] : []) + []"}, True),
        (["variables.m.size() == 0"], {"m": "(has(object.spec.containers) ? ['pod'] : []) + []"}, False),
    ],
)
def test_claims_with_variables(expressions: list[str], variables: dict[str, str], expected: bool) -> None:
    """Variables are values, optional values, constants and tests; the function passes where all expressions hold."""
    passes = fuse((claim(*expressions, **variables),))
    assert passes is not None
    assert passes(POD) is expected
    assert passes(None) is False


def test_rules_share_variables_that_are_defined_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two rules adds no code for a variable of the first, whatever it calls it."""
    one = claim("variables.a.all(c, c.name != '')", a=ALL)
    two = claim("variables.b.all(c, c.name != '')", b=ALL)
    other = claim("variables.b.all(c, c.name != '')", b="object.spec.containers + object.spec.?volumes.orValue([])")
    sums = [
        sum(" + v" in line and "len" not in line for line in lines(monkeypatch, one, each)) for each in (two, other)
    ]
    assert sums[1] > sums[0]


def test_a_variable_that_only_a_branch_reads_is_not_computed_without_need() -> None:
    """An unread variable raises no error, also within a loop."""
    rule = claim("object.spec.containers.all(c, c.name == 'c' || variables.v)", v="object.gone == 1")
    passes = fuse((rule,))
    assert passes is not None
    assert passes(POD) is True
    assert passes({"spec": {"containers": [{"name": "other"}]}}) is False


def test_claims_speak_of_the_object_only() -> None:
    """An expression that reads more than the object has no proof."""
    environment = ENVIRONMENT.with_variables({"request": DYN})
    assert Claim((environment.check("request.name == 'a'"),)).is_provable is False
    assert Claim((environment.check("object.name == 'a'"),)).is_provable is True


def test_variables_that_double_each_other_are_written_once() -> None:
    """Neither the function nor the work to write it grows beyond what is written in the rule."""
    doubling = {f"v{index}": f"variables.v{index - 1} + variables.v{index - 1}" for index in range(1, 40)}
    rule = claim("variables.v39.size() == 0", v0="object.spec.?volumes.orValue([])", **doubling)
    passes = fuse((rule, rule))
    assert passes is not None
    assert passes(POD) is True


def test_a_loop_gives_up_before_it_takes_too_many_steps() -> None:
    """Three loops over a thousand elements would be a thousand million steps."""
    passes = compile_pass_check(ENVIRONMENT.check("object.all(a, object.all(b, object.all(c, c != 'x')))"))
    assert passes is not None
    assert passes({"object": ["a"] * 1_000}) is False


def test_the_default_of_an_optional_value_must_not_fail() -> None:
    """As in the closures, it is computed even where it is not needed."""
    checked = ENVIRONMENT.check("object.?a.orValue(object.gone) == 1")
    passes = compile_pass_check(checked)
    assert passes is not None
    assert passes({"object": {"a": 1}}) is False
    assert passes({"object": {"a": 1, "gone": 2}}) is True
