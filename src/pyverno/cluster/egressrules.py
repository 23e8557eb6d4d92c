"""Egress rules for calls of policies: lists of hosts, ranges and URLs, and addresses that are always blocked.

An address is checked together with every IPv4 address that it embeds. This module must never resolve a name or open a
connection, and never put an address that a name resolved to into an error: a denial would reveal how names resolve
where we run.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from pyverno.cluster.serviceurl import Address, ServiceUrl, parse_service_url
from pyverno.errors import HostError, UsageError, ValueSyntaxError
from pyverno.value import dataclass

__all__ = ["DEFAULT_BLOCKLIST", "EgressRules", "carries_metadata", "embedded_addresses"]

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


def embedded_addresses(address: Address) -> Iterator[ipaddress.IPv4Address]:
    """Yield the IPv4 addresses that an IPv6 address embeds or is routed by.

    >>> [str(each) for each in embedded_addresses(ipaddress.ip_address("2002:a9fe:a9fe::1"))]
    ['169.254.169.254']
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            yield address.ipv4_mapped
        if address.teredo is not None:  # the server, and the client
            yield from (each for each in address.teredo if each not in _NOWHERE)
        packed = address.packed
        for prefix, layouts in _CARRIERS:
            if address in prefix:
                yield from _embedded_addresses(packed, layouts)
        is_isatap = packed[8:12] in (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")  # under any prefix
        is_compatible = not any(packed[:12]) and int(address) > 1  # `::` and `::1` are not meant
        if is_isatap or is_compatible:
            yield ipaddress.IPv4Address(packed[12:])


def carries_metadata(address: Address) -> bool:
    """Return whether an IPv6 address leads to a metadata service if its prefix belongs to a translator (RFC 6052).

    Operators give translators prefixes of their own, of six lengths, and nothing marks these. The addresses of known
    services are recognized in every position; other link-local ones only where all bits that have to be zero are zero,
    because ordinary addresses could hold the two octets `169.254` by chance.

    >>> carries_metadata(ipaddress.ip_address("2001:db8:1::a9fe:a9fe"))
    True
    >>> carries_metadata(ipaddress.ip_address("2001:db8:a9fe:1::9"))
    False
    """
    if not isinstance(address, ipaddress.IPv6Address):
        return False
    packed = address.packed
    for layout in _LAYOUTS:
        found = _embedded_address(packed, layout)
        if found in _METADATA or (found in _LINK_LOCAL and not (packed[8] or any(packed[layout[-1] + 1 :]))):
            return True
    return False


_Layout: TypeAlias = tuple[int, ...]
"""Positions of the four octets of an IPv4 address."""

_LAYOUTS: Final[tuple[_Layout, ...]] = (
    (4, 5, 6, 7),  # after a prefix of 32 bits
    (5, 6, 7, 9),  # 40; RFC 6052: octet 8 is skipped
    (6, 7, 9, 10),  # 48
    (7, 9, 10, 11),  # 56
    (9, 10, 11, 12),  # 64
    (12, 13, 14, 15),  # 96
)
"""The layouts of RFC 6052, by the length of the prefix."""
_AFTER_48, _AFTER_56, _AFTER_64, _LAST = _LAYOUTS[2:]
_AFTER_16: Final = (2, 3, 4, 5)

_NOWHERE: Final = ipaddress.IPv4Network("0.0.0.0/8")
"""No router or translator sends anything here: an address that would carry it is meant in another way."""
_NO_HOST: Final = ipaddress.IPv4Network("224.0.0.0/3")
"""Multicast and reserved addresses, to which no translator sends: a reading that yields one is wrong."""
_LINK_LOCAL: Final = ipaddress.IPv4Network("169.254.0.0/16")
_METADATA: Final = frozenset(
    ipaddress.IPv4Address(text)
    for text in (
        "169.254.169.254",
        "169.254.169.253",
        "169.254.170.2",  # credentials of tasks and pods
        "169.254.170.23",
        "169.254.0.23",
        "169.254.42.42",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
    )
)

_CARRIERS: Final[tuple[tuple[ipaddress.IPv6Network, tuple[_Layout, ...]], ...]] = tuple(
    (ipaddress.IPv6Network(prefix), layouts)
    for prefix, layouts in (
        ("::ffff:0:0:0/96", (_LAST,)),  # IPv4-translated (SIIT)
        ("2002::/16", (_AFTER_16,)),  # 6to4
        ("64:ff9b::/96", (_LAST,)),  # NAT64, the well-known prefix
        ("64:ff9b:1::/48", (_LAST, _AFTER_48, _AFTER_56, _AFTER_64)),  # NAT64, prefixes for local use (RFC 8215)
    )
)


def _embedded_addresses(packed: bytes, layouts: tuple[_Layout, ...]) -> Iterator[ipaddress.IPv4Address]:
    for layout in layouts:
        found = _embedded_address(packed, layout)
        if found not in _NOWHERE and (len(layouts) == 1 or found not in _NO_HOST):
            yield found


def _embedded_address(packed: bytes, layout: _Layout) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(bytes([packed[place] for place in layout]))


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
