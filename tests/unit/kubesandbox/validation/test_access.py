"""Tests of `validation.access`."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.validation.cases import claims, errors_of, prepared, refusals

ROWS = refusals("access")


@pytest.mark.parametrize(("body", "expected"), ROWS, ids=claims(ROWS))
def test_what_is_wrong_is_said_in_the_words_of_an_api_server(body: JSONObject, expected: list[str]) -> None:
    """Every row of the table is refused with exactly these errors."""
    assert sorted(expected) == sorted(errors_of(body))


def test_a_binding_binds_the_same_role() -> None:
    """Subjects may change, the role may not."""
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "x"},
        "roleRef": {"kind": "Role", "name": "r"},
    }
    old = prepared(body)
    assert [] == errors_of({**body, "subjects": [{"kind": "User", "name": "u"}]}, old)
    shown = '{"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"r"}'
    expected = [f"roleRef: Invalid value: {shown}: cannot change roleRef"]
    assert expected == errors_of({**body, "roleRef": {"kind": "ClusterRole", "name": "r"}}, old)
