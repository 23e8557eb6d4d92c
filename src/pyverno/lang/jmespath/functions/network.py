"""Functions about network addresses.

The runtime's host looks names up: this module must never open a socket.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from pyverno.errors import EvaluationError, HostError, HostUnavailableError, ValueSyntaxError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.cost import Cost
from pyverno.lang.jmespath.function import BOOL, STRING, function, unreadable
from pyverno.lang.runtime import Runtime
from pyverno.lazyregex import regex

__all__ = ["FUNCTIONS"]

_URL: Final = regex(r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):)?(?://(?P<authority>[^/?#]*))?")
_CONTROL: Final = regex(r"[\x00-\x1f\x7f]")
_PORT: Final = regex(r"(?::[0-9]*)?")
_FIRST_SEGMENT: Final = regex(r"[^/?#]*")

_INTERNAL: Final = tuple(
    map(
        ipaddress.ip_network,
        ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7"),
    )
)


@function(
    "is_external_url",
    STRING,
    returns=BOOL,
    cost=Cost(per_step=4, most=8192),
    note="checks whether a URL leads out of private networks",
)
def is_external_url(runtime: Runtime, url: str) -> JSON:
    """Return whether the host of a URL is neither a loopback nor a private address.

    A name is external when none of its addresses is internal; link-local addresses count as external, as upstream.

    >>> is_external_url('https://10.1.1.1')
    false
    >>> is_external_url('https://169.254.169.254')
    true
    """
    try:
        host = _host(url)
    except ValueSyntaxError as error:
        raise unreadable("is_external_url", 1, url, "a URL", error.message) from None
    if host.lower().rstrip(".") == "localhost":
        return False
    address = _address(host)
    if address is not None:
        return not _is_internal(address)
    if not host:
        raise EvaluationError("lookup : no such host")
    try:
        found_addresses = runtime.host.lookup_host(host)
    except HostUnavailableError:
        raise
    except HostError:
        # the error text names the host name, which may be data
        raise HostError("JMESPath function 'is_external_url': the host of argument #1 has no address") from None
    addresses = [_address(found) for found in found_addresses]
    return not any(found is None or _is_internal(found) for found in addresses)


def _host(url: str) -> str:
    """Return the host of a URL without port and brackets; empty when it has none (Go: URL.Hostname)."""
    if _CONTROL.search(url):
        raise ValueSyntaxError(f'parse "{url}": net/url: invalid control character in URL')
    found = _URL.match(url)
    if url.startswith(":") or found is None:
        raise ValueSyntaxError(f'parse "{url}": missing protocol scheme')
    first = _FIRST_SEGMENT.match(url)
    if found["scheme"] is None and found["authority"] is None and first and ":" in first.group():
        raise ValueSyntaxError(f'parse "{url}": first path segment in URL cannot contain colon')
    host = (found["authority"] or "").rpartition("@")[2]
    if host.startswith("["):
        host, bracket, port = host[1:].rpartition("]")
        if not bracket:
            raise ValueSyntaxError(f"parse \"{url}\": missing ']' in host")
    else:
        host, colon, port = host.partition(":")
        port = colon + port
    if not _PORT.fullmatch(port):
        raise ValueSyntaxError(f'parse "{url}": invalid port "{port}" after host')
    return host


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _is_internal(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return any(address in network for network in _INTERNAL)


FUNCTIONS: Final = (is_external_url,)
