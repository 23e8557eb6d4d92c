"""Tests of `schema.embedded`."""

from __future__ import annotations

import pytest

from kubesandbox.schema.embedded import compile_embedded
from pyverno.kube.json import JSONObject
from pyverno.kube.status import FieldError

SCHEMA: JSONObject = {"items": {"x-kubernetes-embedded-resource": True}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, []),
        ({}, ["x[0].apiVersion: Required value", "x[0].kind: Required value"]),
        ({"apiVersion": "", "kind": 1},
         ['x[0].apiVersion: Invalid value: "": must not be empty', "x[0].kind: Invalid value: 1: must be a string"]),
    ],
)  # fmt: skip
def test_an_embedded_object_has_kind_and_version(value: JSONObject, expected: list[str]) -> None:
    """An embedded resource needs apiVersion and kind as texts that are not empty."""
    check = compile_embedded(SCHEMA)
    assert check is not None
    errors: list[FieldError] = []
    check([value], "x", errors)
    assert expected == list(map(str, errors))
