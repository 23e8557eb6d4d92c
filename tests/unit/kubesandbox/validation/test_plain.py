"""Tests of `validation.plain`."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.validation.cases import claims, errors_of, prepared, refusals

ROWS = refusals("plain")


@pytest.mark.parametrize(("body", "expected"), ROWS, ids=claims(ROWS))
def test_what_is_wrong_is_said_in_the_words_of_an_api_server(body: JSONObject, expected: list[str]) -> None:
    """Every row of the table is refused with exactly these errors."""
    assert sorted(expected) == sorted(errors_of(body))


def _object(kind: str, **fields: object) -> JSONObject:
    version = "scheduling.k8s.io/v1" if kind == "PriorityClass" else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, **fields}


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_immutable_data_stays(kind: str) -> None:
    """Neither the data nor the mark may change; labels may."""
    old = prepared(_object(kind, immutable=True, data={"a": "YQ=="}))
    assert [] == errors_of(_object(kind, immutable=True, data={"a": "YQ=="}), old)
    expected = [
        "immutable: Forbidden: field is immutable when `immutable` is set",
        "data: Forbidden: field is immutable when `immutable` is set",
    ]
    assert expected == errors_of(_object(kind, data={"a": "Yg=="}), old)


def test_a_secret_keeps_its_type() -> None:
    """The type is chosen once."""
    old = prepared(_object("Secret", type="a"))
    assert ['type: Invalid value: "b": field is immutable'] == errors_of(_object("Secret", type="b"), old)


def test_a_priority_keeps_its_value() -> None:
    """Pods have copied it."""
    old = prepared(_object("PriorityClass", value=1))
    assert ["value: Forbidden: may not be changed in an update."] == errors_of(_object("PriorityClass", value=2), old)
