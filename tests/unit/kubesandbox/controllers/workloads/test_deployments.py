"""Deployments over a real server: rollouts, scaling, history, pause."""

from __future__ import annotations

from kubesandbox.controllers.workloads.deployments import (
    REVISION,
    find_new,
    new_replica_set,
    revised_annotations,
    unneeded,
)
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod_template, workload

DEPLOYMENTS, SETS = "deployments.apps", "replicasets.apps"


def conditions(body: JSONObject) -> dict[str, tuple[str, str]]:
    """Return status and reason of conditions by type."""
    return {item["type"]: (item["status"], item["reason"]) for item in body["status"]["conditions"]}


def images(cluster: Cluster) -> list[str]:
    return sorted(body["spec"]["containers"][0]["image"] for body in cluster.client.list("pods", "default"))


def by_revision(cluster: Cluster) -> dict[str, int]:
    """Return the sizes of ReplicaSets by their revision."""
    sets = cluster.client.list(SETS, "default")
    return {item["metadata"]["annotations"][REVISION]: item["spec"]["replicas"] for item in sets}


async def change_image(cluster: Cluster, image: str) -> None:
    patch = {"spec": {"template": pod_template({"app": "web"}, image)}}
    await cluster.client.patch(DEPLOYMENTS, "web", "default", patch)
    await cluster.settle()


@in_cluster
async def test_a_deployment_becomes_available(cluster: Cluster) -> None:
    """ReplicaSet and pods are created and run, and the status follows."""
    await cluster.create(DEPLOYMENTS, workload("Deployment", "web", replicas=3))
    body = cluster.get(DEPLOYMENTS, "web")
    counts = {field: body["status"].get(field) for field in ("replicas", "updatedReplicas", "availableReplicas")}
    assert {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3} == counts
    expected = {"Available": ("True", "MinimumReplicasAvailable"), "Progressing": ("True", "NewReplicaSetAvailable")}
    assert expected == conditions(body)
    assert "1" == body["metadata"]["annotations"][REVISION]
    assert 3 == len(cluster.names("pods"))
    name = cluster.names(SETS)[0]
    assert all(pod.startswith(f"{name}-") for pod in cluster.names("pods"))
    assert [f"Scaled up replica set {name} from 0 to 3"] == cluster.events("ScalingReplicaSet")


@in_cluster
async def test_a_rolling_update_never_has_too_few_or_too_many_pods(cluster: Cluster) -> None:
    """Seen from the history of the store: at most 5 pods, at least 3 of them ready."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    await cluster.create(DEPLOYMENTS, workload("Deployment", "web", replicas=4, strategy=strategy))
    before = cluster.server.store.revision
    await change_image(cluster, "nginx:2")
    counts = []
    for revision in range(before, cluster.server.store.revision + 1):
        pods = [state.body for state in cluster.server.store.all_at("pods", revision)]
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        ready = [pod for pod in alive if "Ready" in _true_conditions(pod)]
        counts.append((len(alive), len(ready)))
    assert 5 == max(count for count, _ in counts)
    assert 3 <= min(ready for _, ready in counts)
    assert ["nginx:2"] * 4 == images(cluster)
    assert {"1": 0, "2": 4} == by_revision(cluster)


def _true_conditions(body: JSONObject) -> set[str]:
    return {item["type"] for item in body["status"].get("conditions", ()) if item["status"] == "True"}


@in_cluster
async def test_going_back_takes_the_old_replica_set_again(cluster: Cluster) -> None:
    """It gets the next number and remembers the one it had, which `kubectl rollout history` shows."""
    await cluster.create(DEPLOYMENTS, workload("Deployment", "web", replicas=2))
    await change_image(cluster, "nginx:2")
    await change_image(cluster, "nginx:1")
    assert {"2": 0, "3": 2} == by_revision(cluster)
    old = next(item for item in cluster.client.list(SETS, "default") if item["spec"]["replicas"])
    assert "1" == old["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"]
    assert ["nginx:1", "nginx:1"] == images(cluster)


@in_cluster
async def test_recreation_ends_all_old_pods_before_it_makes_new_ones(cluster: Cluster) -> None:
    """At no version of the store do pods of both templates live together."""
    await cluster.create(DEPLOYMENTS, workload("Deployment", "web", replicas=2, strategy={"type": "Recreate"}))
    before = cluster.server.store.revision
    await change_image(cluster, "nginx:2")
    for revision in range(before, cluster.server.store.revision + 1):
        pods = [state.body for state in cluster.server.store.all_at("pods", revision)]
        assert len({item["spec"]["containers"][0]["image"] for item in pods}) <= 1
    assert ["nginx:2", "nginx:2"] == images(cluster)


@in_cluster
async def test_scaling_goes_up_and_down(cluster: Cluster) -> None:
    """No new ReplicaSet, no new revision."""
    await cluster.create(DEPLOYMENTS, workload("Deployment", "web", replicas=1))
    for size in (4, 2, 0):
        await cluster.client.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": size}})
        await cluster.settle()
        assert (size, {"1": size}) == (len(cluster.names("pods")), by_revision(cluster))
        assert size == cluster.get(DEPLOYMENTS, "web")["status"].get("availableReplicas", 0)


@in_cluster
async def test_a_paused_deployment_waits_with_its_template_but_scales(cluster: Cluster) -> None:
    """The rollout starts when the Deployment is resumed."""
    await cluster.create(DEPLOYMENTS, workload("Deployment", "web", replicas=2))
    await cluster.client.patch(DEPLOYMENTS, "web", "default", {"spec": {"paused": True}})
    await change_image(cluster, "nginx:2")
    assert ["nginx:1", "nginx:1"] == images(cluster)
    assert ("Unknown", "DeploymentPaused") == conditions(cluster.get(DEPLOYMENTS, "web"))["Progressing"]
    await cluster.client.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 3}})
    await cluster.settle()
    assert ["nginx:1"] * 3 == images(cluster)
    await cluster.client.patch(DEPLOYMENTS, "web", "default", {"spec": {"paused": False}})
    await cluster.settle()
    assert ["nginx:2"] * 3 == images(cluster)
    assert ("True", "NewReplicaSetAvailable") == conditions(cluster.get(DEPLOYMENTS, "web"))["Progressing"]


@in_cluster
async def test_history_is_limited(cluster: Cluster) -> None:
    """The oldest empty ReplicaSets are deleted."""
    await cluster.create(DEPLOYMENTS, workload("Deployment", "web", replicas=1, revisionHistoryLimit=1))
    for tag in range(2, 5):
        await change_image(cluster, f"nginx:{tag}")
    assert {"3": 0, "4": 1} == by_revision(cluster)


@in_cluster(kubelet=False)
async def test_a_rollout_that_gets_nowhere_is_late(cluster: Cluster) -> None:
    """Without a kubelet no pod becomes ready; after the deadline the condition `Progressing` is false."""
    await cluster.create(DEPLOYMENTS, workload("Deployment", "web", replicas=1, progressDeadlineSeconds=60))
    assert ("True", "ReplicaSetUpdated") == conditions(cluster.get(DEPLOYMENTS, "web"))["Progressing"]
    await cluster.settle(62)
    found = conditions(cluster.get(DEPLOYMENTS, "web"))
    assert {
        "Available": ("False", "MinimumReplicasUnavailable"),
        "Progressing": ("False", "ProgressDeadlineExceeded"),
    } == found


@in_cluster
async def test_refused_pods_are_reported_by_condition_and_event(cluster: Cluster) -> None:
    """A quota of no pods: the reason goes from the ReplicaSet up to the Deployment."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": "default"}}
    await cluster.create("resourcequotas", {**quota, "spec": {"hard": {"pods": "0"}}})
    await cluster.create(DEPLOYMENTS, workload("Deployment", "web", replicas=1))
    assert ("True", "FailedCreate") == conditions(cluster.get(DEPLOYMENTS, "web"))["ReplicaFailure"]
    assert "exceeded quota: none" in cluster.events("FailedCreate")[0]
    await cluster.client.delete("resourcequotas", "none", "default")
    await cluster.settle(70)
    assert "ReplicaFailure" not in conditions(cluster.get(DEPLOYMENTS, "web"))
    assert 1 == len(cluster.names("pods"))


@in_cluster
async def test_min_ready_seconds_are_waited_for(cluster: Cluster) -> None:
    """A pod counts as available only after it has been ready that long."""
    await cluster.create(DEPLOYMENTS, workload("Deployment", "web", replicas=1, minReadySeconds=10))
    status = cluster.get(DEPLOYMENTS, "web")["status"]
    assert (1, None) == (status["readyReplicas"], status.get("availableReplicas"))
    await cluster.settle(11)
    assert 1 == cluster.get(DEPLOYMENTS, "web")["status"]["availableReplicas"]


DEPLOYMENT: JSONObject = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "d",
        "annotations": {"note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    },
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": pod_template({"app": "web"}),
    },
}


def test_a_new_replica_set_carries_the_hash_of_its_template() -> None:
    """Hash in name, labels, selector and template; annotations but those of kubectl and of other sets."""
    body = new_replica_set(DEPLOYMENT, [], 3)
    digest = body["metadata"]["labels"]["pod-template-hash"]
    assert f"web-{digest}" == body["metadata"]["name"]
    assert 8 <= len(digest) <= 10
    labels = {"app": "web", "pod-template-hash": digest}
    assert (labels, labels) == (body["spec"]["selector"]["matchLabels"], body["spec"]["template"]["metadata"]["labels"])
    expected = {
        "note": "x",
        "deployment.kubernetes.io/revision": "3",
        "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3",
    }
    assert expected == body["metadata"]["annotations"]


def test_the_newest_set_is_found_by_its_template() -> None:
    """The hash label does not count, and the oldest of several wins."""
    first = new_replica_set(DEPLOYMENT, [], 1)
    stamped = {**first, "metadata": {**first["metadata"], "creationTimestamp": "2030-01-01T00:00:00Z"}}
    later = {**first, "metadata": {**first["metadata"], "creationTimestamp": "2030-01-02T00:00:00Z"}}
    assert stamped is find_new(DEPLOYMENT, [later, stamped])
    other = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "template": pod_template({"app": "web"}, "other")}}
    assert None is find_new(other, [later, stamped])


def test_numbers_of_revisions_only_rise() -> None:
    """A set with a higher number keeps it."""
    known = {"metadata": {"annotations": {REVISION: "5"}}}
    assert {"note": "x", REVISION: "5"} == revised_annotations(DEPLOYMENT, known, 4)


def test_sets_in_use_are_kept_whatever_the_limit() -> None:
    """Only empty ones, as seen by their own controller, are deleted."""
    deployment = {"spec": {"revisionHistoryLimit": 0}}

    def replica_set(number: int, replicas: int, observed: int = 1) -> JSONObject:
        metadata = {"generation": 1, "annotations": {REVISION: str(number)}}
        status = {"replicas": replicas, "observedGeneration": observed}
        return {"metadata": metadata, "spec": {"replicas": replicas}, "status": status}

    empty, used, unseen = replica_set(1, 0), replica_set(2, 1), replica_set(3, 0, observed=0)
    assert [empty] == unneeded(deployment, [unseen, used, empty])


ADDING: JSONObject = {
    "metadata": {"name": "adding"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["UPDATE"]}
            ]
        },
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {
                    "expression": '[JSONPatch{op: "add", path: "/spec/template/spec/containers/-", value: {'
                    '"name": "more-" + string(size(object.spec.template.spec.containers)), "image": "more"}}]'
                },
            }
        ],
    },
}


@in_cluster
async def test_a_policy_that_adds_something_at_every_update_sees_those_of_users_only(cluster: Cluster) -> None:
    """Revision and status are written by the status endpoint: a mutation that never ends does not feed on itself."""
    group = "admissionregistration.k8s.io"
    await cluster.create(f"mutatingadmissionpolicies.{group}", ADDING)
    binding = {"metadata": {"name": "adding"}, "spec": {"policyName": "adding"}}
    await cluster.create(f"mutatingadmissionpolicybindings.{group}", binding)
    await cluster.create(DEPLOYMENTS, workload("Deployment", "web"))
    await change_image(cluster, "nginx:2")
    body = cluster.get(DEPLOYMENTS, "web")
    assert ["main", "more-1"] == [each["name"] for each in body["spec"]["template"]["spec"]["containers"]]
    assert 2 == body["metadata"]["generation"]
    assert "2" == body["metadata"]["annotations"][REVISION]
    assert {"1", "2"} == by_revision(cluster).keys()


@in_cluster
async def test_a_deployment_that_was_applied_has_one_replica_set(cluster: Cluster) -> None:
    """Server-side apply stores what every other write does: the empty parts of containers are those of the copy."""
    body = workload("Deployment", "web", replicas=2)
    await cluster.apply(DEPLOYMENTS, body)
    assert 1 == len(cluster.names(SETS))
    found = cluster.get(DEPLOYMENTS, "web")
    assert ({}, "1") == (
        found["spec"]["template"]["spec"]["containers"][0].get("resources"),
        found["metadata"]["annotations"][REVISION],
    )
    await cluster.apply(DEPLOYMENTS, body)
    assert found["metadata"]["generation"] == cluster.get(DEPLOYMENTS, "web")["metadata"]["generation"]
