"""Metadata: what the server fills in and what it refuses."""

from __future__ import annotations

import pytest

from kubesandbox.objects.metadata import (
    generated_name,
    metadata_errors,
    metadata_update_errors,
    ordered,
)
from pyverno.kube.json import JSONObject


def problems(**metadata: object) -> list[str]:
    """Return what is wrong with metadata."""
    return [str(error) for error in metadata_errors({"metadata": {"name": "a", **metadata}})]


def test_generated_names_have_room_for_their_letters() -> None:
    """A long base is cut, so that the name is a label."""
    name = generated_name("x" * 100, lambda letters: letters[-1])
    assert "x" * 58 + "99999" == name


@pytest.mark.parametrize(
    ("metadata", "begins"),
    [
        ({"labels": {"-": "a"}}, 'metadata.labels: Invalid value: "-": name part must consist of'),
        ({"labels": {"a": "b c"}}, 'metadata.labels: Invalid value: "b c": a valid label must be'),
        ({"annotations": {"x y": "1"}}, 'metadata.annotations: Invalid value: "x y": name part must consist of'),
        ({"annotations": {"a": "x" * 262144}}, "metadata.annotations: Too long: may not be more than 262144 bytes"),
        (
            {"finalizers": ["x"]},
            'metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully '
            "qualified",
        ),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and '
            "foregroundDeletion cannot be both set",
        ),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "1"}]},
            'metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"1"}: '
            "/v1, Kind=Event is disallowed from being an owner",
        ),
    ],
)
def test_wrong_metadata_has_the_error_texts_of_the_api_server(metadata: JSONObject, begins: str) -> None:
    """Each mistake gives one error."""
    (found,) = problems(**metadata)
    assert found.startswith(begins)


def test_annotation_keys_may_have_capitals_in_their_domain() -> None:
    """The key is validated in lower case."""
    assert [] == problems(annotations={"Example.COM/x": "1"})


def test_owners_need_all_their_fields_and_one_controller() -> None:
    """Every missing field is an error of its own."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": True}
    found = problems(ownerReferences=[{}, owner, {**owner, "name": "q"}])
    assert [
        'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
        'metadata.ownerReferences.kind: Invalid value: "": must not be empty',
        'metadata.ownerReferences.name: Invalid value: "": must not be empty',
        'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
    ] == found[:4]
    assert found[4].endswith(
        'Only one reference can have Controller set to true. Found "true" in references for Pod/p and Pod/q'
    )


def test_metadata_of_the_server_can_not_be_changed() -> None:
    """Nor can finalizers be added while the object is being deleted."""
    old = {"metadata": {"name": "a", "uid": "1", "deletionTimestamp": "T", "finalizers": ["a/b"]}}
    new = {"metadata": {"name": "a", "uid": "2", "deletionTimestamp": "T", "finalizers": ["a/b", "a/c"]}}
    assert [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new "
        'finalizers []string{"a/c"}',
        'metadata.uid: Invalid value: "2": field is immutable',
    ] * 2 == [str(error) for error in metadata_update_errors(new, old)]


def test_lists_rely_on_the_first_fields() -> None:
    """The order in which the client wrote the fields does not matter."""
    body = ordered({"z": 1, "kind": "Old", "metadata": {"name": "a"}}, "v1", "New")
    assert ["apiVersion", "kind", "metadata", "z"] == list(body)
    assert "New" == body["kind"]


@pytest.mark.parametrize(
    ("kind", "changed", "noted"),
    [("PodDisruptionBudget", 1, 1), ("LimitRange", 1, 2), ("Deployment", 2, 2), ("Widget", 2, 2), ("ConfigMap", 2, 3)],
)
def test_causes_of_updates_are_reported_as_often_as_upstream_finds_them(kind: str, changed: int, noted: int) -> None:
    """It judges metadata several times, and clients see the list of causes."""
    old = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "uid": "1"}}
    new = {**old, "metadata": {"name": "a", "uid": "2", "labels": {"-": "x"}}}
    fields = [error.field for error in metadata_update_errors(new, old)]
    assert (changed, noted) == (fields.count("metadata.uid"), fields.count("metadata.labels"))


@pytest.mark.parametrize(
    ("version", "name", "fields"),
    [
        ("v1", "a b", ["metadata.finalizers", "metadata.finalizers[0]"]),
        ("v1", "ab", ["metadata.finalizers[0]"]),
        ("v1", "example.com/ab", []),
        ("example.com/v1", "ab", []),
        ("policy/v1", "ab", []),
        ("example.com/v1", "a b", ["metadata.finalizers"]),
    ],
)
def test_finalizers_of_built_in_kinds_need_a_domain(version: str, name: str, fields: list[str]) -> None:
    """Finalizers of custom kinds need only a valid form."""
    body = {"apiVersion": version, "kind": "Any", "metadata": {"name": "a", "finalizers": [name]}}
    assert fields == [error.field for error in metadata_errors(body)]
