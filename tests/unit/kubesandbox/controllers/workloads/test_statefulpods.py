"""The next step of a StatefulSet."""

from __future__ import annotations

import pytest

from kubesandbox.controllers.workloads.statefulpods import Step, next_step, ordinal_of
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import START

READY = [{"type": "Ready", "status": "True"}]


def body(replicas: int, **spec: object) -> JSONObject:
    return {"metadata": {"name": "db"}, "spec": {"replicas": replicas, **spec}}


def pod(ordinal: int, phase: str = "Running", revision: str = "new", *, leaving: bool = False) -> JSONObject:
    metadata: JSONObject = {"name": f"db-{ordinal}", "labels": {"controller-revision-hash": revision}}
    if leaving:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return {"metadata": metadata, "status": {"phase": phase, "conditions": READY if phase == "Running" else []}}


def short(step: Step) -> tuple[list[int], list[str]]:
    return list(step.create), [item["metadata"]["name"] for item in step.delete]


PARALLEL = {"podManagementPolicy": "Parallel"}


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        ({}, [], ([0], [])),
        ({}, [pod(0)], ([1], [])),
        ({}, [pod(0, "Pending")], ([], [])),
        ({}, [pod(1), pod(2)], ([0], [])),
        ({}, [pod(0), pod(1, leaving=True), pod(2)], ([], [])),
        ({}, [pod(0), pod(1, "Failed"), pod(2)], ([], ["db-1"])),
        ({}, [pod(0), pod(1), pod(2), pod(3), pod(4)], ([], ["db-4"])),
        ({}, [pod(0), pod(1), pod(2), pod(3), pod(4, leaving=True)], ([], [])),
        ({}, [pod(0), pod(1, "Pending"), pod(2), pod(3)], ([], [])),
        (PARALLEL, [pod(1, "Pending")], ([0, 2], [])),
        (PARALLEL, [pod(n) for n in range(5)], ([], ["db-4", "db-3"])),
        ({}, [pod(0, revision="old"), pod(1, revision="old"), pod(2, revision="old")], ([], ["db-2"])),
        ({}, [pod(0, revision="old"), pod(1, revision="old"), pod(2)], ([], ["db-1"])),
        ({"updateStrategy": {"type": "OnDelete"}}, [pod(0), pod(1), pod(2, revision="old")], ([], [])),
        (
            {"updateStrategy": {"rollingUpdate": {"partition": 2}}},
            [pod(0, revision="old"), pod(1, revision="old"), pod(2)],
            ([], []),
        ),
        ({"ordinals": {"start": 2}}, [pod(0), pod(1), pod(2), pod(3), pod(4)], ([], ["db-1"])),
    ],
)
def test_one_thing_happens_after_another(
    spec: JSONObject, pods: list[JSONObject], expected: tuple[list[int], list[str]]
) -> None:
    """Three pods are wanted."""
    assert expected == short(next_step(body(3, **spec), pods, "new", START))


def test_a_pod_must_have_been_ready_for_some_time() -> None:
    """With `minReadySeconds` of the set."""
    first = pod(0)
    first["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T11:59:55Z"}]
    assert ([], []) == short(next_step(body(2, minReadySeconds=10), [first], "new", START))
    assert ([1], []) == short(next_step(body(2, minReadySeconds=5), [first], "new", START))


def test_only_names_of_this_set_have_numbers() -> None:
    """Pods with other names are not members."""
    names = ("db-0", "db-12", "web-1", "db-x", "db", "my-db-1")
    assert [0, 12, -1, -1, -1, -1] == [ordinal_of(body(1), {"metadata": {"name": name}}) for name in names]
