"""Tests of `validation.services`."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.validation.cases import claims, errors_of, prepared, refusals

ROWS = refusals("services")


@pytest.mark.parametrize(("body", "expected"), ROWS, ids=claims(ROWS))
def test_what_is_wrong_is_said_in_the_words_of_an_api_server(body: JSONObject, expected: list[str]) -> None:
    """Every row of the table is refused with exactly these errors."""
    assert sorted(expected) == sorted(errors_of(body))


def _service(**spec: object) -> JSONObject:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], **spec}}


def test_a_service_keeps_its_address() -> None:
    """A written address is compared with the stored one; an absent one is filled in."""
    old = prepared(_service(clusterIP="10.96.0.7"))
    assert [] == errors_of(_service(), old)
    errors = errors_of(_service(clusterIP="10.96.0.8"), old)
    assert ['spec.clusterIPs[0]: Invalid value: ["10.96.0.8"]: may not change once set'] == errors


def test_a_service_can_become_a_name() -> None:
    """Its cluster address is released then."""
    old = prepared(_service())
    new = _service(type="ExternalName", externalName="a.example.com")
    assert [] == errors_of(new, old)
    assert "clusterIP" not in prepared(new, old)["spec"]
