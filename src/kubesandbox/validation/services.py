"""Checks of Services, Ingresses and NetworkPolicies."""

from __future__ import annotations

import ipaddress
from typing import Final

from kubesandbox.objects.fielderrors import duplicate, forbidden, invalid, required, unsupported
from kubesandbox.validation.check import (
    Errors,
    form,
    label_selector,
    labels,
    needed,
    one_of,
    port_number,
    port_or_name,
    struct,
)
from kubesandbox.validation.names import (
    address_problems,
    dns_label_1035_problems,
    dns_label_problems,
    dns_subdomain_problems,
    port_name_problems,
    wildcard_subdomain_problems,
)
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.labelsyntax import label_key_problems

__all__ = ["ingress", "network_policy", "service", "service_update"]

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def _is_headless(spec: JSONObject) -> bool:
    return spec.get("clusterIP") == "None" or (spec.get("clusterIPs") or [""])[0] == "None"


def _port(port: JSONObject, path: str, errors: Errors, *, needs_name: bool, names: set[str]) -> None:
    name = port.get("name") or ""
    if needs_name and not name:
        errors.append(required(f"{path}.name"))
    elif name:
        form(dns_label_problems)(name, f"{path}.name", errors)
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
    port_number(port.get("port", 0), f"{path}.port", errors)
    protocol = port.get("protocol") or ""
    if not protocol:
        errors.append(required(f"{path}.protocol"))
    elif protocol not in _PROTOCOLS:
        errors.append(unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
    port_or_name(port.get("targetPort", port.get("port", 0)), f"{path}.targetPort", errors)
    application = port.get("appProtocol")
    if application is not None:
        problems = label_key_problems(application)
        errors.extend(invalid(f"{path}.appProtocol", application, problem) for problem in problems)


def _external_name(spec: JSONObject, errors: Errors) -> None:
    for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(key):
            errors.append(forbidden(f"spec.{key}", "may not be set for ExternalName services"))
    name = str(spec.get("externalName") or "").removesuffix(".")
    if not name:
        errors.append(required("spec.externalName"))
    else:
        form(dns_subdomain_problems)(name, "spec.externalName", errors)


def service(body: JSON, path: str, errors: Errors) -> None:
    """Check a Service."""
    spec = body.get("spec") or {}
    kind, ports = spec.get("type") or "", spec.get("ports") or []
    if not ports and not _is_headless(spec) and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if kind in ("LoadBalancer", "NodePort") and _is_headless(spec):
        errors.append(invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services"))
    if kind == "ExternalName":
        _external_name(spec, errors)
    names: set[str] = set()
    for index, port in enumerate(ports):
        _port(port, f"spec.ports[{index}]", errors, needs_name=len(ports) > 1, names=names)
    labels(spec.get("selector") or {}, "spec.selector", errors)
    affinity = spec.get("sessionAffinity") or ""
    if affinity not in ("ClientIP", "None"):
        errors.append(unsupported("spec.sessionAffinity", affinity, ("ClientIP", "None")))
    _addresses(spec, errors)
    if kind not in _TYPES:
        errors.append(unsupported("spec.type", kind, _TYPES))
    _node_ports(kind, ports, errors)


def _addresses(spec: JSONObject, errors: Errors) -> None:
    addresses = spec.get("clusterIPs") or []
    first = spec.get("clusterIP") or ""
    if addresses and first != addresses[0]:
        what = "first value must match `clusterIP`"
        errors.append(invalid("spec.clusterIPs[0]", addresses[0], what))
    for index, address in enumerate(addresses):
        problems = address_problems(address) if address != "None" else ()
        errors.extend(invalid(f"spec.clusterIPs[{index}]", address, problem) for problem in problems)


def _node_ports(kind: str, ports: list[JSONObject], errors: Errors) -> None:
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        node_port = port.get("nodePort")
        if node_port and kind == "ClusterIP":
            what = "may not be used when `type` is 'ClusterIP'"
            errors.append(forbidden(f"spec.ports[{index}].nodePort", what))
        if node_port:
            if (port.get("protocol", ""), node_port) in seen:
                errors.append(duplicate(f"spec.ports[{index}].nodePort", node_port))
            seen.add((port.get("protocol", ""), node_port))
            if kind != "ClusterIP" and not 30000 <= node_port <= 32767:
                what = "provided port is not in the valid range. The range of valid ports is 30000-32767"
                errors.append(invalid(f"spec.ports[{index}].nodePort", node_port, what))


def service_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check that the primary address of a service did not change."""
    new, before = body.get("spec") or {}, old.get("spec") or {}
    if new.get("type") == "ExternalName" or before.get("type") == "ExternalName":
        return False
    if before.get("clusterIP"):
        first, kept = (new.get("clusterIPs") or [""])[0], (before.get("clusterIPs") or [""])[0]
        if new.get("clusterIP") != before["clusterIP"]:
            what = "may not change once set"
            errors.append(invalid("spec.clusterIPs[0]", new.get("clusterIPs") or [], what))
        elif first != kept:
            errors.append(invalid("spec.clusterIPs[0]", new.get("clusterIPs") or [], "may not change once set"))
    return False


def _backend(value: JSONObject, path: str, errors: Errors) -> None:
    resource, target = value.get("resource"), value.get("service")
    if resource is not None and target is not None:
        errors.append(invalid(path, "", "cannot set both resource and service backends"))
    elif resource is not None:
        struct({"kind": needed(), "name": needed()})(resource, f"{path}.resource", errors)
    elif target is not None:
        _backend_service(target, path, errors)
    else:
        errors.append(invalid(path, "", "resource or service backend is required"))


def _backend_service(target: JSONObject, path: str, errors: Errors) -> None:
    name, port = str(target.get("name") or ""), target.get("port") or {}
    if not name:
        errors.append(required(f"{path}.service.name"))
    else:
        form(dns_label_1035_problems)(name, f"{path}.service.name", errors)
    if port.get("name") and port.get("number"):
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        problems = port_name_problems(port["name"])
        errors.extend(invalid(f"{path}.service.port.name", port["name"], problem) for problem in problems)
    elif port.get("number"):
        port_number(port["number"], f"{path}.service.port.number", errors)
    else:
        errors.append(required(path, "port name or number is required"))


_INVALID_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")


def _http_path(value: JSONObject, path: str, errors: Errors) -> None:
    kind, text = value.get("pathType"), str(value.get("path") or "")
    if kind is None:
        errors.append(required(f"{path}.pathType", "pathType must be specified"))
        return
    place = f"{path}.path"
    if kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            errors.append(invalid(place, text, "must be an absolute path"))
        if text:
            errors.extend(
                invalid(place, text, f"must not contain '{part}'") for part in _INVALID_SEQUENCES if part in text
            )
            errors.extend(
                invalid(place, text, f"cannot end with '{end}'") for end in ("/..", "/.") if text.endswith(end)
            )
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            errors.append(invalid(place, text, "must be an absolute path"))
    else:
        errors.append(unsupported(f"{path}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix")))
    _backend(value.get("backend") or {}, f"{path}.backend", errors)


def _host(host: str, path: str, errors: Errors) -> None:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        forms = wildcard_subdomain_problems if "*" in host else dns_subdomain_problems
        form(forms)(host, path, errors)
        return
    errors.append(invalid(path, host, "must be a DNS name, not an IP address"))


def ingress(body: JSON, path: str, errors: Errors) -> None:
    """Check an Ingress."""
    spec = body.get("spec") or {}
    rules, default = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and default is None:
        errors.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    if default is not None:
        _backend(default, "spec.defaultBackend", errors)
    for index, rule in enumerate(rules):
        place = f"spec.rules[{index}]"
        if rule.get("host"):
            _host(rule["host"], f"{place}.host", errors)
        http = rule.get("http")
        if http is None:
            continue
        if not http.get("paths"):
            errors.append(required(f"{place}.http.paths"))
        for number, item in enumerate(http.get("paths") or ()):
            _http_path(item, f"{place}.http.paths[{number}]", errors)
    for index, item in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(item.get("hosts") or ()):
            _host(host, f"spec.tls[{index}].hosts[{number}]", errors)
    form(dns_subdomain_problems)(spec.get("ingressClassName"), "spec.ingressClassName", errors)


def _network_ports(ports: list[JSONObject], path: str, errors: Errors) -> None:
    for index, port in enumerate(ports):
        place, number = f"{path}[{index}]", port.get("port")
        one_of("TCP", "UDP", "SCTP")(port.get("protocol", "TCP"), f"{place}.protocol", errors)
        end = port.get("endPort")
        if number is None:
            if end is not None:
                what = "may not be specified when `port` is not specified"
                errors.append(invalid(f"{place}.endPort", end, what))
        elif type(number) is str:
            problems = port_name_problems(number)
            errors.extend(invalid(f"{place}.port", number, problem) for problem in problems)
            if end is not None:
                what = "may not be specified when `port` is non-numeric"
                errors.append(invalid(f"{place}.endPort", end, what))
        else:
            port_number(number, f"{place}.port", errors)
            if end is not None and end < number:
                errors.append(invalid(f"{place}.endPort", number, "must be greater than or equal to `port`"))


def _peers(peers: list[JSONObject], path: str, errors: Errors) -> None:
    for index, peer in enumerate(peers):
        place = f"{path}[{index}]"
        selectors = [key for key in ("podSelector", "namespaceSelector") if peer.get(key) is not None]
        for key in selectors:
            label_selector(peer[key], f"{place}.{key}", errors)
        block = peer.get("ipBlock")
        if block is not None:
            _block(block, f"{place}.ipBlock", errors)
        if not selectors and block is None:
            errors.append(required(place, "must specify a peer"))
        elif selectors and block is not None:
            errors.append(forbidden(place, "may not specify both ipBlock and another peer"))


def _block(block: JSONObject, path: str, errors: Errors) -> None:
    text = str(block.get("cidr") or "")
    if not text:
        errors.append(required(f"{path}.cidr"))
        return
    what = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        errors.append(invalid(f"{path}.cidr", text, what))
        return
    for index, item in enumerate(block.get("except") or ()):
        place = f"{path}.except[{index}]"
        try:
            inner = ipaddress.ip_network(item, strict=False)
        except ValueError:
            errors.append(invalid(place, item, what))
            continue
        inside = inner.version == network.version and inner != network and inner.network_address in network
        if not inside or inner.prefixlen <= network.prefixlen:
            errors.append(invalid(place, item, "must be a strict subset of `cidr`"))


def network_policy(body: JSON, path: str, errors: Errors) -> None:
    """Check a NetworkPolicy."""
    spec = body.get("spec") or {}
    label_selector(spec.get("podSelector"), "spec.podSelector", errors)
    for key, direction in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(key) or ()):
            place = f"spec.{key}[{index}]"
            _network_ports(rule.get("ports") or [], f"{place}.ports", errors)
            _peers(rule.get(direction) or [], f"{place}.{direction}", errors)
    types = spec.get("policyTypes") or []
    if len(types) > 2:
        errors.append(invalid("spec.policyTypes", types, "may not specify more than two policyTypes"))
        return
    for index, kind in enumerate(types):
        if kind not in ("Ingress", "Egress"):
            errors.append(unsupported(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress")))
