"""Rows of services, endpoints, ingresses and other kinds of the network.

This module must never look an address up.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kubesandbox.tables.cells import (
    NONE,
    UNSET,
    age,
    count,
    joined,
    labels_text,
    name_of,
    objects,
    part,
    selector_text,
    shortened,
    text,
)
from kubesandbox.tables.printer import Printer, Printers, columns
from pyverno.kube.json import JSON, JSONObject

__all__ = ["PRINTERS"]


def _service(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield text(body, "spec", "type")
    addresses = part(body, "spec", "clusterIPs") or [part(body, "spec", "clusterIP")]
    yield addresses[0] or NONE
    yield _external_address(body)
    yield joined(_port(port) for port in objects(body, "spec", "ports"))
    yield age(body, now)
    yield labels_text(part(body, "spec", "selector"))


def _external_address(body: JSONObject) -> str:
    external = [str(address) for address in part(body, "spec", "externalIPs") or ()]
    match text(body, "spec", "type"):
        case "ClusterIP" | "NodePort":
            return joined(external)
        case "LoadBalancer":
            return joined([*_balancer(body), *external], empty="<pending>")
        case "ExternalName":
            return text(body, "spec", "externalName")
        case _:
            return "<unknown>"


def _balancer(body: JSONObject) -> list[str]:
    entries = objects(body, "status", "loadBalancer", "ingress")
    return sorted({found for entry in entries if (found := text(entry, "ip") or text(entry, "hostname"))})


def _port(port: JSONObject) -> str:
    node = count(port, "nodePort")
    number = f"{count(port, 'port')}:{node}" if node > 0 else str(count(port, "port"))
    return f"{number}/{text(port, 'protocol')}"


def _endpoints(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    found = [address for subset in objects(body, "subsets") for address in _subset(subset)]
    yield shortened(found, 3, empty="" if objects(body, "subsets") else NONE)
    yield age(body, now)


def _subset(subset: JSONObject) -> Iterator[str]:
    addresses = [text(address, "ip") for address in objects(subset, "addresses")]
    ports = objects(subset, "ports")
    if not ports:
        yield from addresses
    for port in ports:
        for address in addresses:
            yield f"[{address}]:{count(port, 'port')}" if ":" in address else f"{address}:{count(port, 'port')}"


def _endpoint_slice(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield text(body, "addressType")
    ports = [str(part(port, "port") or part(port, "name") or "*") for port in objects(body, "ports")]
    yield shortened(ports, 3, empty=UNSET)
    addresses = [str(address) for item in objects(body, "endpoints") for address in part(item, "addresses") or ()]
    yield shortened(addresses, 3, empty=UNSET)
    yield age(body, now)


def _ingress(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield text(body, "spec", "ingressClassName") or NONE
    yield _hosts(objects(body, "spec", "rules"))
    yield ",".join(_balancer(body))
    yield "80, 443" if objects(body, "spec", "tls") else "80"
    yield age(body, now)


def _hosts(rules: list[JSONObject]) -> str:
    named = [place for place, rule in enumerate(rules) if text(rule, "host")]
    hosts = ",".join(text(rules[place], "host") for place in named[:3])
    if len(named) < 3 or named[2] + 1 == len(rules):
        return hosts or "*"
    # upstream counts the rules, those without a host as well
    return f"{hosts} + {len(rules) - 3} more..."


def _ingress_class(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield text(body, "spec", "controller")
    parameters = part(body, "spec", "parameters")
    if parameters is None:
        yield NONE
    else:
        group = part(parameters, "apiGroup")
        kind = text(parameters, "kind") if group is None else f"{text(parameters, 'kind')}.{group}"
        yield f"{kind}/{text(parameters, 'name')}"
    yield age(body, now)


def _network_policy(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield selector_text(part(body, "spec", "podSelector"))
    yield age(body, now)


PRINTERS: Printers = {
    ("", "endpoints"): Printer(columns("NAME Endpoints AGE"), _endpoints),
    ("", "services"): Printer(columns("NAME Type Cluster-IP External-IP Port(s) AGE Selector*"), _service),
    ("discovery.k8s.io", "endpointslices"): Printer(columns("NAME AddressType Ports Endpoints AGE"), _endpoint_slice),
    ("networking.k8s.io", "ingressclasses"): Printer(columns("NAME Controller Parameters AGE"), _ingress_class),
    ("networking.k8s.io", "ingresses"): Printer(columns("NAME Class Hosts Address Ports AGE"), _ingress),
    ("networking.k8s.io", "networkpolicies"): Printer(columns("NAME Pod-Selector AGE"), _network_policy),
}
