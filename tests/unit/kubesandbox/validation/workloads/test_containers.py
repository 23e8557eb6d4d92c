"""Tests of `validation.containers`; most of its errors are in the table of Pods."""

from __future__ import annotations

import pytest

from kubesandbox.validation.workloads.containers import ephemeral_errors, resource_errors
from pyverno.kube.json import JSONObject
from pyverno.kube.status import FieldError


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "1000m"}}, []),
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, ["must be less than or equal to cpu limit of 1"]),
        ({"requests": {"a.b/gpu": "1"}, "limits": {"a.b/gpu": "2"}}, ["must be equal to a.b/gpu limit of 2"]),
        ({"requests": {"a.b/gpu": "1"}}, ["Limit must be set for non overcommitable resources"]),
    ],
)
def test_requests_stay_within_limits(resources: JSONObject, expected: list[str]) -> None:
    """Resources that cannot be overcommitted need equal requests and limits."""
    errors: list[FieldError] = []
    resource_errors(resources, "r", errors)
    assert expected == [error.detail for error in errors]


def test_an_ephemeral_container_has_neither_ports_nor_resources() -> None:
    """It is added to a running Pod, and looks at a container of it."""
    container = {"name": "e", "image": "x", "ports": [{"containerPort": 1}], "targetContainerName": "b"}
    body = {**container, "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}
    errors: list[FieldError] = []
    ephemeral_errors({"containers": [{"name": "a"}], "ephemeralContainers": [body]}, (), "e", errors)
    assert [
        "e[0].ports[0].protocol: Required value",
        'e[0].targetContainerName: Not found: "b"',
        "e[0].ports: Forbidden: cannot be set for an Ephemeral Container",
    ] == list(map(str, errors))
