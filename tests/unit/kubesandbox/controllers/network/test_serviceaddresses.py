"""Addresses of a Service."""

from __future__ import annotations

from kubesandbox.controllers.network.serviceaddresses import endpoints_of, has_selector, slice_of
from pyverno.kube.json import JSONObject

SERVICE: JSONObject = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "n", "uid": "s", "labels": {"team": "a"}},
    "spec": {"selector": {"app": "web"}, "clusterIP": "None", "ports": [{"port": 80}]},
}


def pod(name: str, address: str, *, ready: bool = True, leaving: bool = False) -> JSONObject:
    metadata: JSONObject = {"name": name, "namespace": "n", "uid": name}
    if leaving:
        metadata["deletionTimestamp"] = "x"
    conditions = [{"type": "Ready", "status": str(ready)}]
    spec = {"nodeName": "a", "hostname": name, "subdomain": "web"}
    return {"metadata": metadata, "spec": spec, "status": {"podIP": address, "conditions": conditions}}


def test_an_address_identifies_its_owner() -> None:
    """The address holds a reference to its pod, and the pod's host name under the service."""
    found = endpoints_of(SERVICE, [pod("x", "10.0.0.1")])
    reference = {"kind": "Pod", "namespace": "n", "name": "x", "uid": "x"}
    address = {"ip": "10.0.0.1", "nodeName": "a", "hostname": "x", "targetRef": reference}
    assert [{"addresses": [address], "ports": [{"port": 80, "protocol": "TCP"}]}] == found["subsets"]
    assert {
        "team": "a",
        "endpoints.kubernetes.io/managed-by": "endpoint-controller",
        "service.kubernetes.io/headless": "",
    } == (found["metadata"]["labels"])


def test_pods_that_leave_stand_in_the_slice_only() -> None:
    """Terminating pods are only in the EndpointSlice: serving or not, but never ready."""
    pods = [pod("x", "10.0.0.1"), pod("y", "10.0.0.2", leaving=True), pod("z", "10.0.0.3", ready=False), pod("w", "")]
    assert ["10.0.0.1"] == [item["ip"] for item in endpoints_of(SERVICE, pods)["subsets"][0]["addresses"]]
    found = {item["targetRef"]["name"]: item["conditions"] for item in slice_of(SERVICE, pods)["endpoints"]}
    assert {
        "x": {"ready": True, "serving": True, "terminating": False},
        "y": {"ready": False, "serving": True, "terminating": True},
        "z": {"ready": False, "serving": False, "terminating": False},
    } == found


def test_names_of_ports_are_looked_up_by_protocol() -> None:
    """An unknown name gives no address."""
    ports = [{"name": "dns", "containerPort": 53, "protocol": "UDP"}]
    body = pod("x", "10.0.0.1")
    body["spec"]["containers"] = [{"name": "c", "ports": ports}]

    def with_port(protocol: str) -> JSONObject:
        port = {"name": "d", "port": 5353, "targetPort": "dns", "protocol": protocol}
        return {**SERVICE, "spec": {**SERVICE["spec"], "ports": [port]}}

    assert [{"name": "d", "port": 53, "protocol": "UDP"}] == slice_of(with_port("UDP"), [body])["ports"]
    assert "subsets" not in endpoints_of(with_port("TCP"), [body])


def test_services_without_pods_of_their_own_are_known() -> None:
    """Such a service has no selector or is an ExternalName."""
    assert has_selector(SERVICE)
    assert not has_selector({"spec": {}})
    assert not has_selector({"spec": {"selector": {"a": "b"}, "type": "ExternalName"}})
