"""The addresses and ports of a Service's pods, as Endpoints and as an EndpointSlice: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubesandbox.controllers.objects import (
    at,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from kubesandbox.controllers.pods import is_ready, is_terminal
from pyverno.kube.json import JSONObject

__all__ = ["MANAGED_BY", "SERVICE_NAME", "endpoints_of", "has_selector", "slice_of"]

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
SLICE_CONTROLLER = "endpointslice-controller.k8s.io"
HEADLESS = "service.kubernetes.io/headless"


def has_selector(service: JSONObject) -> bool:
    """Return whether the addresses of a Service are those of pods."""
    return bool(at(service, "spec", "selector")) and at(service, "spec", "type") != "ExternalName"


def endpoints_of(service: JSONObject, pods: Sequence[JSONObject]) -> JSONObject:
    """Return the Endpoints of a Service that selects these pods.

    Pods with the same port numbers are together, since named ports may differ from pod to pod.
    """
    publish = at(service, "spec", "publishNotReadyAddresses", default=False)
    subsets: dict[tuple[tuple[str, int, str], ...], JSONObject] = {}
    for pod in _addressed(pods):
        ports = _ports(service, pod)
        if not ports and at(service, "spec", "ports"):
            continue
        subset = subsets.setdefault(ports, {})
        field = "addresses" if is_ready(pod) or publish else "notReadyAddresses"
        subset.setdefault(field, []).append(_address(pod))
    labels = {**labels_of(service), "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    if at(service, "spec", "clusterIP") == "None":
        labels[HEADLESS] = ""
    body: JSONObject = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": name_of(service), "namespace": namespace_of(service), "labels": labels},
    }
    found = [{**subset, **_render_ports(ports)} for ports, subset in sorted(subsets.items())]
    return {**body, "subsets": found} if found else body


def slice_of(service: JSONObject, pods: Sequence[JSONObject]) -> JSONObject:
    """Return the EndpointSlice of a Service that selects these pods, still without a name.

    All pods are in one slice; where named ports differ, those of the first pod count.
    """
    publish = at(service, "spec", "publishNotReadyAddresses", default=False)
    listed = _addressed(pods, with_leaving=True)
    ports = next((found for pod in listed if (found := _ports(service, pod))), ())
    labels = {**labels_of(service), MANAGED_BY: SLICE_CONTROLLER, SERVICE_NAME: name_of(service)}
    if at(service, "spec", "clusterIP") == "None":
        labels[HEADLESS] = ""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{name_of(service)}-",
            "namespace": namespace_of(service),
            "labels": labels,
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(pod, publish=publish) for pod in listed],
        "ports": [{"name": name, "port": number, "protocol": protocol} for name, number, protocol in ports],
    }


def _addressed(pods: Iterable[JSONObject], *, with_leaving: bool = False) -> list[JSONObject]:
    return [
        pod
        for pod in pods
        if at(pod, "status", "podIP") and not is_terminal(pod) and (with_leaving or not is_deleting(pod))
    ]


def _address(pod: JSONObject) -> JSONObject:
    found: JSONObject = {"ip": at(pod, "status", "podIP"), "nodeName": at(pod, "spec", "nodeName")}
    if at(pod, "spec", "subdomain") and at(pod, "spec", "hostname"):
        found["hostname"] = at(pod, "spec", "hostname")
    return {**found, "targetRef": _reference(pod)}


def _endpoint(pod: JSONObject, *, publish: bool) -> JSONObject:
    is_serving, is_leaving = is_ready(pod), is_deleting(pod)
    found: JSONObject = {
        "addresses": [at(pod, "status", "podIP")],
        "conditions": {
            "ready": bool(publish or (is_serving and not is_leaving)),
            "serving": is_serving,
            "terminating": is_leaving,
        },
        "nodeName": at(pod, "spec", "nodeName"),
        "targetRef": _reference(pod),
    }
    if at(pod, "spec", "subdomain") and at(pod, "spec", "hostname"):
        found["hostname"] = at(pod, "spec", "hostname")
    return found


def _reference(pod: JSONObject) -> JSONObject:
    return {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)}


def _ports(service: JSONObject, pod: JSONObject) -> tuple[tuple[str, int, str], ...]:
    """Return name, number and protocol of the ports that a Service has on a pod; unknown names are left out."""
    found = []
    for port in at(service, "spec", "ports", default=[]):
        protocol = port.get("protocol", "TCP")
        target = port.get("targetPort", port["port"])
        number = target if isinstance(target, int) else _named_port(pod, target, protocol)
        if number:
            found.append((port.get("name", ""), number, protocol))
    return tuple(found)


def _named_port(pod: JSONObject, name: str, protocol: str) -> int:
    for container in at(pod, "spec", "containers", default=[]):
        for port in container.get("ports") or ():
            if port.get("name") == name and port.get("protocol", "TCP") == protocol:
                return int(port["containerPort"])
    return 0


def _render_ports(ports: Sequence[tuple[str, int, str]]) -> JSONObject:
    found = [
        {**({"name": name} if name else {}), "port": number, "protocol": protocol} for name, number, protocol in ports
    ]
    return {"ports": found} if found else {}
