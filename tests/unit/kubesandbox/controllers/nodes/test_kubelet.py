"""Pods on a node: start, end, changes and deletion."""

from __future__ import annotations

from kubesandbox.controllers.nodes.podends import EXIT_CODE, RUN_SECONDS
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod


def states(body: JSONObject) -> dict[str, str]:
    return {item["type"]: item["status"] for item in body["status"]["conditions"]}


@in_cluster
async def test_a_pod_runs_and_is_ready(cluster: Cluster) -> None:
    """Address, start, conditions and containers as a kubelet reports them; events from scheduling to start."""
    await cluster.create("pods", pod("web"))
    body = cluster.get("pods", "web")
    status = body["status"]
    assert ("sandbox", "Running", "10.244.0.1") == (body["spec"]["nodeName"], status["phase"], status["podIP"])
    ready = {"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"}
    assert dict.fromkeys(ready, "True") == states(body)
    container = status["containerStatuses"][0]
    assert ("main", True, 0, "docker.io/library/nginx:1") == tuple(
        container[key] for key in ("name", "ready", "restartCount", "image")
    )
    events = [item for item in cluster.client.list("events", "default") if item["involvedObject"]["kind"] == "Pod"]
    reasons = [event["reason"] for event in events]
    assert ["Created", "Pulled", "Scheduled", "Started"] == sorted(reasons)
    assert ["Successfully assigned default/web to sandbox"] == cluster.events("Scheduled")
    started = next(item for item in events if item["reason"] == "Started")
    expected = ("Container started", "spec.containers{main}", {"component": "kubelet", "host": "sandbox"})
    assert expected == (started["message"], started["involvedObject"]["fieldPath"], started["source"])


@in_cluster
async def test_every_pod_has_an_address_of_its_own(cluster: Cluster) -> None:
    """Each pod has its own address; pods in the host network have the host's."""
    for name in ("a", "b"):
        await cluster.create("pods", pod(name))
    await cluster.create("pods", pod("c", hostNetwork=True))
    found = [cluster.get("pods", name)["status"]["podIP"] for name in ("a", "b", "c")]
    assert ["10.244.0.1", "10.244.0.2", "172.18.0.2"] == found


@in_cluster
async def test_a_deleted_pod_goes_at_once(cluster: Cluster) -> None:
    """The grace period does not delay it; a finalizer does."""
    await cluster.create("pods", pod("web"))
    held = pod("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.create("pods", held)
    for name in ("web", "held"):
        await cluster.client.delete("pods", name, "default")
    assert 30 == cluster.get("pods", "web")["metadata"]["deletionGracePeriodSeconds"]
    await cluster.settle()
    assert ["held"] == cluster.names("pods")
    await cluster.client.patch("pods", "held", "default", {"metadata": {"finalizers": None}})
    assert [] == cluster.names("pods")


@in_cluster
async def test_init_containers_end_and_sidecars_run(cluster: Cluster) -> None:
    """By their restart policies."""
    init = [
        {"name": "setup", "image": "busybox"},
        {"name": "proxy", "image": "envoy", "restartPolicy": "Always"},
    ]
    await cluster.create("pods", pod("web", initContainers=init))
    setup, proxy = cluster.get("pods", "web")["status"]["initContainerStatuses"]
    assert ({"terminated"}, {"running"}) == (set(setup["state"]), set(proxy["state"]))


@in_cluster
async def test_a_new_image_restarts_the_container(cluster: Cluster) -> None:
    """Only this container restarts, and its `restartCount` rises."""
    two = [{"name": "main", "image": "nginx:1"}, {"name": "side", "image": "side:1"}]
    await cluster.create("pods", pod("web", containers=two))
    body = cluster.get("pods", "web")
    changed = [{**body["spec"]["containers"][0], "image": "nginx:2"}, body["spec"]["containers"][1]]
    await cluster.client.update("pods", {**body, "spec": {**body["spec"], "containers": changed}})
    await cluster.settle()
    found = cluster.get("pods", "web")["status"]["containerStatuses"]
    assert [("docker.io/library/nginx:2", 1), ("docker.io/library/side:1", 0)] == [
        (item["image"], item["restartCount"]) for item in found
    ]


@in_cluster
async def test_an_ephemeral_container_starts(cluster: Cluster) -> None:
    """`kubectl debug` waits for its status."""
    await cluster.create("pods", pod("web"))
    body = cluster.get("pods", "web")
    spec = {**body["spec"], "ephemeralContainers": [{"name": "debug", "image": "busybox"}]}
    await cluster.client.update("pods", {**body, "spec": spec}, subresource="ephemeralcontainers")
    await cluster.settle()
    found = cluster.get("pods", "web")["status"]["ephemeralContainerStatuses"]
    assert [("debug", {"running"})] == [(item["name"], set(item["state"])) for item in found]


@in_cluster
async def test_a_pod_that_is_not_restarted_runs_and_ends(cluster: Cluster) -> None:
    """After a second, or as long as an annotation gives; every state is seen on the way."""
    await cluster.create("pods", pod("once", restartPolicy="Never"))
    longer = pod("longer", restartPolicy="OnFailure")
    longer["metadata"]["annotations"] = {RUN_SECONDS: "30", EXIT_CODE: "4"}
    await cluster.create("pods", longer)
    phases = []
    for seconds in (0, 1, 27, 3):
        await cluster.settle(seconds)
        phases.append(tuple(cluster.get("pods", name)["status"]["phase"] for name in ("once", "longer")))
    assert [
        ("Running", "Running"),
        ("Succeeded", "Running"),
        ("Succeeded", "Running"),
        ("Succeeded", "Failed"),
    ] == phases


@in_cluster
async def test_a_container_waits_for_its_configuration(cluster: Cluster) -> None:
    """An error names what is missing; the pod starts as soon as the ConfigMap is there."""
    container = {"name": "main", "image": "nginx:1", "envFrom": [{"configMapRef": {"name": "settings"}}]}
    await cluster.create("pods", pod("web", containers=[container, {"name": "side", "image": "side:1"}]))
    body = cluster.get("pods", "web")
    main, side = body["status"]["containerStatuses"]
    waiting = {"reason": "CreateContainerConfigError", "message": 'configmap "settings" not found'}
    assert ("Pending", "False", {"waiting": waiting}) == (body["status"]["phase"], states(body)["Ready"], main["state"])
    assert {"running"} == set(side["state"])
    assert ['Error: configmap "settings" not found'] == cluster.events("Failed")
    await cluster.create("configmaps", {"metadata": {"name": "settings", "namespace": "default"}})
    body = cluster.get("pods", "web")
    assert ("Running", "True") == (body["status"]["phase"], states(body)["Ready"])
    assert side == body["status"]["containerStatuses"][1]


@in_cluster
async def test_a_pod_waits_for_its_volumes(cluster: Cluster) -> None:
    """A waiting pod has no address; optional sources are not waited for."""
    volumes = [
        {"name": "maybe", "configMap": {"name": "absent", "optional": True}},
        {"name": "keys", "secret": {"secretName": "keys"}},
    ]
    await cluster.create("pods", pod("web", volumes=volumes))
    status = cluster.get("pods", "web")["status"]
    assert ("Pending", None, {"waiting": {"reason": "ContainerCreating"}}) == (
        status["phase"],
        status.get("podIP"),
        status["containerStatuses"][0]["state"],
    )
    assert ['MountVolume.SetUp failed for volume "keys" : secret "keys" not found'] == cluster.events("FailedMount")
    await cluster.create("secrets", {"metadata": {"name": "keys", "namespace": "default"}})
    assert "Running" == cluster.get("pods", "web")["status"]["phase"]


@in_cluster
async def test_readiness_gates_are_waited_for(cluster: Cluster) -> None:
    """The pod is ready while the condition of the gate is true."""
    await cluster.create("pods", pod("web", readinessGates=[{"conditionType": "example.com/lb"}]))
    assert "False" == states(cluster.get("pods", "web"))["Ready"]
    for status in ("True", "False"):
        body = cluster.get("pods", "web")
        others = [item for item in body["status"]["conditions"] if item["type"] != "example.com/lb"]
        gate = {"type": "example.com/lb", "status": status}
        changed = {**body, "status": {**body["status"], "conditions": [*others, gate]}}
        await cluster.client.update("pods", changed, subresource="status")
        await cluster.settle()
        assert status == states(cluster.get("pods", "web"))["Ready"]


@in_cluster
async def test_a_status_that_was_written_stays(cluster: Cluster) -> None:
    """Tests can thereby simulate a pod that fails."""
    await cluster.create("pods", pod("web"))
    body = cluster.get("pods", "web")
    await cluster.client.update("pods", {**body, "status": {**body["status"], "phase": "Failed"}}, subresource="status")
    await cluster.settle()
    assert "Failed" == cluster.get("pods", "web")["status"]["phase"]


@in_cluster(kubelet=False)
async def test_without_kubelet_nothing_runs(cluster: Cluster) -> None:
    """No node, no binding; and a pod that runs nowhere is deleted at once."""
    await cluster.create("pods", pod("web"))
    assert [] == cluster.names("nodes", "")
    assert ("Pending", None) == (
        cluster.get("pods", "web")["status"]["phase"],
        cluster.get("pods", "web")["spec"].get("nodeName"),
    )
    await cluster.client.delete("pods", "web", "default")
    assert [] == cluster.names("pods")
