"""Defaults of Pods, their templates, containers and volumes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubesandbox.defaults.hook import Hook, Hooks, absent, in_order, zero
from pyverno.kube.json import JSONObject
from pyverno.kube.quantity import Quantity, parse_quantity

__all__ = ["POD_DEFAULTS"]

_CORE: Final = "io.k8s.api.core.v1"
_POD_LEVEL: Final = ("cpu", "memory")


def _pull_policy(image: str) -> str:
    return "Always" if _tag(image) == "latest" else "IfNotPresent"


def _tag(image: str) -> str:
    """Return the tag of an image reference; `latest` where neither tag nor digest is written, empty if unreadable."""
    if not image or image != image.strip():
        return ""
    name, _, digest = image.partition("@")
    last = name.rpartition("/")[2]
    _, colon, tag = last.partition(":")
    return tag if colon else "" if digest else "latest"


def _container(body: JSONObject) -> None:
    if not body.get("imagePullPolicy"):
        body["imagePullPolicy"] = _pull_policy(body.get("image", ""))
    _TERMINATION(body)


_TERMINATION: Final[Hook] = zero(terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")


def _account(spec: JSONObject) -> None:
    """The account of a Pod is written in two fields."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


_POD_SPEC: Final[Hook] = in_order(
    _account,
    zero(dnsPolicy="ClusterFirst", restartPolicy="Always", schedulerName="default-scheduler"),
    absent(securityContext={}, terminationGracePeriodSeconds=30),
)


def _volume(body: JSONObject) -> None:
    if not any(body.get(key) is not None for key in body if key != "name"):
        body["emptyDir"] = {}


def _image_volume(body: JSONObject) -> None:
    if not body.get("pullPolicy"):
        body["pullPolicy"] = _pull_policy(body.get("reference", ""))


def _pod(body: JSONObject) -> None:
    """Requests that are not named are the limits; ports on the host's network are the host's ports."""
    spec = body["spec"] = dict(body.get("spec") or {})
    for key in ("containers", "initContainers"):
        if spec.get(key):
            spec[key] = [
                _with_host_ports(_with_requests(item), spec) if isinstance(item, dict) else item for item in spec[key]
            ]
    if isinstance(spec.get("resources"), dict):
        spec["resources"] = _pod_level(spec, spec["resources"])
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True


def _with_requests(container: JSONObject) -> JSONObject:
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits"), resources.get("requests") or {}
    if not limits or all(key in requests for key in limits):
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


def _with_host_ports(container: JSONObject, spec: JSONObject) -> JSONObject:
    ports = container.get("ports")
    if not spec.get("hostNetwork") or not ports or all(port.get("hostPort") for port in ports):
        return container
    return {
        **container,
        "ports": [
            port
            if port.get("hostPort") or not port.get("containerPort")
            else {**port, "hostPort": port["containerPort"]}
            for port in ports
        ],
    }


def _pod_level(spec: JSONObject, resources: JSONObject) -> JSONObject:
    limits = resources.get("limits") or {}
    if not limits:
        return resources
    requests = dict(resources.get("requests") or {})
    for key, total in _total_requests(spec).items():
        if key in _POD_LEVEL:
            requests.setdefault(key, str(total.canonical()))
    for key, limit in limits.items():
        if key in _POD_LEVEL or key.startswith("hugepages-"):
            requests.setdefault(key, limit)
    return {**resources, "requests": requests} if requests else resources


def _total_requests(spec: JSONObject) -> dict[str, Quantity]:
    """Return the total requests of the containers; init containers run before them, sidecars beside them."""
    running = [*(spec.get("containers") or ()), *(c for c in _inits(spec) if c.get("restartPolicy") == "Always")]
    totals: dict[str, Quantity] = {}
    for container in running:
        for key, quantity in _requests(container):
            totals[key] = totals[key].add(quantity) if key in totals else quantity
    for container in _inits(spec):
        if container.get("restartPolicy") != "Always":
            for key, quantity in _requests(container):
                totals[key] = max(totals.get(key, quantity), quantity)
    return totals


def _inits(spec: JSONObject) -> Iterable[JSONObject]:
    return spec.get("initContainers") or ()


def _requests(container: JSONObject) -> Iterable[tuple[str, Quantity]]:
    requests: Mapping[str, str] = (container.get("resources") or {}).get("requests") or {}
    return ((key, parse_quantity(str(value))) for key, value in requests.items())


_MODE: Final[Hook] = absent(defaultMode=0o644)
_RBD: Final[Hook] = zero(pool="rbd", user="admin", keyring="/etc/ceph/keyring")
_SCALE_IO: Final[Hook] = zero(storageMode="ThinProvisioned", fsType="xfs")
_ISCSI: Final[Hook] = zero(iscsiInterface="default")

POD_DEFAULTS: Final[Hooks] = {
    f"{_CORE}.Pod": _pod,
    f"{_CORE}.PodSpec": _POD_SPEC,
    f"{_CORE}.Container": _container,
    f"{_CORE}.EphemeralContainer": _container,
    f"{_CORE}.ContainerPort": zero(protocol="TCP"),
    f"{_CORE}.Probe": zero(timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3),
    f"{_CORE}.HTTPGetAction": zero(path="/", scheme="HTTP"),
    f"{_CORE}.GRPCAction": absent(service=""),
    f"{_CORE}.ObjectFieldSelector": zero(apiVersion="v1"),
    f"{_CORE}.FileKeySelector": absent(optional=False),
    f"{_CORE}.Volume": _volume,
    f"{_CORE}.SecretVolumeSource": _MODE,
    f"{_CORE}.ConfigMapVolumeSource": _MODE,
    f"{_CORE}.DownwardAPIVolumeSource": _MODE,
    f"{_CORE}.ProjectedVolumeSource": _MODE,
    f"{_CORE}.ServiceAccountTokenProjection": absent(expirationSeconds=3600),
    f"{_CORE}.HostPathVolumeSource": absent(type=""),
    f"{_CORE}.ImageVolumeSource": _image_volume,
    f"{_CORE}.ISCSIVolumeSource": _ISCSI,
    f"{_CORE}.ISCSIPersistentVolumeSource": _ISCSI,
    f"{_CORE}.RBDVolumeSource": _RBD,
    f"{_CORE}.RBDPersistentVolumeSource": _RBD,
    f"{_CORE}.AzureDiskVolumeSource": absent(cachingMode="ReadWrite", fsType="ext4", readOnly=False, kind="Shared"),
    f"{_CORE}.ScaleIOVolumeSource": _SCALE_IO,
    f"{_CORE}.ScaleIOPersistentVolumeSource": _SCALE_IO,
}
