"""Objects that differ from a plain one in one place."""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.compiler.equivalence.systematic import plain_object, systematic_objects
from pyverno.compiler.equivalence.vocabulary import Vocabulary, vocabulary_of
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import schema_set
from pyverno.policy.kinds import KNOWN_KINDS

POD = KNOWN_KINDS.by_kind("Pod")[0]


def policy(key: str, value: JSON) -> JSONObject:
    """Return a policy that denies Pods by one condition."""
    conditions = {"all": [{"key": key, "operator": "Equals", "value": value}]}
    rule = {
        "name": "r",
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "validate": {"message": "m", "deny": {"conditions": conditions}},
    }
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "spec": {"rules": [rule]},
    }


def objects(vocabulary: Vocabulary) -> list[JSONObject]:
    """Return the systematic Pods."""
    return [*systematic_objects(vocabulary, POD, schema_set())]


def at(body: JSON, *steps: str | int) -> JSON:
    """Return what is at a place, None for nothing."""
    for step in steps:
        if isinstance(body, Mapping):
            body = body.get(str(step))
        elif isinstance(body, list) and isinstance(step, int) and step < len(body):
            body = body[step]
        else:
            return None
    return body


def test_labels_that_are_read_get_the_values_beside_the_constant() -> None:
    """The key comes from the expression, the values from both sides of the boundary."""
    found = objects(vocabulary_of([policy("{{ request.object.metadata.labels.size || '' }}", "1Gi")]))
    values = {at(each, "metadata", "labels", "size") for each in found}
    assert values >= {"1Gi", "0Gi", "2Gi", "1024Mi", "", "x"}


def test_a_value_of_a_container_is_in_every_list_of_containers() -> None:
    """First and second container, init containers, ephemeral containers."""
    found = objects(vocabulary_of([policy("{{ request.object.spec.containers[].image }}", "nginx")]))
    places = (
        ("containers", 0, "image"),
        ("containers", 1, "image"),
        ("initContainers", 0, "image"),
        ("ephemeralContainers", 0, "image"),
    )
    for place in places:
        assert "nginx" in {at(each, "spec", *place) for each in found}


def test_fields_of_one_element_are_set_together() -> None:
    """A condition on kind and name of a subject is met by neither alone."""
    binding = KNOWN_KINDS.by_kind("RoleBinding")[0]
    key = "{{ length((request.object.subjects || `[]`)[?kind == 'Group' && name == 'system:masters']) > `0` }}"
    found = systematic_objects(vocabulary_of([policy(key, value=True)]), binding, schema_set())
    subjects = [at(each, "subjects", 0) for each in found]
    assert {"kind": "Group", "name": "system:masters"} in subjects


def test_what_a_policy_counts_has_as_many_items_as_it_names() -> None:
    """Lists, maps and names of the length beside the constant; other policies get no long ones."""
    places = (("spec", "containers"), ("metadata", "labels"), ("metadata", "finalizers"), ("metadata", "name"))
    for place in places:
        key = f"{{{{ length(request.object.{'.'.join(place)}) }}}}"
        for counts, written in ((True, key), (False, key.replace("length", "to_array"))):
            values = [at(each, *place) for each in objects(vocabulary_of([policy(written, 12)]))]
            lengths = {len(each) for each in values if isinstance(each, (str, list, dict))}
            assert counts is ({12, 13} <= lengths), (place, written)


def test_words_of_the_policy_are_no_values() -> None:
    """Operators, messages and names of kinds never become values of fields."""
    vocabulary = vocabulary_of([policy("{{ request.object.metadata.labels.a }}", "b")])
    assert {"Equals", "m", "Pod", "r"}.isdisjoint({str(each) for each in vocabulary.constants})


def test_a_kind_without_a_schema_gives_the_plain_object_alone() -> None:
    """Custom kinds are known by name only."""
    vocabulary = vocabulary_of([policy("{{ request.object.spec.a }}", 1)])
    assert [plain_object(POD)] == [*systematic_objects(vocabulary, POD, schema_set().__class__("", {}, {}))]
