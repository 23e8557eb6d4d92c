"""Generated pass-checks: what they cover, and that no text of a policy enters the source."""

from typing import Any

import pytest

from pyverno.lang.cel import passcheck
from pyverno.lang.cel.presets import kyverno_environment
from pyverno.lang.cel.types import DYN
from pyverno.lang.codegen import Source

ENVIRONMENT = kyverno_environment("ValidatingPolicy").with_variables({"object": DYN})
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

    monkeypatch.setattr(passcheck.Source, "line", record)
    evil = "__import__('os')"
    text = (
        f"object.evilfield == \"{evil}\" && object['evilkey'].startsWith('evil') && "
        "object.all(evilname, evilname != 'e')"
    )
    assert ENVIRONMENT.compile(text).pass_check() is not None
    assert lines
    assert not any("evil" in line or "import" in line or "'" in line or '"' in line for line in lines)


@pytest.mark.parametrize(
    "text", ["dyn(resource.get('v1', 'pods', 'a', 'b')) == null", "object.a + 'b' == 'ab'", "1 in [1]"]
)
def test_what_is_beyond_has_no_pass_check(text: str) -> None:
    """Rare parts have no generated form; the closures answer."""
    assert ENVIRONMENT.compile(text).pass_check() is None
