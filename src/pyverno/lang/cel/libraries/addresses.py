"""IP addresses and CIDR ranges: Kubernetes' libraries, and cel-go's own `network`.

Zones and IPv4-mapped IPv6 addresses are refused; `network` reads a mapped address in hexadecimal as the IPv4 address.
Addresses are compared as values, never as text.
"""

from __future__ import annotations

import ipaddress
import math
from typing import ClassVar, Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.declarations import CallCost, Declaration, Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.libraries.costs import by_size, value_size
from pyverno.lang.cel.types import opaque
from pyverno.lang.cel.values import Value
from pyverno.lang.cel.work import instant, reading
from pyverno.value import dataclass

__all__ = ["CIDR", "CIDRS", "IP", "IPS", "NETWORK"]

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class IP:
    """An address without zone."""

    cel_type: ClassVar[str] = "net.IP"
    address: _Address

    @property
    def json_text(self) -> str:
        """The address as JSON holds it."""
        return str(self.address)

    @property
    def size(self) -> int:
        """Length in bytes."""
        return len(self.address.packed)


@dataclass(frozen=True, slots=True)
class CIDR:
    """An address with a prefix length; bits below the prefix are kept as written."""

    cel_type: ClassVar[str] = "net.CIDR"
    address: _Address
    bits: int

    @property
    def json_text(self) -> str:
        """The range as JSON holds it."""
        return f"{self.address}/{self.bits}"

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """The range that the prefix names."""
        return ipaddress.ip_network((self.address, self.bits), strict=False)

    @property
    def size(self) -> int:
        """Length of the prefix in bytes."""
        return math.ceil(self.bits / 8)


def parse_ip(text: str) -> IP:
    """Return an address; raises EvaluationError with Kubernetes' texts.

    >>> str(parse_ip("2001:DB8::1").address)
    '2001:db8::1'
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        problem = "parse error during conversion from string"
        raise OperandError(
            f"IP Address {problem}: unable to parse IP",
            f'IP Address "{text}" {problem}: ParseAddr("{text}"): unable to parse IP',
        ) from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise _disallowed("IP address", text, "with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise _disallowed("IPv4-mapped IPv6 address", text, "is not allowed")
    return IP(address)


def _disallowed(what: str, text: str, problem: str) -> EvaluationError:
    return OperandError(f"{what} {problem}", f'{what} "{text}" {problem}')


def _no_prefix(text: str, reason: str, quoting: str = "") -> EvaluationError:
    # Kubernetes writes the first half twice
    problem = "network address parse error during conversion from string: " * 2
    return OperandError(f"{problem}{reason}", f'{problem}netip.ParsePrefix("{text}"): {quoting or reason}')


def parse_cidr(text: str) -> CIDR:
    """Return an address range; raises EvaluationError with Kubernetes' texts."""
    head, slash, digits = text.rpartition("/")
    if not slash:
        raise _no_prefix(text, "no '/'")
    if "%" in head:
        raise _no_prefix(text, "IPv6 zones cannot be present in a prefix")
    try:
        address = ipaddress.ip_address(head)
    except ValueError:
        raise _no_prefix(text, "unable to parse IP", f'ParseAddr("{head}"): unable to parse IP') from None
    if not (digits.isascii() and digits.isdigit()) or (len(digits) > 1 and digits[0] == "0"):
        raise _no_prefix(text, "bad bits after slash", f'bad bits after slash: "{digits}"')
    if len(digits) > 3 or int(digits) > address.max_prefixlen:
        raise _no_prefix(text, "prefix length out of range")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise _disallowed("IPv4-mapped IPv6 address", text, "is not allowed")
    return CIDR(address, int(digits))


def _contains_cost(*, masks: bool) -> CallCost:
    def cost(args: tuple[Value, ...], _result: Value) -> int:
        prefix: int = args[0].size
        total = math.ceil(2 * prefix * 0.1)
        if masks:
            total += math.ceil(prefix * 0.1) + 1
        if isinstance(args[1], str):
            total += math.ceil(value_size(args[1]) * 0.1)
        return total

    return cost


@function("ip", "(string) -> net.IP", cost=by_size(), work=reading())
def ip(text: str) -> IP:
    """The address that a text names; zones and IPv4-mapped addresses are errors.

    CEL: ip('10.0.0.1').family() ⇒ 4
    """
    return parse_ip(text)


@function("isIP", "(string) -> bool", cost=by_size(), work=reading())
def is_ip(text: str) -> bool:
    """Whether a text names an address.

    CEL: isIP('::ffff:1.2.3.4') ⇒ false
    """
    try:
        parse_ip(text)
    except EvaluationError:
        return False
    return True


@function("ip.isCanonical", "(string) -> bool", cost=by_size(0, 2), work=reading())
def ip_is_canonical(text: str) -> bool:
    """Whether a text is the shortest usual form of its address.

    CEL: ip.isCanonical('2001:DB8::1') ⇒ false
    """
    return str(parse_ip(text).address) == text


@function("family", "net.IP.() -> int", work=instant)
def family(value: IP) -> int:
    """4 or 6.

    CEL: ip('::1').family() ⇒ 6
    """
    return value.address.version


@function("isUnspecified", "net.IP.() -> bool", work=instant)
def is_unspecified(value: IP) -> bool:
    """Whether the address is all zeros.

    CEL: ip('0.0.0.0').isUnspecified() ⇒ true
    """
    return value.address.is_unspecified


@function("isLoopback", "net.IP.() -> bool", work=instant)
def is_loopback(value: IP) -> bool:
    """Whether the address is a loopback one.

    CEL: ip('127.0.0.1').isLoopback() ⇒ true
    """
    return value.address.is_loopback


@function("isLinkLocalMulticast", "net.IP.() -> bool", work=instant)
def is_link_local_multicast(value: IP) -> bool:
    """Whether the address is 224.0.0.0/24 or ff02::/16 (interface-independent part).

    CEL: ip('224.0.0.1').isLinkLocalMulticast() ⇒ true
    """
    packed = value.address.packed
    if len(packed) == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


@function("isLinkLocalUnicast", "net.IP.() -> bool", work=instant)
def is_link_local_unicast(value: IP) -> bool:
    """Whether the address is in 169.254.0.0/16 or fe80::/10.

    CEL: ip('fe80::1').isLinkLocalUnicast() ⇒ true
    """
    return _link_local(value.address)


def _link_local(address: _Address) -> bool:
    packed = address.packed
    if len(packed) == 4:
        return packed[:2] == b"\xa9\xfe"
    return packed[0] == 0xFE and packed[1] & 0xC0 == 0x80


@function("isGlobalUnicast", "net.IP.() -> bool", work=instant)
def is_global_unicast(value: IP) -> bool:
    """Whether the address is a unicast one beyond the link, private ranges included.

    CEL: ip('10.0.0.1').isGlobalUnicast() ⇒ true
    """
    address = value.address
    broadcast = address.packed == b"\xff\xff\xff\xff"
    return not (
        address.is_unspecified or address.is_loopback or address.is_multicast or broadcast or _link_local(address)
    )


@function("string", "(net.IP) -> string", work=instant)
def ip_text(value: IP) -> str:
    """The address in its usual form.

    CEL: string(ip('2001:DB8::1')) ⇒ '2001:db8::1'
    """
    return str(value.address)


@function("cidr", "(string) -> net.CIDR", cost=by_size(), work=reading())
def cidr(text: str) -> CIDR:
    """The address range that a text names.

    CEL: cidr('10.0.0.0/8').prefixLength() ⇒ 8
    """
    return parse_cidr(text)


@function("isCIDR", "(string) -> bool", cost=by_size(), work=reading())
def is_cidr(text: str) -> bool:
    """Whether a text names an address range.

    CEL: isCIDR('10.0.0.0/33') ⇒ false
    """
    try:
        parse_cidr(text)
    except EvaluationError:
        return False
    return True


@function(
    "containsIP",
    "net.CIDR.(string) -> bool",
    "net.CIDR.(net.IP) -> bool",
    cost=_contains_cost(masks=False),
    work=reading(1),
)
def contains_ip(value: CIDR, other: Value) -> bool:
    """Whether a range has an address.

    CEL: cidr('10.0.0.0/8').containsIP('10.1.1.1') ⇒ true
    """
    wanted = parse_ip(other) if isinstance(other, str) else other
    return wanted.address.version == value.address.version and wanted.address in value.network


@function(
    "containsCIDR",
    "net.CIDR.(string) -> bool",
    "net.CIDR.(net.CIDR) -> bool",
    cost=_contains_cost(masks=True),
    work=reading(1),
)
def contains_cidr(value: CIDR, other: Value) -> bool:
    """Whether a range has all of another one.

    CEL: cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') ⇒ true
    """
    wanted = parse_cidr(other) if isinstance(other, str) else other
    if wanted.address.version != value.address.version or wanted.bits < value.bits:
        return False
    return wanted.address in value.network


@function("ip", "net.CIDR.() -> net.IP", work=reading())
def cidr_ip(value: CIDR) -> IP:
    """The address of a range as written.

    CEL: string(cidr('10.1.0.0/8').ip()) ⇒ '10.1.0.0'
    """
    return IP(value.address)


@function("prefixLength", "net.CIDR.() -> int", work=instant)
def prefix_length(value: CIDR) -> int:
    """The number of leading bits that all addresses of a range share.

    CEL: cidr('2001:db8::/32').prefixLength() ⇒ 32
    """
    return value.bits


@function("masked", "net.CIDR.() -> net.CIDR", work=instant)
def masked(value: CIDR) -> CIDR:
    """The range with the bits below its prefix cleared.

    CEL: string(cidr('10.1.2.3/8').masked()) ⇒ '10.0.0.0/8'
    """
    return CIDR(value.network.network_address, value.bits)


@function("string", "(net.CIDR) -> string", work=instant)
def cidr_text(value: CIDR) -> str:
    """The range as text.

    CEL: string(cidr('10.0.0.0/8')) ⇒ '10.0.0.0/8'
    """
    return f"{value.address}/{value.bits}"


_IP_MEMBERS: Final[tuple[Declaration, ...]] = (
    family, is_unspecified, is_loopback, is_link_local_multicast, is_link_local_unicast, is_global_unicast, ip_text,
)  # fmt: skip
_CIDR_MEMBERS: Final[tuple[Declaration, ...]] = (
    contains_ip, contains_cidr, cidr_ip, prefix_length, masked, cidr_text,
)  # fmt: skip
IPS: Final = Library(
    "kubernetes.net.ip",
    (ip, is_ip, ip_is_canonical, *_IP_MEMBERS),
    types=(opaque("net.IP"),),
    introduced="1.30",
    doc="IP addresses.",
)
CIDRS: Final = Library(
    "kubernetes.net.cidr",
    (cidr, is_cidr, *_CIDR_MEMBERS),
    types=(opaque("net.CIDR"),),
    introduced="1.30",
    doc="Address ranges.",
)


@function("ip", "(string) -> net.IP", cost=by_size(), work=reading())
def network_ip(text: str) -> IP:
    """The address that a text names; an IPv4-mapped one in hexadecimal is the IPv4 address.

    CEL: ip('10.0.0.1').family() ⇒ 4
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return parse_ip(text)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return IP(mapped) if mapped is not None and "." not in text and "%" not in text else parse_ip(text)


NETWORK: Final = Library(
    "network",
    (network_ip, is_ip, ip_is_canonical, *_IP_MEMBERS, cidr, is_cidr, *_CIDR_MEMBERS),
    types=(opaque("net.IP"), opaque("net.CIDR")),
    doc="cel-go's own library of addresses, which Kubernetes does not use.",
)
