"""I3 and I4: rules reach no forbidden service under any name or address, and requests carry none of our credentials.

A local service stands in for the forbidden one and counts the connections that reach it. Beside every attack is
its harmless twin, or the same call without the guard, which does arrive.
"""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
from collections.abc import Sequence

import pytest
from aiohttp import web

from pyverno.cluster import egressrules
from pyverno.cluster.egress import Egress, EgressSettings, Lookup
from pyverno.cluster.egressrules import DEFAULT_BLOCKLIST, EgressRules
from pyverno.cluster.serviceurl import parse_service_url
from pyverno.engine.broker import Broker
from pyverno.engine.host import HttpCall
from pyverno.errors import EvaluationError, HostError, ValueSyntaxError
from pyverno.lang.runtime import Budget
from tests.security.asking import Spy
from tests.support.services import Service, names

GUARDED = EgressRules.read()
OPEN = EgressRules.read(())
CLOSED_RANGES = EgressRules.read(
    (*DEFAULT_BLOCKLIST, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
)

ADDRESSES = [
    "127.0.0.1", "127.255.255.254", "[::1]", "0.1.2.3", "[::]", "169.254.169.254", "169.254.169.253", "169.254.0.1",
    "[fe80::1]", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16", "255.255.255.255", "224.0.0.1", "[ff02::1]",
]  # fmt: skip
PRIVATE = ["10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "[fd12::1]"]
PUBLIC = ["93.184.216.34", "[2606:2800:220:1::1]", "172.32.0.1", "100.63.0.1", "11.0.0.1", "128.0.0.1"]
FORMS = [
    "::ffff:{dotted}", "::{dotted}", "::ffff:0:{dotted}", "64:ff9b::{dotted}", "64:ff9b:1::{dotted}",
    "2002:{hex}::", "2002:{hex}:1:2:3:4:5", "2001:0:{hex}:0:0:a247:27dd", "2001:0:5db8:d822:0:0:{inverted}",
    "64:ff9b:1:{high}:{split}::", "2001:db8::5efe:{dotted}", "2606:4700::200:5efe:{dotted}",
]  # fmt: skip
UNREADABLE = [
    "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://017700000001/", "http://0177.0.0.1/",
    "http://127.1/", "http://127.0.1/", "http://0/", "http://127.0.0.1./", "http://127.0.0.1%00/", "http://①②⑦.0.0.1/",
    "http://ⓛocalhost/", "http://localhost。/", "http://xn--/../", "http://[::1%25lo]/", "http://[::ffff:127.0.0.1%lo]/",
    "http://example.com@127.0.0.1/", "http://127.0.0.1:80@example.com/", "http://example.com\\@127.0.0.1/",
    "http://127.0.0.1\\.example.com/", "http://exa\tmple.com/", "http://example.com\r\nx: y/", "\nhttp://example.com/",
    "http://example.com#@127.0.0.1/", "http://127.0.0.1#.example.com/", "http://127.0.0.1:0/", "http://example.com:22/",
    "http://example.com:99999/", "file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/", "unix:///run/x.sock",
    "http+unix://%2Frun%2Fx.sock/", "data:text/plain,x", "//127.0.0.1/", "http:127.0.0.1/", "http:///127.0.0.1/",
    "http://example.com/../admin", "http://example.com/%2e%2e/admin", "http://example.com/a%252f%252e%252e/admin",
]  # fmt: skip


def _form(text: str, address: str) -> str:
    octets = ipaddress.IPv4Address(address).packed
    inverted = bytes(octet ^ 0xFF for octet in octets)
    return text.format(
        dotted=address,
        hex=f"{octets[:2].hex()}:{octets[2:].hex()}",
        inverted=f"{inverted[:2].hex()}:{inverted[2:].hex()}",
        high=octets[:2].hex(),
        split=f"00{octets[2]:02x}:{octets[3]:02x}00",
    )


def _permits(rules: EgressRules, url: str) -> bool:
    try:
        rules.check_url(parse_service_url(url))
    except HostError:
        return False
    return True


def attempts(
    service: Service, calls: Sequence[HttpCall], *, rules: EgressRules = GUARDED, lookup: Lookup | None = None
) -> list[tuple[int, bytes] | str]:
    """Make calls, one after the other, and return answers, or texts of errors."""

    async def run() -> list[tuple[int, bytes] | str]:
        egress = Egress(EgressSettings(rules, max_bytes=2_000_000, seconds=60), lookup or names())
        found: list[tuple[int, bytes] | str] = []
        async with service:
            for call in calls:
                here = HttpCall(call.method, call.url.replace("PORT", str(service.port)), call.headers, call.body)
                try:
                    found.append(await egress.exchange(here))
                except HostError as error:
                    found.append(error.message)
            await egress.close()
        return found

    return asyncio.run(run())


@pytest.mark.parametrize("host", ADDRESSES)
def test_this_machine_and_metadata_services_are_blocked_by_default(host: str) -> None:
    """No flag is needed for that, and none opens more than loopback.

    Register: GHSA-qr4g.
    """
    assert not _permits(GUARDED, f"http://{host}/latest/meta-data")
    assert not _permits(GUARDED, f"https://{host}:8443/")


@pytest.mark.parametrize("host", PRIVATE)
def test_ranges_that_an_operator_blocks_are_blocked(host: str) -> None:
    """Private ranges hold the services of a cluster, so they are open until a list says otherwise."""
    assert not _permits(CLOSED_RANGES, f"http://{host}/")
    assert _permits(GUARDED, f"http://{host}/")


@pytest.mark.parametrize("host", PUBLIC)
def test_neighbours_of_blocked_ranges_are_open(host: str) -> None:
    """The harmless twins: a guard that refuses everything would prove nothing."""
    assert _permits(CLOSED_RANGES, f"http://{host}/")


@pytest.mark.parametrize("form", FORMS)
def test_an_address_inside_of_another_is_judged(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every form is blocked for a blocked address, open for a public one, and open for both without the guard.

    Register: CVE-2026-100705.
    """
    blocked, public = (f"http://[{_form(form, address)}]/" for address in ("10.1.2.3", "93.184.216.34"))
    assert (False, True) == (_permits(CLOSED_RANGES, blocked), _permits(CLOSED_RANGES, public))
    monkeypatch.setattr(egressrules, "embedded_addresses", lambda address: ())
    assert _permits(CLOSED_RANGES, blocked)


@pytest.mark.parametrize("url", UNREADABLE)
def test_what_can_be_read_in_two_ways_is_not_called(url: str) -> None:
    """Odd addresses, credentials, other schemes and ports, dot segments: an error before any name is resolved."""
    with pytest.raises(ValueSyntaxError):
        parse_service_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://metadata.google.internal/", "http://METADATA.GOOGLE.INTERNAL/", "http://metadata.google.internal./x",
        "https://metadata.google.internal:8443/",
    ],
)  # fmt: skip
def test_names_of_metadata_services_are_blocked_in_every_spelling(url: str) -> None:
    """Case and the last dot do not matter; another name does."""
    assert not _permits(GUARDED, url)
    assert _permits(GUARDED, url.lower().replace("metadata", "storage"))


@pytest.mark.parametrize("answer", [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:127.0.0.1"], ["fe80::1%1"]])
def test_a_name_with_one_bad_address_is_not_called(answer: list[str]) -> None:
    """All addresses of a name are judged, those of the API server's name too; the error contains none of them."""
    call = HttpCall("GET", "http://kubernetes.default.svc:PORT/")
    service = Service()
    (text,) = attempts(service, [call], lookup=names(kubernetes_default_svc=answer))
    assert isinstance(text, str)
    assert "`kubernetes.default.svc` is blocked" in text
    assert [] == service.asked
    assert not any(address in text for address in answer)


def test_without_the_guard_the_same_name_is_called() -> None:
    """The twin of the test above: rules that block nothing let the call through."""
    service = Service()
    call = HttpCall("GET", "http://kubernetes.default.svc:PORT/")
    lookup = names(kubernetes_default_svc=["127.0.0.1"])
    assert [(200, b'{"ok": true}')] == attempts(service, [call], rules=OPEN, lookup=lookup)


def test_a_name_is_resolved_once_and_what_was_judged_is_dialled() -> None:
    """A name server that changes its answer between check and call gains nothing."""
    answers = [["127.0.0.1"], ["127.0.0.2"]]
    looks: list[str] = []

    async def lookup(host: str, port: int) -> list[str]:
        looks.append(host)
        return answers[min(len(looks), 2) - 1]

    service = Service()
    rules = EgressRules.read(["127.0.0.2"])
    assert [(200, b'{"ok": true}')] == attempts(
        service, [HttpCall("GET", "http://rebind.test:PORT/")], rules=rules, lookup=lookup
    )
    assert ["rebind.test"] == looks


def test_the_address_that_is_dialled_is_judged_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even without the checks of URL and name, no socket to a blocked address is opened."""
    calls = [HttpCall("GET", "http://127.0.0.1:PORT/"), HttpCall("GET", "http://evil.test:PORT/")]
    service = Service()
    monkeypatch.setattr(EgressRules, "check_url", lambda self, url: None)
    kept = EgressRules.check_address
    monkeypatch.setattr(
        EgressRules,
        "check_address",
        lambda self, at, origin: kept(self, at, origin) if origin == "the service" else None,
    )
    texts = attempts(service, calls, lookup=names(evil_test=["127.0.0.1"]))
    assert ["`the service` is blocked: it is in the blocked range 127.0.0.0/8"] * 2 == texts
    assert [] == service.asked


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("target", ["/secret", "http://127.0.0.1:1/", "https://169.254.169.254/", "file:///etc/passwd"])
def test_no_redirect_is_followed(status: int, target: str) -> None:
    """The redirect itself is the answer; its target receives no request."""
    service = Service({"/": lambda: web.Response(status=status, headers={"Location": target})})
    (answer,) = attempts(service, [HttpCall("GET", "http://127.0.0.1:PORT/")], rules=OPEN)
    assert (status, b"") == answer
    assert ["/"] == [each.path for each in service.asked]


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_no_proxy_is_taken_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would resolve names by itself; the call goes straight to the address that was judged."""
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    service = Service()
    assert [(200, b'{"ok": true}')] == attempts(service, [HttpCall("GET", "http://127.0.0.1:PORT/")], rules=OPEN)


def test_nothing_of_ours_goes_along() -> None:
    """A call carries no credential, and no cookie that another call received.

    Register: CVE-2026-40868, GHSA-8wfp, CVE-2026-41323.
    """
    service = Service({"/": lambda: web.Response(headers={"Set-Cookie": "session=1; Path=/"})})
    attempts(
        service, [HttpCall("GET", "http://localhost:PORT/")] * 2, rules=OPEN, lookup=names(localhost=["127.0.0.1"])
    )
    assert 2 == len(service.asked)
    allowed = {"Host", "User-Agent", "Accept", "Accept-Encoding"}
    assert [allowed, allowed] == [set(each.headers) for each in service.asked]


def test_an_endless_answer_is_cut_off() -> None:
    """An endless chunked answer is an error as soon as it exceeds the limit."""

    class Endless(web.StreamResponse):
        async def write_eof(self, data: bytes = b"") -> None:
            try:
                while True:
                    await self.write(b"x" * 65_536)
            except ConnectionError:
                await super().write_eof(data)

    service = Service({"/": Endless})
    (text,) = attempts(service, [HttpCall("GET", "http://127.0.0.1:PORT/")], rules=OPEN)
    assert "response length must be less than max allowed response length of 2000000" == text


def test_a_small_answer_does_not_become_a_large_one() -> None:
    """A response that a service compresses without being requested to is not decompressed."""
    bomb = gzip.compress(b"0" * 50_000_000)
    service = Service({"/": lambda: web.Response(body=bomb, headers={"Content-Encoding": "gzip"})})
    assert [(200, bomb)] == attempts(service, [HttpCall("GET", "http://127.0.0.1:PORT/")], rules=OPEN)


class _OpenSpy(Spy):
    """A Host that lets policies of a namespace call services."""

    allows_http_in_namespaces = True

    def http_exchange(self, call: HttpCall) -> tuple[int, bytes]:
        return 200, b"{}"


def test_policies_of_a_namespace_call_services_only_where_that_is_opened() -> None:
    """The flag opens calls of expressions; the calls of context entries stay closed, as in Kyverno.

    Register: GHSA-459x, CVE-2026-4789.
    """
    call = HttpCall("GET", "http://example.com/")
    closed, opened = Broker(Spy(), Budget(), "team"), Broker(_OpenSpy(), Budget(), "team")
    assert (200, b"{}") == opened.http_exchange(call)
    for refused in (closed.http_exchange, closed.http_call, opened.http_call):
        with pytest.raises(EvaluationError, match="namespace `team` may not call"):
            refused(call)
