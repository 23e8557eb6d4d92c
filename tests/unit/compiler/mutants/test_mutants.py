"""Mutants of policies: one change each, never twice the same, and what means the same is not made."""

from __future__ import annotations

import pytest

from pyverno.compiler.mutants.conditions import condition_changes
from pyverno.compiler.mutants.expressions import expression_edits
from pyverno.compiler.mutants.matching import constraint_changes, selection_changes
from pyverno.compiler.mutants.patterns import overlay_changes, pattern_changes
from pyverno.compiler.mutants.policies import mutants_of
from pyverno.compiler.mutants.values import pattern_texts
from pyverno.kube.json import encode
from pyverno.kube.yaml.documents import load_documents
from tests.support import documents


def titles(changes: object) -> list[str]:
    return [change.title for change in changes]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("a | b", ["b", "a"]),
        (">1 & <3", ["<3", ">1", ">=1 & <3", ">1 & <=3"]),
        ("!x", ["x"]),
        ("?*", ["*"]),
        ("*", []),
        ("true", ["false"]),
        ("3", ["4"]),
        ("word", ["word-mutant"]),
        ("a | a", []),
    ],
)
def test_values_of_patterns_change_by_their_operators(text: str, others: list[str]) -> None:
    """A duplicated alternative is not dropped, because the other copy keeps the meaning."""
    assert others == list(pattern_texts(text))


def test_the_value_of_a_negation_anchor_is_left_alone() -> None:
    """The engine never reads it, so such a mutant would certainly mean the same."""
    assert ["key `X(hostPath)` is dropped"] == titles(pattern_changes({"X(hostPath)": "null"}, ()))


def test_keys_lose_and_gain_anchors() -> None:
    """Anchors matter most where keys are optional."""
    found = titles(pattern_changes({"=(a)": 1, "b": {"c": "?*"}}, ()))
    assert "key `=(a)` becomes `a`" in found
    assert "key `c` becomes `=(c)`" in found
    assert ["key `+(x)` becomes `x`", "key `+(x)` is dropped", "`y` becomes `y-mutant`"] == titles(
        overlay_changes({"+(x)": "y"}, ())
    )


def test_conditions_change_operator_value_and_group() -> None:
    """A single condition has no other group."""
    one = {"all": [{"key": "k", "operator": "GreaterThan", "value": 2}]}
    assert [
        "`GreaterThan` becomes `GreaterThanOrEquals`",
        "`GreaterThan` becomes `LessThan`",
        "`2` becomes `3`",
        "`2` becomes `1`",
    ] == titles(condition_changes(one, ()))
    assert "key `all` becomes `any`" in titles(condition_changes({"all": one["all"] * 2}, ("p",)))


def test_what_is_selected_loses_elements_and_blocks() -> None:
    """Kinds that a wildcard includes are not dropped, nor is the only field of a block."""
    rule = {
        "match": {"any": [{"resources": {"kinds": ["Pod", "Job"], "names": ["a"]}}]},
        "exclude": {"resources": {"kinds": ["*", "Pod"]}},
    }
    assert [
        "`Pod` of `kinds` is dropped",
        "`Job` of `kinds` is dropped",
        "`names` is dropped",
        "exclude is dropped",
        "`*` of `kinds` is dropped",
    ] == titles(selection_changes(rule, ()))
    constraints = {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "resources": ["pods"]}]}
    assert ["`CREATE` of `operations` is dropped", "`UPDATE` of `operations` is dropped"] == titles(
        constraint_changes(constraints, ())
    )


@pytest.mark.parametrize(
    ("text", "mutants"),
    [
        ("a == 'x'", ["a != 'x'", "a == 'x-mutant'"]),
        ("!a", ["a"]),
        ("l.all(x, x)", ["l.exists(x, x)"]),
        ("a ? b : c", ["false ? b : c", "true ? b : c"]),
        ("a in ['x', 'y']", ["a in ['y']", "a in ['x']", "a in ['x-mutant', 'y']", "a in ['x', 'y-mutant']"]),
        ("(a || b) && c", ["(a) && c", "(b) && c", "(a && b) && c", "a || b", "c", "(a || b) || c"]),
        ("a &&", []),
    ],
)
def test_expressions_change_operators_constants_macros_and_operands(text: str, mutants: list[str]) -> None:
    """Texts change at their characters; what does not parse has no mutants."""
    assert sorted(mutants) == sorted(edit.apply(text) for edit in expression_edits(text))


@pytest.mark.parametrize(
    ("text", "mutants"),
    [
        ("a.?b.orValue('') == 'x'", 2),
        ("'x' != a.?b.orValue('')", 2),
        ("a.?b.orValue('') in ['x', 'y']", 4),
        ("a.?b.orValue('').startsWith('x')", 1),
        ("a.?b.orValue('') == ''", 3),
        ("a.?b.orValue('x') in ['x', 'y']", 5),
        ("a.?b.orValue('').contains('')", 2),
        ("a.?b.orValue('') == c", 2),
    ],
)
def test_a_default_changes_only_where_a_comparison_could_notice(text: str, mutants: int) -> None:
    """`''` and `'-mutant'` are both different from `'x'`; against `''`, or a value of the object, it matters."""
    assert mutants == len(expression_edits(text))


def test_each_mutant_of_a_policy_is_another_document() -> None:
    """The original is not among them, and is not changed."""
    value = load_documents(documents.LATEST)[0].value
    before = encode(value)
    found = [encode(mutant.document) for mutant in mutants_of(value)]
    assert (len(found), before, True) == (len({*found}), encode(value), before not in found)
    assert mutants_of({"kind": "Pod"}) == ()
