"""Tests of `validation.jobs` and `validation.jobpolicies`; what is refused stands in `workloads.yaml`."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSON, JSONObject
from tests.unit.kubesandbox.validation.cases import errors_of


def job(**spec: JSON) -> JSONObject:
    template = {"spec": {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template, **spec}}


CODES = {"operator": "In", "values": [1, 42]}


@pytest.mark.parametrize(
    "spec",
    [
        {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {**CODES, "containerName": "main"}}]}},
        {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}},
        {"podFailurePolicy": {"rules": []}, "podReplacementPolicy": "Failed"},
        {"completionMode": "Indexed", "completions": 5, "successPolicy": {"rules": [{"succeededIndexes": "0,2-4"}]}},
        {"completionMode": "Indexed", "completions": 5, "successPolicy": {"rules": [{"succeededCount": 5}]}},
        {"completionMode": "Indexed", "completions": 5, "backoffLimitPerIndex": 1, "maxFailedIndexes": 5},
        {"managedBy": "example.com/other"},
    ],
)
def test_policies_that_fit_are_taken(spec: JSONObject) -> None:
    """As a cluster takes them."""
    assert [] == errors_of(job(**spec))


@pytest.mark.parametrize("indexes", ["1-2-3", "2,1", "3-3", "-1", "1,,2", "a-b"])
def test_indexes_that_make_no_sense_are_refused(indexes: str) -> None:
    """Their place is named."""
    policy = {"rules": [{"succeededIndexes": indexes}]}
    found = errors_of(job(completionMode="Indexed", completions=5, successPolicy=policy))
    place = "spec.successPolicy.rules[0].succeededIndexes: Invalid value: "
    assert [True] == [error.startswith(f'{place}"{indexes}": error parsing succeededIndexes: ') for error in found]
