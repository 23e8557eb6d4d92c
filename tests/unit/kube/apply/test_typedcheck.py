"""Configurations are held against the schemas of their kinds."""

import pytest

from pyverno.kube.apply.schematree import schema_tree_for
from pyverno.kube.apply.typedcheck import problems
from pyverno.kube.gvk import GVK
from pyverno.kube.schemas import schema_set


def found(value, kind="Pod", *, group="", version="v1"):
    return problems(value, schema_tree_for(schema_set(), GVK(group, version, kind)))


@pytest.mark.parametrize(
    "value",
    [
        {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}]}},
        {"spec": {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"port": "http"}}}]}},
        {"spec": {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"port": 80}}}]}},
        {"metadata": {"labels": {"a": "b"}, "creationTimestamp": "2024-01-01T00:00:00Z", "finalizers": ["x"]}},
        {"metadata": None, "spec": {"containers": None, "hostNetwork": None, "nodeSelector": {"a": None}}},
        {"spec": {"terminationGracePeriodSeconds": 1.5}},
        {},
    ],
)
def test_what_fits_has_no_problems(value):
    """Quantities and ports accept any scalar, null fits every type, and integer fields accept any number."""
    assert "" == found(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"spce": {}}, ".spce: field not declared in schema"),
        ({"metadata": {"label": {}}}, ".metadata.label: field not declared in schema"),
        ({"spec": []}, ".spec: expected map, got &{[]}"),
        ({"spec": {"containers": {"b": 1, "a": ["x", None, True]}}}, None),
        (
            {"metadata": {"labels": {"a": 5}}},
            ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:5}",
        ),
        (
            {"metadata": {"labels": {"a": {"b": ["c", 1.5, None]}}}},
            ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:"
            'map[string]interface {}{"b":[]interface {}{"c", 1.5, interface {}(nil)}}}',
        ),
        ({"spec": {"hostNetwork": "yes"}}, ".spec.hostNetwork: expected boolean, got &{yes}"),
        ({"spec": {"priority": "1"}}, ".spec.priority: expected numeric (int or float), got string"),
        ({"spec": {"priority": True}}, ".spec.priority: expected numeric (int or float), got bool"),
        (
            {"spec": {"containers": [{"name": "a", "image": 5}]}},
            '.spec.containers[name="a"].image: expected string, got &value.valueUnstructured{Value:5}',
        ),
        (
            {"spec": {"containers": [{"name": "a", "args": [1]}]}},
            '.spec.containers[name="a"].args[0]: expected string, got &value.valueUnstructured{Value:1}',
        ),
        (
            {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": []}}}]}},
            '.spec.containers[name="a"].resources.limits.cpu: expected any scalar, got &{[]}',
        ),
        (
            {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}},
            '.spec.containers: duplicate entries for key [name="a"]',
        ),
        ({"metadata": {"finalizers": ["a", "a"]}}, '.metadata.finalizers: duplicate entries for key [="a"]'),
        (
            {"metadata": {"finalizers": [{}]}},
            ".metadata.finalizers: element 0: associative list without keys has an element that's a map type",
        ),
        (
            {"metadata": {"finalizers": [["a"]]}},
            ".metadata.finalizers: element 0: not supported: associative list with lists as elements",
        ),
        (
            {"metadata": {"finalizers": [None]}},
            ".metadata.finalizers: element 0: associative list without keys has an element that's an explicit null",
        ),
        ({"spec": {"priority": [1]}}, ".spec.priority: expected numeric (int or float), got []interface {}"),
        (
            {"spec": {"containers": [3]}},
            ".spec.containers: element 0: associative list with keys may not have non-map elements",
        ),
        ({"metadata": {"labels": "x"}}, ".metadata.labels: expected map, got &{x}"),
        (
            {"spec": {"containers": [{"tty": True}, {"tty": False}]}},
            '.spec.containers: duplicate entries for key [name=""]',
        ),
        (
            {"spec": {"containers": [None]}},
            ".spec.containers: element 0: associative list with keys may not have a null element",
        ),
    ],
)
def test_texts_are_those_of_structured_merge(value, text):
    """With the path of the field, list items by their keys."""
    assert (text or ".spec.containers: expected list, got &{map[a:[x <nil> true] b:1]}") == found(value)


def test_several_problems_are_listed():
    """Each map and value may add a problem."""
    value = {"metadata": {"x": 1}, "spec": {"hostNetwork": 1}}
    first, second = "  .metadata.x: field not declared in schema", "  .spec.hostNetwork: expected boolean, got &{1}"
    assert ["errors:", first, second] == found(value).splitlines()


def test_a_kind_without_a_schema_takes_everything():
    """Without a schema no field can be wrong."""
    assert "" == found({"a": [1, {}]}, "Odd", group="x.io")
