"""Tests of `validation.workloads`."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.validation.cases import claims, errors_of, prepared, refusals

ROWS = refusals("workloads")


@pytest.mark.parametrize(("body", "expected"), ROWS, ids=claims(ROWS))
def test_what_is_wrong_is_said_in_the_words_of_an_api_server(body: JSONObject, expected: list[str]) -> None:
    """Every row of the table is refused with exactly these errors."""
    assert sorted(expected) == sorted(errors_of(body))


POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "x"}]}}


def _workload(kind: str, **spec: object) -> JSONObject:
    selector = {"matchLabels": {"a": "b"}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "w"},
        "spec": {"selector": selector, "template": POD, **spec},
    }


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "DaemonSet"])
def test_a_selector_does_not_change(kind: str) -> None:
    """Only the selector: a changed template is no error."""
    other = {"metadata": {"labels": {"a": "b", "c": "d"}}, "spec": POD["spec"]}
    old = prepared(_workload(kind))
    assert [] == errors_of(_workload(kind, template=other), old)
    changed = _workload(kind, template=other, selector={"matchLabels": {"c": "d"}})
    assert ['spec.selector: Invalid value: {"matchLabels":{"c":"d"}}: field is immutable'] == errors_of(changed, old)


def test_a_stateful_set_changes_in_few_fields() -> None:
    """Replicas may change, the name of the service may not."""
    old = prepared(_workload("StatefulSet", serviceName="x"))
    assert [] == errors_of(_workload("StatefulSet", serviceName="x", replicas=3), old)
    errors = errors_of(_workload("StatefulSet", serviceName="y"), old)
    assert ["spec: Forbidden: updates to statefulset spec for fields other than 'replicas'"] == [
        error.partition(",")[0] for error in errors
    ]


def test_a_claim_of_a_stateful_set_is_a_volume() -> None:
    """A container mounts the claims by name."""
    claims_ = [
        {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": 1}}},
        }
    ]
    container = {"name": "a", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
    template = {**POD, "spec": {"containers": [container]}}
    assert [] == errors_of(_workload("StatefulSet", template=template, volumeClaimTemplates=claims_))
    missing = errors_of(_workload("StatefulSet", template=template))
    assert ['spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"'] == missing


def test_a_replication_controller_needs_a_valid_template() -> None:
    """Its selector is the labels of the template unless it is written; its containers need images like all others."""
    body: JSONObject = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "w"}}
    good = {**body, "spec": {"template": POD}}
    bad = {**body, "spec": {"template": {**POD, "spec": {"containers": [{"name": "a"}]}}}}
    other = {**body, "spec": {"template": POD, "selector": {"x": "y"}}}
    assert [] == errors_of(good)
    assert ["spec.template.spec.containers[0].image: Required value"] == errors_of(bad)
    mismatch = '{"a":"b"}: `selector` does not match template `labels`'
    assert [f"spec.template.metadata.labels: Invalid value: {mismatch}"] == errors_of(other)
