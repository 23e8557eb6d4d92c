"""Conditions in CEL: the table of cases, and how conditions join."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pyverno.compiler.migration.conditions import condition, conditions
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.lang.jmespath.functions import TOPICS
from tests.support.migration import compare_rule, convert_rule, names_for

CASES = Path(__file__).parents[4] / "cases" / "migration" / "conditions.yaml"
ROWS: list[JSONObject] = load_documents(CASES.read_text())[0].value
CONVERTED = [row for row in ROWS if "passes" in row]
REFUSED = [row for row in ROWS if "refused" in row]
CUSTOM = "Widget"
CALL = re.compile(r"\b([a-z_0-9]+)\(")
FAILING = {"key": "{{ request.object.metadata.labels.team }}", "operator": "Equals", "value": "a"}
TRUE = {"key": "{{ request.operation }}", "operator": "Equals", "value": "CREATE"}
FALSE = {"key": "{{ request.operation }}", "operator": "Equals", "value": "DELETE"}


def rule_of(row: JSONObject) -> JSONObject:
    """Return a rule that denies what fulfils the condition of a row."""
    written = {name: row.get(name) for name in ("key", "operator", "value")}
    return {"validate": {"deny": {"conditions": {"all": [written]}}}}


def title(row: JSONObject) -> str:
    """Return the name of a row's test."""
    return f"{row['key']} {row['operator']} {row['value']}"


@pytest.mark.parametrize("row", CONVERTED, ids=title)
def test_a_condition_becomes_the_test_that_the_table_shows(row: JSONObject) -> None:
    """The validation is the negation of the condition, in the words of the table."""
    made = convert_rule(rule_of(row), row["kind"])
    assert row["passes"] == made["spec"]["validations"][0]["expression"]


@pytest.mark.parametrize("row", [row for row in CONVERTED if row["kind"] != CUSTOM], ids=title)
def test_a_condition_decides_in_cel_as_before(row: JSONObject) -> None:
    """No generated object, created or updated, is refused by one dialect and admitted by the other."""
    rule = rule_of(row)
    found = compare_rule(rule, row["kind"], convert_rule(rule, row["kind"]), count=45)
    assert None is found.counterexample
    assert found.requests


@pytest.mark.parametrize("row", REFUSED, ids=title)
def test_a_condition_without_an_exact_form_is_refused_with_its_code(row: JSONObject) -> None:
    """The refusal names the field, the reason and a next step."""
    with pytest.raises(UnconvertibleError) as raised:
        convert_rule(rule_of(row), row["kind"])
    refused = raised.value.refused
    assert row["refused"] == refused.code
    assert refused.path.startswith("validate.deny.conditions.all[0]")
    assert refused.reason
    assert refused.advice


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, "true"),
        ({"any": []}, "false"),
        ({"all": [TRUE, TRUE]}, "request.operation == 'CREATE'"),
        ({"any": [TRUE], "all": [FALSE]}, "request.operation == 'CREATE' && request.operation == 'DELETE'"),
        ([TRUE, FALSE], "request.operation == 'CREATE' && request.operation == 'DELETE'"),
        ([{"any": [TRUE]}, {"any": [FALSE]}], "request.operation == 'CREATE' && request.operation == 'DELETE'"),
        ({"all": [FAILING, FALSE]}, "object.metadata.labels.team == 'a' ? request.operation == 'DELETE' : false"),
        ({"all": [FALSE, FAILING]}, "request.operation == 'DELETE' && object.metadata.labels.team == 'a'"),
        (
            {"any": [FALSE], "all": [FAILING]},
            "object.metadata.labels.team == 'a' ? request.operation == 'DELETE' : false",
        ),
        ({"any": [FAILING, TRUE]}, "object.metadata.labels.team == 'a' ? true : request.operation == 'CREATE'"),
    ],
)
def test_conditions_join_without_forgetting_an_error(written: JSON, expected: str) -> None:
    """CEL ignores an error beside a value that decides; where Kyverno does not, a ternary keeps it."""
    assert expected == conditions(written, names_for("Pod"), "preconditions").text


def test_in_a_denial_an_error_beside_true_needs_no_guard() -> None:
    """Both refuse the object."""
    written = {"any": [FAILING, TRUE]}
    expected = "object.metadata.labels.team == 'a' || request.operation == 'CREATE'"
    assert expected == conditions(written, names_for("Pod"), "deny", strict=False).text


def test_one_condition_is_written_by_itself() -> None:
    """`condition` returns the test of a single key, operator and value."""
    assert "request.operation == 'CREATE'" == condition(TRUE, names_for("Pod"), "").text


@pytest.mark.parametrize("written", ["x", {"all": "x"}, {"all": ["x"]}, ["x"]])
def test_malformed_conditions_are_refused(written: JSON) -> None:
    """Conditions that fail in Kyverno at run time have no conversion."""
    with pytest.raises(UnconvertibleError):
        conditions(written, names_for("Pod"), "preconditions")


def test_every_function_of_jmespath_has_a_row() -> None:
    """It is converted, or refused with its reason."""
    called = {name for row in ROWS for name in CALL.findall(f"{row['key']} {row['value']}")}
    assert set() == {name for _, names in TOPICS.values() for name in names.split()} - called
