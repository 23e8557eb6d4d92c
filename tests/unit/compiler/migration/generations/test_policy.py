"""Generate rules in CEL: the table of cases, and the library's own rules."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.policylibrary import Control, list_controls
from tests.support.migrationcases import convert, judge, policy_of, rows_of

ROWS = rows_of("generations.yaml")
CONVERTED = [row for row in ROWS if "becomes" in row]
REFUSED = [row for row in ROWS if "refused" in row]
OBJECTS: list[JSONObject] = [
    {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels},
    }
    for kind, name, labels in (
        ("Secret", "regcred", {"a": "b"}),
        ("Secret", "s2", {"copy": "yes"}),
        ("ConfigMap", "c", {"copy": "yes"}),
    )
]
SEEDS: list[JSONObject] = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": {"names": "a,b"}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "team-a"}, "data": {"names": "a"}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"team": "t", "app": "web"}}},
]


def title(row: JSONObject) -> str:
    """Return the name of a row's test."""
    return str(row["claim"])


@pytest.mark.parametrize("row", CONVERTED, ids=title)
def test_a_rule_becomes_the_calls_that_the_table_shows(row: JSONObject) -> None:
    """Calls, match conditions, variables, and the codes of notes."""
    ((document,), notes, _) = convert(policy_of(row))
    spec = document["spec"]
    named = [
        {each["name"]: each["expression"] for each in spec.get(name, [])} for name in ("matchConditions", "variables")
    ]
    assert document["kind"] == f"{'Namespaced' if 'namespace' in row else ''}GeneratingPolicy"
    assert row["becomes"] == [each["expression"] for each in spec["generate"]]
    assert [row.get("matchConditions", {}), row.get("variables", {})] == named
    assert row.get("notes", []) == [*notes]


@pytest.mark.parametrize("row", CONVERTED, ids=title)
def test_the_same_objects_are_generated(row: JSONObject) -> None:
    """Up to the labels by which controllers know what they made; with the same word about synchronisation."""
    policy = policy_of(row)
    seeds = [each for each in SEEDS if each["kind"] == row["kind"]]
    found = judge([policy], convert(policy)[0], count=30, kinds=[row["kind"]], seeds=seeds, objects=OBJECTS)
    assert None is found.counterexample
    assert found.requests


@pytest.mark.parametrize("row", REFUSED, ids=title)
def test_a_generation_without_an_equal_form_is_refused(row: JSONObject) -> None:
    """With the code, the field and the next step."""
    documents, _, refused = convert(policy_of(row))
    assert () == documents
    assert refused is not None
    assert (row["refused"], True) == (refused.code, bool(refused.advice))


def test_rules_that_are_triggered_by_deletions_stay() -> None:
    """The two dialects read different objects then."""
    policy = policy_of(next(row for row in CONVERTED if row["kind"] == "Namespace"))
    policy["spec"]["rules"][0]["match"]["any"][0]["resources"]["operations"] = ["DELETE"]
    refused = convert(policy)[2]
    assert refused is not None
    assert "generate-on-delete" == refused.code


CHANGING = [
    control
    for control in list_controls()
    if not control.is_cel
    and {*load_documents(control.path.read_text())[0].value["spec"]["rules"][0]} & {"mutate", "generate"}
]


@pytest.mark.parametrize("control", CHANGING, ids=lambda control: control.name)
def test_the_librarys_policies_convert_and_do_the_same(control: Control) -> None:
    """Every policy of ours that mutates or generates."""
    policy = load_documents(control.path.read_text())[0].value
    documents, _, refused = convert(policy)
    assert None is refused
    found = judge([policy], documents, count=60)
    assert None is found.counterexample
