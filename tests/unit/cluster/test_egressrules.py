"""Egress rules: the block list, the allow list, and addresses that embed other addresses."""

from __future__ import annotations

import ipaddress

import pytest

from pyverno.cluster.egressrules import DEFAULT_BLOCKLIST, EgressRules, embedded_addresses
from pyverno.cluster.serviceurl import parse_service_url
from pyverno.errors import HostError, UsageError


def _permits(rules: EgressRules, url: str) -> bool:
    try:
        rules.check_url(parse_service_url(url))
    except HostError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "carried"),
    [
        ("::ffff:10.0.0.1", ["10.0.0.1"]),
        ("::10.0.0.1", ["10.0.0.1"]),
        ("::ffff:0:10.0.0.1", ["10.0.0.1"]),
        ("2002:a00:1::9", ["10.0.0.1"]),
        ("64:ff9b::a00:1", ["10.0.0.1"]),
        ("64:ff9b:1:a00:0:100::", ["10.0.0.1"]),
        ("2001:0:a00:1:0:0:f5ff:fffe", ["10.0.0.1", "10.0.0.1"]),
        ("2001:db8::5efe:10.0.0.1", ["10.0.0.1"]),
        ("2001:db8::200:5efe:10.0.0.1", ["10.0.0.1"]),
        ("::ffff:0.0.0.1", ["0.0.0.1"]),
        ("64:ff9b:1::10.0.0.1", ["10.0.0.1"]),
        ("::1", []),
        ("::", []),
        ("2001:db8::1", []),
        ("10.0.0.1", []),
    ],
)
def test_an_address_carries_others(text: str, carried: list[str]) -> None:
    """Mapped, compatible, translated, 6to4, NAT64, Teredo and ISATAP addresses are unwrapped."""
    assert carried == [str(each) for each in embedded_addresses(ipaddress.ip_address(text))]


RFC_6052 = {
    32: (4, 5, 6, 7),
    40: (5, 6, 7, 9),
    48: (6, 7, 9, 10),
    56: (7, 9, 10, 11),
    64: (9, 10, 11, 12),
    96: (12, 13, 14, 15),
}
"""Positions of the octets of an IPv4 address by prefix length, copied by hand from the RFC."""


def translated(prefix: str, length: int, address: str, *, suffix: int = 0) -> ipaddress.IPv6Address:
    """Return an IPv4 address as a translator with this prefix embeds it; `suffix` fills bits that should be zero."""
    octets = bytearray(ipaddress.IPv6Address(prefix).packed)
    for place in range(length // 8, 16):
        octets[place] = 0 if place == 8 else suffix
    for place, octet in zip(RFC_6052[length], ipaddress.IPv4Address(address).packed, strict=True):
        octets[place] = octet
    return ipaddress.IPv6Address(bytes(octets))


NAT64 = [("64:ff9b::", 96), *(("64:ff9b:1::", length) for length in (48, 56, 64, 96)), ("64:ff9b:1:2:3:4:0:0", 96)]
OF_OPERATORS = [(prefix, length) for prefix in ("2001:db8:1:2:3:4::", "fd00:1:2:3:4:5::") for length in RFC_6052]


@pytest.mark.parametrize(("prefix", "length"), NAT64)
@pytest.mark.parametrize("inner", ["169.254.169.254", "169.254.7.9", "127.0.0.1", "100.100.100.200", "10.1.2.3"])
def test_every_position_of_known_translators_is_judged_as_the_address_inside(
    prefix: str, length: int, inner: str
) -> None:
    """This covers the well-known prefix and all lengths of local-use prefixes, even with nonzero reserved bits."""
    rules = EgressRules.read((*DEFAULT_BLOCKLIST, "10.0.0.0/8"))
    for suffix in (0, 7):
        assert not _permits(rules, f"http://[{translated(prefix, length, inner, suffix=suffix)}]/")
    for public in ("93.184.216.34", "34.240.1.2", "8.8.8.8"):
        assert _permits(rules, f"http://[{translated(prefix, length, public)}]/")


@pytest.mark.parametrize(("prefix", "length"), OF_OPERATORS)
def test_metadata_services_are_recognized_behind_translators_that_nothing_marks(prefix: str, length: int) -> None:
    """RFC 6052 has six layouts for operator prefixes; a listed service is found in each of them."""
    rules = EgressRules.read()
    for service in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192"):
        for suffix in (0, 7):
            assert not _permits(rules, f"http://[{translated(prefix, length, service, suffix=suffix)}]/")
    assert not _permits(rules, f"http://[{translated(prefix, length, '169.254.7.9')}]/")
    assert _permits(rules, f"http://[{translated(prefix, length, '93.184.216.34')}]/")
    assert _permits(rules, f"http://[{translated(prefix, length, '10.1.2.3')}]/")


@pytest.mark.parametrize("host", ["2001:db8:a9fe:1::9", "2001:db8::a9fe:1:2:3", "2606:4700:a9fe::6810:84e5"])
def test_an_ordinary_address_may_hold_the_octets_of_link_local(host: str) -> None:
    """A partial match of octets is not an embedded address."""
    assert _permits(EgressRules.read(), f"http://[{host}]/")


def test_the_default_list_blocks_this_machine_and_metadata_services() -> None:
    """As in Kyverno, loopback and metadata services are blocked, addresses inside of a cluster are not."""
    rules = EgressRules.read()
    assert not _permits(rules, "http://127.8.9.1:8080/")
    assert not _permits(rules, "http://[::1]/")
    assert not _permits(rules, "http://169.254.169.254/latest")
    assert not _permits(rules, "http://METADATA.google.internal./x")
    assert _permits(rules, "http://10.96.0.10/")
    assert _permits(rules, "http://service.team.svc:8080/x")


def test_a_given_list_replaces_the_default_but_opens_no_address_that_is_never_a_service() -> None:
    """A list without loopback permits it; link-local, multicast and reserved addresses stay blocked."""
    rules = EgressRules.read(["10.0.0.1/8"])
    assert _permits(rules, "http://127.0.0.1/")
    assert not _permits(rules, "http://10.200.0.1/")
    assert not any(
        _permits(rules, f"http://{host}/")
        for host in ("169.254.1.1", "0.1.2.3", "224.0.0.1", "255.255.255.255", "[::]", "[fe80::1]", "[ff02::1]")
    )


def test_the_allow_list_names_the_only_urls() -> None:
    """Scheme, host, port and whole path segments must equal those of an entry; the block list still applies."""
    rules = EgressRules.read(DEFAULT_BLOCKLIST, ["https://api.example.com/v1", "http://127.0.0.1", "http://b:8080/x/"])
    verdicts = {
        "https://api.example.com/v1": True,
        "https://API.example.com.:443/v1/teams?x=1": True,
        "https://api.example.com/v10": False,
        "https://api.example.com/": False,
        "http://api.example.com/v1": False,
        "https://api.example.com:8443/v1": False,
        "https://api.example.com.evil.example/v1": False,
        "http://127.0.0.1/": False,
        "http://b:8080/x/y": True,
        "http://b:8080/xy": False,
    }
    assert verdicts == {url: _permits(rules, url) for url in verdicts}


@pytest.mark.parametrize("entry", ["10.0.0.0/33", "a b", "http://x", "exämple", "1.2.3", "::1%eth0"])
def test_an_entry_of_the_block_list_that_is_nothing_is_an_error(entry: str) -> None:
    """A typo in the block list must not disable it."""
    with pytest.raises(UsageError, match="httpBlocklist"):
        EgressRules.read([entry])


@pytest.mark.parametrize("entry", ["api.example.com", "ftp://x", "https://", "https://a@b"])
def test_an_entry_of_the_allow_list_that_is_no_url_is_an_error(entry: str) -> None:
    """Scheme and host are required."""
    with pytest.raises(UsageError, match="httpAllowlist"):
        EgressRules.read((), [entry])


def test_empty_entries_are_ignored() -> None:
    """A flag without a value is an empty list; blanks around entries are ignored."""
    assert EgressRules() == EgressRules.read(["", " "], [""])
    assert EgressRules(hosts=frozenset({"a"})) == EgressRules.read([" A. "])
