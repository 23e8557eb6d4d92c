"""Tests of `validation.storage`."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.validation.cases import claims, errors_of, prepared, refusals

ROWS = refusals("storage")


@pytest.mark.parametrize(("body", "expected"), ROWS, ids=claims(ROWS))
def test_what_is_wrong_is_said_in_the_words_of_an_api_server(body: JSONObject, expected: list[str]) -> None:
    """Every row of the table is refused with exactly these errors."""
    assert sorted(expected) == sorted(errors_of(body))


def _claim(**spec: object) -> JSONObject:
    base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {**base, **spec}}


def test_a_claim_is_bound_once() -> None:
    """The volume may be set, and nothing else may change."""
    old = prepared(_claim())
    assert [] == errors_of(_claim(volumeName="v"), old)
    errors = errors_of(_claim(accessModes=["ReadWriteMany"]), old)
    assert ["spec: Forbidden: spec is immutable after creation except resources.requests"] == [
        error.partition(" and ")[0] for error in errors
    ]


@pytest.mark.parametrize(
    ("field", "value"), [("provisioner", "y"), ("parameters", {"a": "b"}), ("reclaimPolicy", "Retain")]
)
def test_a_storage_class_stays_as_it_is(field: str, value: object) -> None:
    """Volumes were made by it."""
    body = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "x"}, "provisioner": "x"}
    errors = errors_of({**body, field: value}, prepared(body))
    assert [f"{field}: Forbidden: updates to {field} are forbidden."] == errors
