"""Addresses and ports of services: which are free, and which one a service gets.

The choice follows from the service's name, so that the same objects always give the same cluster.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from pyverno.kube.json import JSONObject, encode
from pyverno.kube.status import FieldError

__all__ = ["SERVICE_RANGE", "Allocator"]

SERVICE_RANGE: Final = ipaddress.IPv4Network("10.96.0.0/16")
_NODE_PORTS: Final = range(30000, 32768)


def _nothing() -> Iterable[JSONObject]:
    return ()


@dataclass(frozen=True, slots=True)
class Allocator:
    """Addresses and ports that services may still take; `services` gives all services that are stored.

    >>> Allocator().address("default/web")
    '10.96.141.5'
    """

    services: Callable[[], Iterable[JSONObject]] = _nothing

    def address(self, name: str) -> str:
        """Return a free cluster address for a service."""
        taken = {address for service in self.services() for address in _addresses(service)}
        size = SERVICE_RANGE.num_addresses - 2
        start = crc32(name.encode()) % size
        for step in range(size):
            # the first addresses belong to the API server and the cluster's DNS
            address = str(SERVICE_RANGE[1 + (start + step) % size])
            if address not in taken and not address.startswith("10.96.0."):
                return address
        return ""

    def refusals(self, service: JSONObject, old: JSONObject | None) -> list[FieldError]:
        """Return which addresses and ports of a service belong to another one; `old` is its stored state.

        >>> web = {"metadata": {"name": "web"}, "spec": {"clusterIPs": ["10.96.0.9"]}}
        >>> [str(error) for error in Allocator(lambda: [web]).refusals(web, None)]
        ['spec.clusterIPs: Invalid value: ["10.96.0.9"]: failed to allocate IP 10.96.0.9: provided IP is already allocated']
        """  # noqa: E501  # one text, as it prints
        spec: JSONObject = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return []
        own = None if old is None else _place(service)
        others = [each for each in self.services() if _place(each) != own]
        taken = {address for each in others for address in _addresses(each)} - {"None"}
        for address in _addresses(service):
            if address in taken:
                why = f"failed to allocate IP {address}: provided IP is already allocated"
                return [FieldError("spec.clusterIPs", "Invalid value", why, encode([*_addresses(service)]))]
        if spec.get("type") not in ("NodePort", "LoadBalancer"):
            return []
        ports = {port for each in others for port in _node_ports(each)}
        for index, port in enumerate(spec.get("ports") or ()):
            if port.get("nodePort") in ports:
                field, why = f"spec.ports[{index}].nodePort", "provided port is already allocated"
                return [FieldError(field, "Invalid value", why, str(port["nodePort"]))]
        return []

    def node_port(self, name: str, own: Iterable[int] = ()) -> int:
        """Return a free port of the nodes for a port of a service; `own` are those it has already."""
        taken = {*own, *(port for service in self.services() for port in _node_ports(service))}
        start = crc32(name.encode()) % len(_NODE_PORTS)
        for step in range(len(_NODE_PORTS)):
            port = _NODE_PORTS[(start + step) % len(_NODE_PORTS)]
            if port not in taken:
                return port
        return 0


def _place(service: JSONObject) -> tuple[str, str]:
    metadata = service.get("metadata") or {}
    return metadata.get("namespace", ""), metadata.get("name", "")


def _addresses(service: JSONObject) -> Iterable[str]:
    return (service.get("spec") or {}).get("clusterIPs") or ()


def _node_ports(service: JSONObject) -> Iterable[int]:
    spec = service.get("spec") or {}
    ports = (port.get("nodePort") for port in spec.get("ports") or ())
    return (port for port in (*ports, spec.get("healthCheckNodePort")) if port)
