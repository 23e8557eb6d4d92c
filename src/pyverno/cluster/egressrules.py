"""Egress rules for calls of policies: lists of hosts, ranges and URLs, and addresses that are always blocked.

An address is checked together with every IPv4 address that it embeds. This module must never resolve a name or open a
connection, and never put an address that a name resolved to into an error: a denial would reveal how names resolve
where we run.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final, TypeAlias

from pyverno.addresses import Address, carries_metadata, embedded_addresses
from pyverno.cluster.serviceurl import ServiceUrl, parse_service_url
from pyverno.errors import HostError, UsageError, ValueSyntaxError
from pyverno.value import dataclass

__all__ = ["DEFAULT_BLOCKLIST", "EgressRules"]

_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

DEFAULT_BLOCKLIST: Final = (
    "169.254.169.254",
    "169.254.169.253",
    "metadata.google.internal",
    "127.0.0.0/8",
    "::1/128",
)
"""The default block list (Kyverno's)."""

_NEVER: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # this machine, by another name
        "169.254.0.0/16",  # link-local: the metadata services of clouds
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        "::/128",
        "fe80::/10",
        "ff00::/8",
        "100.100.100.200/32",  # the metadata services of clouds that are not link-local
        "168.63.129.16/32",
        "192.0.0.192/32",
        "fd00:ec2::/32",
        "fd20:ce::/32",
    )
)
"""Nothing that a policy should call lives here; no list opens it."""


@dataclass(frozen=True, slots=True)
class EgressRules:
    """The two lists, read; make one with `EgressRules.read`.

    >>> rules = EgressRules.read(DEFAULT_BLOCKLIST, ["https://api.example.com/v1"])
    >>> rules.check_url(parse_service_url("https://api.example.com/v1/teams"))
    >>> rules.check_url(parse_service_url("https://api.example.com/v10"))
    Traceback (most recent call last):
    pyverno.errors.HostError: `https://api.example.com` is not permitted: no matching allowlist entry
    """

    hosts: frozenset[str] = frozenset()
    networks: tuple[_Network, ...] = ()
    allowed: tuple[ServiceUrl, ...] = ()

    @classmethod
    def read(cls, blocklist: Iterable[str] = DEFAULT_BLOCKLIST, allowlist: Iterable[str] = ()) -> EgressRules:
        """Read the flags: hosts, addresses and ranges that are blocked, allowed URL prefixes.

        Raises UsageError for an entry that is none of these.
        """
        blocked = [_parse_blocked(entry.strip()) for entry in blocklist if entry.strip()]
        return cls(
            frozenset(each for each in blocked if isinstance(each, str)),
            tuple(each for each in blocked if not isinstance(each, str)),
            tuple(_parse_allowed(entry.strip()) for entry in allowlist if entry.strip()),
        )

    def check_url(self, url: ServiceUrl) -> None:
        """Raise HostError for a URL that the lists do not let through, before any name is resolved."""
        if self.allowed and not any(_covers(entry, url) for entry in self.allowed):
            raise HostError(f"`{url.origin}` is not permitted: no matching allowlist entry")
        if url.name in self.hosts:
            raise HostError(f"`{url.origin}` is blocked: the host is on the blocklist")
        if url.address is not None:
            self.check_address(url.address, url.origin)

    def check_address(self, address: Address, origin: str) -> None:
        """Raise HostError for an address that may not be connected to."""
        for each in (address, *embedded_addresses(address)):
            for network in (*_NEVER, *self.networks):
                if each in network:
                    raise HostError(f"`{origin}` is blocked: it is in the blocked range {network}")
        if carries_metadata(address):
            raise HostError(f"`{origin}` is blocked: it can be translated to a link-local address or metadata service")


def _covers(entry: ServiceUrl, url: ServiceUrl) -> bool:
    """Return whether an entry of the allow list is the URL's origin and, in whole segments, the begin of its path."""
    if (entry.scheme, entry.name, entry.port) != (url.scheme, url.name, url.port):
        return False
    prefix = entry.path.rstrip("/")
    return url.path == prefix or url.path.startswith(f"{prefix}/")


def _parse_blocked(entry: str) -> str | _Network:
    try:
        if "%" not in entry:
            return ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass
    try:
        if "/" not in entry:
            return parse_service_url(f"http://{entry}").name
    except ValueSyntaxError:
        pass
    raise UsageError(f"invalid entry `{entry}` of --httpBlocklist: expected a host, an address or a range")


def _parse_allowed(entry: str) -> ServiceUrl:
    try:
        return parse_service_url(entry)
    except ValueSyntaxError as error:
        raise UsageError(
            f"invalid entry `{entry}` of --httpAllowlist (such as https://api.example.com/v1): {error.message}"
        ) from None
