"""Tests of `kubesandbox.objects.preparation`."""

from __future__ import annotations

from kubesandbox.objects.allocation import Allocator
from kubesandbox.objects.preparation import Preparation, keep_all_but_status
from pyverno.kube.json import JSONObject

PREPARATION = Preparation(lambda resource: None if resource == "configmaps" else {}, Allocator())


def test_a_new_object_has_no_status() -> None:
    """Except where its writer sets it; objects without status get none."""
    assert {"spec": {}, "status": {}} == PREPARATION.create("deployments.apps", {"spec": {}, "status": {"replicas": 1}})
    node = {"status": {"capacity": {"cpu": "4"}}}
    assert node == PREPARATION.create("nodes", node)
    assert {"data": {}} == PREPARATION.create("configmaps", {"data": {}})


def test_an_update_keeps_the_status() -> None:
    """The status is changed only by its subresource."""
    old = {"spec": {"a": 1}, "status": {"b": 1}}
    assert {"spec": {"a": 2}, "status": {"b": 1}} == PREPARATION.update("deployments.apps", {"spec": {"a": 2}}, old)


def test_an_update_of_the_status_keeps_the_rest() -> None:
    """A Deployment keeps its labels, a custom resource all its metadata but managed fields."""
    new = {"metadata": {"labels": {"a": "b"}, "managedFields": [1]}, "spec": {"x": 2}, "status": {"y": 2}}
    old = {"metadata": {"name": "n"}, "spec": {"x": 1}, "status": {"y": 1}}
    kept = keep_all_but_status("deployments.apps", new, old, is_custom=False)
    assert {"metadata": {"managedFields": [1]}, "spec": {"x": 1}, "status": {"y": 2}} == kept
    custom = keep_all_but_status("widgets.ex.io", new, old, is_custom=True)
    assert {"name": "n", "managedFields": [1]} == custom["metadata"]


def test_a_pod_begins_pending() -> None:
    """Its QoS class is set; a negative grace period becomes one second."""
    spec = {"containers": [{}], "terminationGracePeriodSeconds": -5}
    body = PREPARATION.create("pods", {"spec": spec})
    assert {"phase": "Pending", "qosClass": "BestEffort"} == body["status"]
    assert 1 == body["spec"]["terminationGracePeriodSeconds"]


def test_a_namespace_has_a_finalizer() -> None:
    """An update cannot remove it."""
    body = PREPARATION.create("namespaces", {"metadata": {"name": "a"}})
    assert ({"finalizers": ["kubernetes"]}, {"phase": "Active"}) == (body["spec"], body["status"])
    assert body["spec"] == PREPARATION.update("namespaces", {"spec": {}}, body)["spec"]


def test_a_job_selects_its_pods_by_its_uid() -> None:
    """A job with `manualSelector` gets no selector."""
    job: JSONObject = {"metadata": {"name": "j", "uid": "u"}, "spec": {"template": {"spec": {}}}}
    body = PREPARATION.create("jobs.batch", job)
    assert {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}} == body["spec"]["selector"]
    labels = body["spec"]["template"]["metadata"]["labels"]
    assert ("u", "j", labels) == (labels["controller-uid"], labels["job-name"], body["metadata"]["labels"])
    manual = {**job, "spec": {**job["spec"], "manualSelector": True}}
    assert "selector" not in PREPARATION.create("jobs.batch", manual)["spec"]


def test_a_daemon_set_counts_its_templates() -> None:
    """An annotation holds a number that rises when the template changes."""
    first = PREPARATION.create("daemonsets.apps", {"spec": {"template": {"a": 1}}})
    same = PREPARATION.update("daemonsets.apps", {"spec": {"template": {"a": 1}, "minReadySeconds": 1}}, first)
    other = PREPARATION.update("daemonsets.apps", {"spec": {"template": {"a": 2}}}, same)
    name = "deprecated.daemonset.template.generation"
    assert ["1", "1", "2"] == [body["metadata"]["annotations"][name] for body in (first, same, other)]


def _service(**spec: object) -> JSONObject:
    ports = [{"port": 80, "protocol": "TCP"}]
    return {"metadata": {"namespace": "a", "name": "s"}, "spec": {"type": "ClusterIP", "ports": ports, **spec}}


def test_a_service_gets_an_address_and_keeps_it() -> None:
    """The requested address, or a free one."""
    made = PREPARATION.create("services", _service())["spec"]
    assert ([made["clusterIP"]], ["IPv4"], "SingleStack") == (
        made["clusterIPs"],
        made["ipFamilies"],
        made["ipFamilyPolicy"],
    )
    updated = PREPARATION.update("services", _service(), {"spec": made})
    assert made["clusterIPs"] == updated["spec"]["clusterIPs"]
    asked = PREPARATION.create("services", _service(clusterIP="10.96.9.9"))
    assert ["10.96.9.9"] == asked["spec"]["clusterIPs"]


def test_a_headless_service_without_selector_takes_both_families() -> None:
    """Its endpoints are unknown, and may be of both families."""
    spec = PREPARATION.create("services", _service(clusterIP="None"))["spec"]
    assert (["None"], ["IPv4", "IPv6"], "RequireDualStack") == (
        spec["clusterIPs"],
        spec["ipFamilies"],
        spec["ipFamilyPolicy"],
    )


def test_ports_of_the_nodes_come_and_go_with_the_type() -> None:
    """They stay as long as the service is reachable from outside."""
    made = PREPARATION.create("services", _service(type="NodePort"))["spec"]
    port = made["ports"][0]["nodePort"]
    balanced = PREPARATION.update("services", _service(type="LoadBalancer"), {"spec": made})["spec"]
    assert port == balanced["ports"][0]["nodePort"]
    inner = PREPARATION.update("services", _service(ports=made["ports"]), {"spec": made})["spec"]
    assert "nodePort" not in inner["ports"][0]


def test_a_claim_names_its_source_twice() -> None:
    """`dataSource` and `dataSourceRef` name the same source."""
    source = {"kind": "PersistentVolumeClaim", "name": "x"}
    for given in ("dataSource", "dataSourceRef"):
        spec = PREPARATION.create("persistentvolumeclaims", {"spec": {given: source}})["spec"]
        assert {"dataSource": source, "dataSourceRef": source} == spec
