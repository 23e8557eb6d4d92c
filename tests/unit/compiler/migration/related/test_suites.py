"""Suites of converted policies: names, files, rules and flags of the rows."""

from __future__ import annotations

import pytest

from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.related.successors import Successor, Successors
from pyverno.compiler.migration.related.suites import convert_suite
from pyverno.kube.json import JSONObject

SUCCESSORS = Successors(
    (
        Successor("p", "a", "p", "ValidatingPolicy", frozenset({"Pod"})),
        Successor("p", "autogen-a", "p", "ValidatingPolicy", frozenset({"Deployment"})),
        Successor("p", "b", "p", "ValidatingPolicy", frozenset({"Pod"})),
        Successor("p", "m", "p-m", "MutatingPolicy", frozenset({"Pod"})),
    ),
    frozenset({("p", "old")}),
)


def suite(*rows: JSONObject, **fields: object) -> JSONObject:
    """Return a suite with results."""
    head = {"apiVersion": "cli.kyverno.io/v1alpha1", "kind": "Test", "metadata": {"name": "s"}}
    return {**head, "policies": ["p.yaml"], "resources": ["r.yaml"], **fields, "results": [*rows]}


def row(rule: str, result: str, *resources: str, kind: str = "Pod", **more: object) -> JSONObject:
    """Return one row."""
    return {"policy": "p", "rule": rule, "kind": kind, "resources": [*resources], "result": result, **more}


def results(*rows: JSONObject) -> list[JSONObject]:
    """Return the converted rows."""
    found: list[JSONObject] = convert_suite(suite(*rows), SUCCESSORS).documents[0]["results"]
    return found


def test_a_row_names_the_new_policy_and_its_kind() -> None:
    """The rule is removed; resources, kind and result stay."""
    expected = {
        "policy": "p-m",
        "isMutatingPolicy": True,
        "kind": "Pod",
        "result": "pass",
        "patchedResources": "x.yaml",
    }
    (found,) = results(row("m", "pass", "a", "b", patchedResources="x.yaml"))
    assert {**expected, "resources": ["a", "b"]} == found


def test_a_rows_copies_for_controllers_are_those_of_the_rule() -> None:
    """By the rule's own name, or that of the copy."""
    expected = {"policy": "p", "isValidatingPolicy": True, "kind": "Deployment", "resources": ["d"], "result": "fail"}
    assert [expected] == results(row("a", "fail", "d", kind="Deployment"))
    assert [expected] == results(row("autogen-a", "fail", "d", kind="Deployment"))


def test_rules_that_became_one_policy_have_the_worst_result() -> None:
    """A policy fails where one of its validations does."""
    found = results(row("a", "pass", "x", "y"), row("b", "fail", "y"), row("b", "skip", "x"))
    assert [("pass", ["x"]), ("fail", ["y"])] == [(each["result"], each["resources"]) for each in found]


def test_a_skipped_mutation_is_left_out() -> None:
    """The new policy passes where it changes nothing, so the row is dropped with a note."""
    made = convert_suite(suite(row("m", "skip", "a"), row("m", "pass", "b")), SUCCESSORS)
    assert ["b"] == [name for each in made.documents[0]["results"] for name in each["resources"]]
    assert ("suite-skip",) == tuple(note.code for note in made.notes)


def test_rows_of_rules_that_stay_are_kept() -> None:
    """Beside those of the new policies."""
    kept = row("old", "pass", "x")
    assert [kept] == results(kept)


def test_a_row_of_an_unknown_rule_is_refused() -> None:
    """A row whose rule does not exist never tested a rule."""
    with pytest.raises(UnconvertibleError) as raised:
        results(row("nothing", "pass", "x"))
    assert ("suite-rule", "results[0]") == (raised.value.refused.code, raised.value.refused.path)


def test_files_and_values_are_followed() -> None:
    """Files of policies are exchanged; values of rules are noted, because they have no place any more."""
    made = convert_suite(suite(variables="values.yaml"), SUCCESSORS, {"p.yaml": ["p.yaml", "p-m.yaml"]})
    assert ["p.yaml", "p-m.yaml"] == made.documents[0]["policies"]
    assert ("suite-values",) == tuple(note.code for note in made.notes)
