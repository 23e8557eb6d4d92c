"""Tests of `validation.workloads.jobs`; `workloads.yaml` holds what is refused."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSON, JSONObject
from tests.unit.kubesandbox.validation.cases import errors_of


def job(**spec: JSON) -> JSONObject:
    template = {"spec": {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template, **spec}}


@pytest.mark.parametrize(
    "spec",
    [
        {"completionMode": "Indexed", "completions": 5},
        {"completionMode": "Indexed", "completions": 5, "successPolicy": {"rules": [{"succeededIndexes": "0,2-4"}]}},
        {"managedBy": "example.com/other"},
    ],
)
def test_good_jobs_are_accepted(spec: JSONObject) -> None:
    """Jobs that a cluster accepts pass validation."""
    assert [] == errors_of(job(**spec))
