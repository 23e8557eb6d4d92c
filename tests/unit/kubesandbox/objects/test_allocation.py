"""Tests of `kubesandbox.objects.allocation`."""

from __future__ import annotations

from ipaddress import ip_address

from kubesandbox.objects.allocation import SERVICE_RANGE, Allocator
from pyverno.kube.json import JSONObject


def service(name: str, address: str = "", node_port: int = 0) -> JSONObject:
    """A stored service."""
    ports = [{"port": 80, "nodePort": node_port}] if node_port else []
    return {
        "metadata": {"namespace": "a", "name": name},
        "spec": {"clusterIPs": [address] if address else [], "ports": ports},
    }


def test_an_address_is_always_the_same_unless_it_is_taken() -> None:
    """The address follows from the name; if it is taken, the next free one is used."""
    free = Allocator()
    first = free.address("a/web")
    assert first == free.address("a/web")
    second = Allocator(lambda: [service("other", first)]).address("a/web")
    assert int(ip_address(first)) + 1 == int(ip_address(second))


def test_addresses_are_those_of_services() -> None:
    """The addresses of the API server and of the cluster's DNS are reserved."""
    for number in range(200):
        address = Allocator().address(f"a/{number}")
        assert ip_address(address) in SERVICE_RANGE
        assert not address.startswith("10.96.0.")


def test_a_port_of_the_nodes_is_given_once() -> None:
    """A node port is given neither to two services nor twice to one."""
    free = Allocator()
    first = free.node_port("a/web:80")
    assert 30000 <= first < 32768
    assert first != Allocator(lambda: [service("other", node_port=first)]).node_port("a/web:80")
    assert first != free.node_port("a/web:80", {first})


def test_what_another_service_has_is_refused() -> None:
    """An address and a port of the nodes; what a service has itself it keeps."""
    allocator = Allocator(lambda: [service("web", "10.96.7.7", 30100)])

    def texts(body: JSONObject, old: JSONObject | None = None) -> list[str]:
        return [str(error) for error in allocator.refusals(body, old)]

    other = service("other", "10.96.7.7")
    address = 'spec.clusterIPs: Invalid value: ["10.96.7.7"]: failed to allocate IP 10.96.7.7: '
    assert [f"{address}provided IP is already allocated"] == texts(other)
    third = service("third", "10.96.7.8", 30100)
    assert [] == texts(third), "a ClusterIP service asks for no port of the nodes"
    third["spec"]["type"] = "NodePort"
    assert ["spec.ports[0].nodePort: Invalid value: 30100: provided port is already allocated"] == texts(third)
    own = service("web", "10.96.7.7", 30100)
    assert [] == texts(own, own)
    assert [] == texts(service("none", "None"))
