"""Tests of `validation.admission`."""

from __future__ import annotations

import pytest

from kubesandbox.schema.schemas import ObjectSchemas
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.validation.cases import claims, errors_of, refusals, type_of

ROWS = refusals("admission")


@pytest.mark.parametrize(("body", "expected"), ROWS, ids=claims(ROWS))
def test_what_is_wrong_is_said_in_the_words_of_an_api_server(body: JSONObject, expected: list[str]) -> None:
    """Every row of the table is refused with exactly these errors."""
    assert sorted(expected) == sorted(errors_of(body))


def test_expressions_are_those_of_the_version_of_the_server() -> None:
    """Kubernetes 1.32 has no semantic versions in CEL."""
    condition = {"name": "c", "expression": "semver('1.0.0').major() == 1"}
    hook = {
        "name": "a.b.c",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://a/b"},
        "matchConditions": [condition],
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "x"},
        "webhooks": [hook],
    }
    assert [] == errors_of(body)
    old = ObjectSchemas("1.32").validate(type_of(body), body)
    assert ["webhooks[0].matchConditions[0].expression"] == [error.field for error in old]
