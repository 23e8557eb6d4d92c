"""Clusters that answer what policies read."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.cli.migrate.certificate import Settings
from pyverno.cli.migrate.conversion import convert_document
from pyverno.compiler.equivalence.cluster import cluster_objects, cluster_reads
from pyverno.compiler.equivalence.vocabulary import vocabulary_of
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from tests.support.migration import admission
from tests.support.migrationcases import BOOK


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"configMap": {"name": "c", "namespace": "{{ x }}"}}, ("ConfigMap", "", "c")),
        ({"apiCall": {"urlPath": "/apis/apps/v1/namespaces/n/deployments/d"}}, ("Deployment", "n", "d")),
        ({"apiCall": {"urlPath": "/api/v1/namespaces/{{ request.namespace }}/pods"}}, ("Pod", "", "")),
        ({"expression": "resource.Get('v1', 'configmaps', object.metadata.namespace, 'c')"}, ("ConfigMap", "", "c")),
        ({"expression": "size(resource.List('apps/v1', 'deployments', 'n').items)"}, ("Deployment", "n", "")),
        ({"targets": [{"apiVersion": "v1", "kind": "Secret", "name": "s*"}]}, ("Secret", "", "")),
        ({"apiVersion": "v1", "kind": "Secret", "clone": {"name": "s", "namespace": "n"}}, ("Secret", "n", "s")),
        ({"cloneList": {"kinds": ["v1/Secret"], "namespace": "n"}}, ("Secret", "n", "")),
    ],
)
def test_reads_of_all_forms_are_found(part: JSONObject, expected: tuple[str, str, str]) -> None:
    """Names and namespaces that depend on the request stay open."""
    (found,) = cluster_reads([{"spec": part}])
    assert expected == (found.kind.kind, found.namespace, found.name)


def test_some_namespaces_hold_objects_and_some_hold_none() -> None:
    """Given objects stand in for generated ones of the same name."""
    reads = cluster_reads([{"spec": {"apiCall": {"urlPath": "/api/v1/namespaces/{{ request.namespace }}/secrets"}}}])
    given: JSONObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret-0", "namespace": "team-a"}}
    found = cluster_objects(reads, vocabulary_of([]), admission(), [{**given, "type": "example.com/own"}])
    counts = [sum(each["metadata"]["namespace"] == name for each in found) for name in ("default", "team-a", "prod")]
    assert [0, 1, 3] == counts
    assert ["example.com/own"] == [each["type"] for each in found if each["metadata"]["namespace"] == "team-a"]


def reading(entry: JSONObject, condition: JSONObject) -> JSONObject:
    """Return a policy that denies by what it reads."""
    rule: dict[str, Any] = {
        "name": "r",
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "operations": ["CREATE", "UPDATE"]}}]},
        "context": [{"name": "found", **entry}],
        "validate": {
            "failureAction": "Enforce",
            "allowExistingViolations": False,
            "message": "no",
            "deny": {"conditions": {"all": [condition]}},
        },
    }
    spec = {"background": False, "rules": [rule]}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": spec}


READING = [
    reading(
        {"apiCall": {"urlPath": "/api/v1/namespaces/{{ request.namespace }}/secrets", "jmesPath": "items | length(@)"}},
        {"key": "{{ found }}", "operator": "GreaterThan", "value": 1},
    ),
    reading(
        {"configMap": {"name": "limits", "namespace": "{{ request.namespace }}"}},
        {"key": "{{ found.data.open || 'no' }}", "operator": "Equals", "value": "no"},
    ),
]


@pytest.mark.parametrize("written", READING, ids=["a list", "a ConfigMap"])
def test_rules_that_read_the_cluster_are_converted_and_tested(written: JSONObject) -> None:
    """Both sides get the same answers, and refuse some requests and allow some."""
    (document,) = load_documents(dump_yaml(written))
    found = convert_document(document, BOOK, Settings(60, 1, "1.35", admission()), selected=lambda _: True, text="")
    assert ["converted (tested)"] == [line.state for line in found.lines], found.lines
    assert found.certificate is not None
    assert found.certificate["clusterObjects"] > 1
