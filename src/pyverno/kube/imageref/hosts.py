"""Hosts of registries: one text for each, and the names of Docker Hub."""

from __future__ import annotations

from typing import Final

__all__ = ["DOCKER_HUB", "HUB_NAMES", "is_docker_hub", "normal_host", "registry_name", "split_port"]

DOCKER_HUB: Final = "docker.io"
_INDEX: Final = "index.docker.io"
_HUB_API: Final = "registry-1.docker.io"
HUB_NAMES: Final = (DOCKER_HUB, _INDEX, _HUB_API)
_HTTPS: Final = "443"
_MAX_PORT_DIGITS: Final = 20


def is_docker_hub(host: str) -> bool:
    """Return whether a host in its normal form is Docker Hub.

    >>> is_docker_hub("index.docker.io"), is_docker_hub("ghcr.io")
    (True, False)
    """
    return host in HUB_NAMES


def _is_local(host: str) -> bool:
    """Return whether a host, without a port, is this machine, where registries speak plain HTTP."""
    return host in ("localhost", "127.0.0.1", "[::1]")


def split_port(text: str) -> tuple[str, str]:
    """Split a host from its port, "" for none; an IPv6 address is in brackets.

    >>> split_port("[::1]:5000"), split_port("ghcr.io")
    (('[::1]', '5000'), ('ghcr.io', ''))
    """
    host, colon, port = text.rpartition(":")
    return (host, port) if colon and "]" not in port else (text, "")


def normal_host(text: str) -> str:
    """Return the one text for the host of a registry and its port.

    A name without a dot keeps its port, or else it would read as the first part of a path. An IPv4 address in the form
    of IPv6 is the same host.

    >>> normal_host("GHCR.IO:443"), normal_host("[0:0::1]:5000"), normal_host("Registry")
    ('ghcr.io', '[::1]:5000', 'registry:443')
    >>> normal_host("[::ffff:a00:1]:5000")
    '10.0.0.1:5000'
    """
    host, port = split_port(text.lower())  # guard: a host is written in lower case
    host = host.rstrip(".")
    if host.startswith("["):
        host = _shortest(host)
    port = _without_zeros(port)
    if _is_local(host):
        return f"{host}:{port}" if port else host
    if port in ("", _HTTPS):
        if host == _HUB_API:
            return DOCKER_HUB
        port = "" if "." in host or host.startswith("[") else _HTTPS
    return f"{host}:{port}" if port else host


def registry_name(host: str) -> str:
    """Return the one name of a registry: its normal host, and `docker.io` for each host of Docker Hub.

    >>> registry_name("Index.Docker.IO"), registry_name("ghcr.io:443")
    ('docker.io', 'ghcr.io')
    """
    normal = normal_host(host)
    return DOCKER_HUB if is_docker_hub(normal) else normal


def _shortest(host: str) -> str:
    from ipaddress import IPv6Address

    try:
        address = IPv6Address(host[1:-1])
    except ValueError:
        return host
    mapped = address.ipv4_mapped
    return f"[{address}]" if mapped is None else str(mapped)  # guard: a mapped address is the IPv4 host


def _without_zeros(port: str) -> str:
    return (port.lstrip("0") or "0") if port and len(port) <= _MAX_PORT_DIGITS else port
