"""CleanupPolicies in CEL: the table of cases."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSONObject
from tests.support.migrationcases import cleanup_of, convert, judge, rows_of

ROWS = rows_of("cleanups.yaml")
CONVERTED = [row for row in ROWS if "refused" not in row]
REFUSED = [row for row in ROWS if "refused" in row]
SEEDS: list[JSONObject] = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": phase.lower(), "namespace": "n"},
        "status": {"phase": phase},
    }
    for phase in ("Succeeded", "Running")
] + [
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": label},
            "annotations": {f"cleanup/{name}": "true"},
        },
    }
    for name, namespace, label in (("web", "team-a", "a"), ("a", "default", "web"), ("w", "default", "x"))
]


def title(row: JSONObject) -> str:
    """Return the name of a row's test."""
    return str(row["claim"])


@pytest.mark.parametrize("row", CONVERTED, ids=title)
def test_a_policy_becomes_the_conditions_that_the_table_shows(row: JSONObject) -> None:
    """Schedule and propagation stay; conditions, variables and notes are those of the table."""
    ((document,), notes, _) = convert(cleanup_of(row))
    spec = document["spec"]
    kind = "DeletingPolicy" if row["kind"] == "ClusterCleanupPolicy" else "NamespacedDeletingPolicy"
    assert kind == document["kind"]
    for name in ("schedule", "deletionPropagationPolicy"):
        assert row["cleanup"].get(name) == spec.get(name)
    for name in ("conditions", "variables"):
        assert row.get(name, {}) == {each["name"]: each["expression"] for each in spec.get(name, [])}
    assert row.get("notes", []) == [*notes]


@pytest.mark.parametrize("row", CONVERTED, ids=title)
def test_the_same_objects_are_deleted(row: JSONObject) -> None:
    """Among generated ones and a few that reach the conditions."""
    policy = cleanup_of(row)
    kinds = {each.rpartition("/")[2] for block in _blocks(policy) for each in block["resources"]["kinds"]}
    seeds = [each for each in SEEDS if each["kind"] in kinds]
    found = judge([policy], convert(policy)[0], count=60, kinds=[*kinds], seeds=seeds)
    assert None is found.counterexample
    assert not seeds or found.first["effects"]


@pytest.mark.parametrize("row", REFUSED, ids=title)
def test_a_condition_without_an_equal_form_is_refused(row: JSONObject) -> None:
    """With the code and the next step."""
    documents, _, refused = convert(cleanup_of(row))
    assert () == documents
    assert refused is not None
    assert (row["refused"], True) == (refused.code, bool(refused.advice))


def _blocks(policy: JSONObject) -> list[JSONObject]:
    match = policy["spec"]["match"]
    return [*match.get("any", []), *match.get("all", [])]
