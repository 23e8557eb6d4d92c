"""Tests of `validation.statuses` and `validation.jobstatuses`."""

from __future__ import annotations

import pytest

from kubesandbox.validation.statuses import status_errors
from pyverno.kube.json import JSONObject

NEGATIVE = "must be greater than or equal to 0"
DONE = {"type": "Complete", "status": "True"}
MET = {"type": "SuccessCriteriaMet", "status": "True"}
TIMES = {"startTime": "2030-01-01T12:00:00Z", "completionTime": "2030-01-01T12:00:09Z"}


def refused(
    key: str, status: JSONObject, before: JSONObject | None = None, spec: JSONObject | None = None
) -> list[str]:
    """Return what is wrong with a status that follows another one."""
    old = {"status": before or {}, "spec": spec or {}}
    return [str(error) for error in status_errors(key, {**old, "status": status}, old)]


@pytest.mark.parametrize(
    ("key", "status", "expected"),
    [
        ("deployments.apps", {"unavailableReplicas": -1}, [f"unavailableReplicas: Invalid value: -1: {NEGATIVE}"]),
        (
            "deployments.apps",
            {"replicas": 1, "readyReplicas": 1, "availableReplicas": 2},
            [
                "availableReplicas: Invalid value: 2: cannot be greater than status.replicas",
                "availableReplicas: Invalid value: 2: cannot be greater than readyReplicas",
            ],
        ),
        (
            "statefulsets.apps",
            {"replicas": 1, "availableReplicas": 1},
            ["availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas"],
        ),
        (
            "replicasets.apps",
            {"fullyLabeledReplicas": 1},
            ["fullyLabeledReplicas: Invalid value: 1: cannot be greater than status.replicas"],
        ),
        ("daemonsets.apps", {"numberReady": -1}, [f"numberReady: Invalid value: -1: {NEGATIVE}"]),
        ("poddisruptionbudgets.policy", {"expectedPods": -1}, [f"expectedPods: Invalid value: -1: {NEGATIVE}"]),
        (
            "pods",
            {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]},
            [
                'podIPs: Invalid value: [{"IP":"1.2.3.4"},{"IP":"1.2.3.5"}]: '
                "may specify no more than one IP for each IP family"
            ],
        ),
        (
            "pods",
            {"hostIPs": [{"ip": "10.0.0.1"}]},
            ['hostIPs[0].ip: Invalid value: "10.0.0.1": must be equal to `hostIP`'],
        ),
        ("pods", {"observedGeneration": -1}, ["observedGeneration: Invalid value: -1: must be a non-negative integer"]),
        (
            "services",
            {"loadBalancer": {"ingress": [{"hostname": "1.2.3.4"}, {"hostname": "a", "ipMode": "VIP"}]}},
            [
                'loadBalancer.ingress[0].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
                "loadBalancer.ingress[1].ipMode: Forbidden: may not be specified when `ip` is not set",
            ],
        ),
        (
            "nodes",
            {"addresses": [{"type": "Hostname", "address": "a"}] * 2},
            ['addresses[1]: Duplicate value: {"Type":"Hostname","Address":"a"}'],
        ),
        ("deployments.apps", {"replicas": 2, "readyReplicas": 2, "availableReplicas": 1}, []),
        ("configmaps", {"anything": -1}, []),
    ],
)
def test_what_a_status_can_not_say(key: str, status: JSONObject, expected: list[str]) -> None:
    """With the API server's texts."""
    assert [f"status.{text}" for text in expected] == refused(key, status)


def test_what_was_said_is_not_taken_back() -> None:
    """The class of a pod, and how often names have clashed."""
    assert ['status.qosClass: Invalid value: "Guaranteed": field is immutable'] == refused(
        "pods", {"qosClass": "Guaranteed"}, {"qosClass": "BestEffort"}
    )
    assert ["status.collisionCount: Invalid value: 1: cannot be decremented"] == refused(
        "statefulsets.apps", {"collisionCount": 1}, {"collisionCount": 2}
    )


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"conditions": [MET, DONE], **TIMES}, []),
        ({"active": 1, "ready": 2}, ["ready: Invalid value: 2: cannot set more ready pods than active"]),
        ({"failed": 1}, ["failed: Invalid value: 1: cannot decrease the failed counter"]),
        (
            {"conditions": [DONE]},
            [
                "completionTime: Required value: completionTime is required for Complete jobs",
                "conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true "
                "condition",
                "startTime: Required value: startTime is required for finished job",
            ],
        ),
        (
            {"completionTime": "2030-01-01T12:00:09Z"},
            [
                'completionTime: Invalid value: "2030-01-01T12:00:09Z": cannot set completionTime when there is no '
                "Complete=True condition"
            ],
        ),
        (
            {"uncountedTerminatedPods": {"succeeded": ["a", "a"], "failed": [""]}},
            [
                'uncountedTerminatedPods.succeeded[1]: Duplicate value: "a"',
                'uncountedTerminatedPods.failed[0]: Invalid value: "": must not be empty',
            ],
        ),
        (
            {"completedIndexes": "0", "failedIndexes": "1"},
            [
                'completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed '
                "completion mode",
                'failedIndexes: Invalid value: "1": cannot set non-null failedIndexes when backoffLimitPerIndex is '
                "null",
            ],
        ),
    ],
)
def test_what_the_status_of_a_job_can_not_say(status: JSONObject, expected: list[str]) -> None:
    """Also that it has failed less often than before."""
    before = {} if "failed" not in status else {"failed": 2}
    assert [f"status.{text}" for text in expected] == refused("jobs.batch", status, before)


def test_a_finished_job_stays_finished() -> None:
    """Nor is what was announced taken back."""
    before = {"conditions": [MET, DONE], **TIMES}
    found = refused("jobs.batch", {"startTime": TIMES["startTime"]}, before)
    assert [
        "status.conditions: Invalid value: cannot disable the terminal Complete=True condition",
        "status.conditions: Invalid value: cannot disable the terminal SuccessCriteriaMet=True condition",
    ] == found
