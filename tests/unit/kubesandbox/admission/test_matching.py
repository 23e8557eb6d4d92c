"""Matching of requests by rules and selectors."""

from __future__ import annotations

import pytest

from kubesandbox.admission.matching import is_namespace_selected, is_object_selected, matched_type
from pyverno.engine.cel.constraints import ResourceRule
from pyverno.engine.request import Operation
from pyverno.kube.selector import compile_selector
from pyverno.kube.status import StatusError
from tests.support.admissionstage import TABLE, cluster, config_map, namespace, request

SELECTED = compile_selector({"matchLabels": {"a": "1"}})


def event(version):
    return {"apiVersion": version, "kind": "Event", "metadata": {"name": "e", "namespace": "x"}}


def rule(group, version, resource="events", **fields):
    return ResourceRule.of(groups=[group], versions=[version], operations=["*"], resources=[resource], **fields)


@pytest.mark.parametrize(
    ("rules", "is_equivalent", "expected"),
    [
        ([rule("", "v1")], True, "v1"),
        ([rule("events.k8s.io", "v1")], True, "events.k8s.io/v1"),
        ([rule("events.k8s.io", "v1")], False, None),
        ([rule("events.k8s.io", "v1"), rule("", "v1")], True, "v1"),
        ([rule("", "v1", names=["other"])], True, None),
        ([rule("", "v1", names=["other"]), rule("events.k8s.io", "v1", names=["e"])], True, "events.k8s.io/v1"),
        ([rule("", "v1", "pods")], True, None),
    ],
)
def test_rules_fit_through_other_groups_of_the_same_objects(rules, is_equivalent, expected):
    """The request's own version comes first, then the rules in their order."""
    found = matched_type(rules, request(event("v1")), TABLE, is_equivalent=is_equivalent)
    assert expected == (None if found is None else found.api_version)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [("1", None, True), ("2", "1", True), ("1", "2", True), ("2", "2", False), (None, "1", True), (None, "2", False)],
)
def test_objects_are_selected_as_they_are_or_as_they_were(new, old, expected):
    """It is enough that either the old or the new object matches."""
    bodies = [None if label is None else config_map(labels={"a": label}) for label in (new, old)]
    operation = Operation.DELETE if new is None else Operation.UPDATE
    attributes = request(bodies[0], old=bodies[1], operation=operation)
    assert expected is is_object_selected(SELECTED, attributes)


def test_namespaces_are_selected_by_what_they_are_going_to_be():
    """While they are deleted, and for their subresources, by what they are."""
    _, view = cluster(namespace("team", a="1"))
    changed, stored = namespace("team", a="2"), namespace("team", a="1")
    update = request(changed, old=stored, operation=Operation.UPDATE)
    status = request(changed, old=stored, operation=Operation.UPDATE, subresource="status")
    delete = request(None, old=stored, operation=Operation.DELETE)
    assert [False, True, True] == [is_namespace_selected(SELECTED, each, view) for each in (update, status, delete)]


def test_objects_outside_of_namespaces_are_always_selected():
    """There is nothing that a namespaceSelector could look at; a namespace that is missing is not found."""
    _, view = cluster()
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert is_namespace_selected(SELECTED, request(node), view)
    assert is_namespace_selected(None, request(config_map()), view)
    lost = config_map()
    lost["metadata"]["namespace"] = "lost"
    with pytest.raises(StatusError, match='namespaces "lost" not found'):
        is_namespace_selected(SELECTED, request(lost), view)
