"""Waiting containers, and the status of their pod meanwhile."""

from __future__ import annotations

import pytest

from kubesandbox.controllers.nodes.podwaits import find_problems, waiting_status
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import START, pod
from tests.unit.kubesandbox.controllers.nodes.test_podstatus import running

PRESENT: dict[tuple[str, str], JSONObject] = {("configmaps", "here"): {"data": {"key": "x"}}, ("secrets", "here"): {}}


def find(resource: str, name: str) -> JSONObject | None:
    return PRESENT.get((resource, name))


def environment(**source: JSONObject) -> JSONObject:
    return {"env": [{"name": "A", "valueFrom": source}]}


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"envFrom": [{"configMapRef": {"name": "here"}}, {"secretRef": {"name": "gone"}}]}, 'secret "gone" not found'),
        ({"envFrom": [{"secretRef": {"name": "gone", "optional": True}}]}, None),
        (environment(configMapKeyRef={"name": "gone", "key": "key"}), 'configmap "gone" not found'),
        (environment(configMapKeyRef={"name": "here", "key": "key"}), None),
        (
            environment(configMapKeyRef={"name": "here", "key": "other"}),
            "couldn't find key other in ConfigMap default/here",
        ),
        (environment(secretKeyRef={"name": "here", "key": "key"}), "couldn't find key key in Secret default/here"),
        (environment(secretKeyRef={"name": "here", "key": "key", "optional": True}), None),
        (environment(fieldRef={"fieldPath": "metadata.name"}), None),
    ],
)
def test_a_container_waits_for_what_its_environment_names(container: JSONObject, expected: str | None) -> None:
    """The message is that of a kubelet; optional references may be missing."""
    body = pod("web", containers=[{"name": "main", "image": "nginx:1", **container}])
    assert ({} if expected is None else {"main": expected}) == find_problems(body, find).containers


def test_containers_wait_for_init_containers() -> None:
    """The pod is not initialized, and names the container that is incomplete."""
    setup = {"name": "setup", "image": "busybox", "envFrom": [{"configMapRef": {"name": "gone"}}]}
    body = pod("web", initContainers=[setup])
    status = waiting_status(body, running(body)["status"], find_problems(body, find), START)
    reasons = [
        status[field][0]["state"]["waiting"]["reason"] for field in ("initContainerStatuses", "containerStatuses")
    ]
    assert ["CreateContainerConfigError", "PodInitializing"] == reasons
    messages = {item["type"]: item.get("message") for item in status["conditions"] if item["status"] == "False"}
    assert {
        "Ready": "containers with unready status: [main]",
        "ContainersReady": "containers with unready status: [main]",
        "Initialized": "containers with incomplete status: [setup]",
    } == messages


def test_a_running_container_is_left_alone() -> None:
    """Its environment was read when it started."""
    body = running(
        pod("web", containers=[{"name": "main", "image": "nginx:1", "envFrom": [{"secretRef": {"name": "gone"}}]}])
    )
    assert not find_problems(body, find)
