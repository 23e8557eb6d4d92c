"""IP addresses inside of other addresses, and the metadata services of clouds, which hold the identity of a machine.

This module must never resolve a name or open a connection.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, TypeAlias

__all__ = ["METADATA_SERVICES", "Address", "carries_metadata", "embedded_addresses", "leads_to_metadata", "source_of"]

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA_SERVICES: Final = frozenset(
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
"""The addresses at which clouds answer a machine about its own identity."""

_METADATA_NETWORKS: Final = (ipaddress.IPv6Network("fd00:ec2::/32"), ipaddress.IPv6Network("fd20:ce::/32"))


@lru_cache(4096)
def source_of(peer: str) -> str:
    """Return the address that stands for a peer: of IPv6 the network of a machine, which may use all of it.

    >>> source_of("10.0.0.7"), source_of("2001:db8::1:2:3:4"), source_of("::ffff:10.0.0.7"), source_of("")
    ('10.0.0.7', '2001:db8::/64', '10.0.0.7', '')
    """
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False))


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
        if found in METADATA_SERVICES or (found in _LINK_LOCAL and not (packed[8] or any(packed[layout[-1] + 1 :]))):
            return True
    return False


def leads_to_metadata(address: Address) -> bool:
    """Return whether a connection to an address reaches a metadata service, directly or through a translator.

    >>> leads_to_metadata(ipaddress.ip_address("::ffff:169.254.169.254"))
    True
    >>> leads_to_metadata(ipaddress.ip_address("169.254.1.2"))
    False
    """
    direct = (address, *embedded_addresses(address))
    in_network = any(address in network for network in _METADATA_NETWORKS)
    return in_network or not METADATA_SERVICES.isdisjoint(direct) or carries_metadata(address)


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
