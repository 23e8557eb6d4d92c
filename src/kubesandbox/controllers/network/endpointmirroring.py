"""Endpoints that somebody wrote by hand are told as EndpointSlices too, for Services that select no pods.

The slices follow their Endpoints, which own them. This module must never change Endpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesandbox.controllers.context import ControllerContext, is_namespace_ending
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.network.serviceaddresses import MANAGED_BY, SERVICE_NAME
from kubesandbox.controllers.objects import (
    annotations_of,
    at,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
)
from kubesandbox.storage.store import Change, Key
from pyverno.kube.json import JSONObject, equal
from pyverno.kube.status import StatusError

__all__ = ["EndpointMirroring", "mirrored"]

ENDPOINTS = "endpoints"
SLICES = "endpointslices.discovery.k8s.io"
MIRRORING = "endpointslicemirroring-controller.k8s.io"
SKIP = "endpointslice.kubernetes.io/skip-mirror"
_LEADER = "control-plane.alpha.kubernetes.io/leader"
_OWN_NOTES = ("endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration")


class EndpointMirroring:
    """Keeps the slices of Endpoints."""

    def __init__(self, bench: ControllerContext) -> None:
        """Take the tools."""
        self._bench = bench

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Endpoints, their Services, and the slices when somebody else changes them."""
        return {ENDPOINTS: itself, "services": _of_service, SLICES: _of_slice}

    async def reconcile(self, key: Key) -> float | None:
        """Write, change or delete the slices of one Endpoints object."""
        client = self._bench.client
        endpoints = client.get(ENDPOINTS, key.name, key.namespace)
        service = client.get("services", key.name, key.namespace)
        present = [
            found
            for found in client.list(SLICES, key.namespace)
            if labels_of(found).get(SERVICE_NAME) == key.name and labels_of(found).get(MANAGED_BY) == MIRRORING
        ]
        wanted = mirrored(endpoints) if endpoints is not None and _is_mirrored(endpoints, service) else []
        try:
            await self._bring(present, wanted)
        except StatusError as error:
            if error.reason != "NotFound" and not is_namespace_ending(error):
                raise
        return None

    async def _bring(self, present: list[JSONObject], wanted: list[JSONObject]) -> None:
        """Use slices again where they fit, by their kind of address and their ports first."""
        client, left = self._bench.client, [found for found in present if not is_deleting(found)]
        for slice_ in wanted:
            fits = [found for found in left if found["addressType"] == slice_["addressType"]]
            found = next((one for one in fits if equal(one.get("ports"), slice_["ports"])), next(iter(fits), None))
            if found is None:
                await client.create(SLICES, slice_)
                continue
            left.remove(found)
            metadata = {**found["metadata"], **{key: slice_["metadata"].get(key) for key in ("labels", "annotations")}}
            metadata = {key: value for key, value in metadata.items() if value is not None}
            after = {**found, "metadata": metadata, "endpoints": slice_["endpoints"], "ports": slice_["ports"]}
            if not equal(after, found):
                await client.update(SLICES, after)
        for found in left:
            await client.delete(SLICES, name_of(found), namespace_of(found))


def mirrored(endpoints: JSONObject) -> list[JSONObject]:
    """Return the slices of Endpoints, still without names: one for each set of ports and kind of address.

    >>> subset = {"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}
    >>> metadata = {"name": "db", "namespace": "n", "uid": "u"}
    >>> body = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]}
    >>> [slice_["endpoints"] for slice_ in mirrored(body)]
    [[{'addresses': ['10.1.2.3'], 'conditions': {'ready': True}}]]
    """
    found: dict[tuple[str, str], JSONObject] = {}
    for subset in endpoints.get("subsets") or ():
        ports = [_port(port) for port in subset.get("ports") or ()]
        for field, is_ready in (("addresses", True), ("notReadyAddresses", False)):
            for address in subset.get(field) or ():
                kind = "IPv6" if ":" in address["ip"] else "IPv4"
                slice_ = found.setdefault((kind, repr(ports)), _slice(endpoints, kind, ports))
                slice_["endpoints"].append(_endpoint(address, is_ready=is_ready))
    return list(found.values())


def _slice(endpoints: JSONObject, kind: str, ports: list[JSONObject]) -> JSONObject:
    labels = {key: value for key, value in labels_of(endpoints).items() if key != SKIP}
    annotations = {key: value for key, value in annotations_of(endpoints).items() if key not in _OWN_NOTES}
    name = name_of(endpoints)
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{name}-",
            "namespace": namespace_of(endpoints),
            "labels": {**labels, SERVICE_NAME: name, MANAGED_BY: MIRRORING},
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [owner_reference(endpoints)],
        },
        "addressType": kind,
        "endpoints": [],
        "ports": ports,
    }


def _port(port: JSONObject) -> JSONObject:
    found = {"name": port.get("name", ""), "port": port["port"], "protocol": port.get("protocol", "TCP")}
    return {**found, **({"appProtocol": port["appProtocol"]} if port.get("appProtocol") else {})}


def _endpoint(address: JSONObject, *, is_ready: bool) -> JSONObject:
    more = {key: address[key] for key in ("hostname", "nodeName", "targetRef") if address.get(key)}
    return {"addresses": [address["ip"]], "conditions": {"ready": is_ready}, **more}


def _is_mirrored(endpoints: JSONObject, service: JSONObject | None) -> bool:
    """Tell whether Endpoints are told as slices: those of a Service without selector, unless they say otherwise."""
    if service is None or is_deleting(endpoints) or at(service, "spec", "selector") is not None:
        return False
    return labels_of(endpoints).get(SKIP) != "true" and _LEADER not in annotations_of(endpoints)


def _of_service(change: Change) -> Iterable[Key]:
    key = change.state.key
    return (Key(ENDPOINTS, key.namespace, key.name),)


def _of_slice(change: Change) -> Iterable[Key]:
    labels = labels_of(change.state.body)
    if labels.get(MANAGED_BY) != MIRRORING or not labels.get(SERVICE_NAME):
        return ()
    return (Key(ENDPOINTS, change.state.key.namespace, labels[SERVICE_NAME]),)
