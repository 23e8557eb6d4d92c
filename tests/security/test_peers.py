"""No peer can hold up a client, fill its memory, or send it elsewhere: every client against every fault.

The clients are those of the whole package that open connections; a new one belongs into `CLIENTS`.
"""

from __future__ import annotations

import asyncio
import base64
import json
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import pytest
from joserfc import jws

from pyverno.cluster import client as clusterclient
from pyverno.cluster import egress
from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.cluster.egress import Egress, EgressSettings
from pyverno.cluster.egressrules import EgressRules
from pyverno.cluster.serviceurl import parse_service_url
from pyverno.connector import ForeignConnector, read_at_most
from pyverno.engine.host import HttpCall
from pyverno.errors import HostError, PyvernoError
from pyverno.kube.gvk import GVR
from pyverno.lang.cel.libraries.kyverno import hostcalls
from pyverno.offline import manifests
from pyverno.offline.git import clone
from pyverno.offline.git.process import GitLimits
from pyverno.registry import tuffetcher, tufrepository
from pyverno.registry.providers.ambient import Ambient, CloudRequest
from pyverno.registry.transport import RegistryCall, RegistrySettings
from pyverno.registry.transport import Transport as Registries
from pyverno.ui.access import oidc
from pyverno.ui.access.identity import AccessDeniedError
from pyverno.ui.access.idtokens import check_id_token
from pyverno.ui.notifications import transport as notifications
from tests.authority.tuf import Repository
from tests.security.test_cel_confinement import AnsweringHost
from tests.support.celpolicies import ask, kyverno, said, validations
from tests.support.hostilepeers import FAULTS, HARMLESS, METADATA, hostile_peer
from tests.support.issuer import SigningKey

_SECONDS = 0.3
"""The limit of time of the clients here."""
_MOST_BYTES = 1024 * 1024
_BUFFERS = 24 * 1024 * 1024
"""What the sockets of both ends and a line of a watch may hold."""
_MOST_CONNECTIONS = 6
_PODS = GVR("", "v1", "pods")


def _login(url: str) -> oidc.OidcLogins:
    return oidc.OidcLogins(oidc.OidcSettings(issuer=url, client="pyverno", callback="http://localhost/callback"))


async def _describe(url: str) -> object:
    logins = _login(url)
    try:
        return await logins.describe()
    finally:
        await logins.close()


async def _call(url: str) -> object:
    client = Egress(EgressSettings(EgressRules(), max_bytes=_MOST_BYTES, seconds=_SECONDS))
    try:
        return await client.fetch(HttpCall("GET", url))
    finally:
        await client.close()


async def _registry(url: str) -> object:
    client = Registries(RegistrySettings(seconds=_SECONDS, allows_http=True))
    try:
        return await client.send(RegistryCall(url.partition("//")[2], "team/app", "/v2/"))
    finally:
        await client.close()


async def _outside(url: str) -> object:
    client = Registries(RegistrySettings(seconds=_SECONDS))
    try:
        return await client.fetch(url, b"", "", _MOST_BYTES)
    finally:
        await client.close()


async def _cloud(url: str) -> object:
    return await Ambient({}, seconds=_SECONDS).ask(CloudRequest("GET", url, "the cloud"))


async def _notify(url: str) -> object:
    client = notifications.Transport(EgressRules())
    try:
        return (await client.send("POST", parse_service_url(url), b"{}", {}, tls=True)).json()
    finally:
        await client.close()


async def _request(url: str) -> object:
    async with Client(Access(server=url)) as client:
        return await client.request("GET", "/api/v1/pods", seconds=_SECONDS, max_bytes=_MOST_BYTES)


async def _store(url: str) -> object:
    async with Client(Access(server=url)) as client, asyncio.timeout(30):
        return await client.store(_PODS, {"metadata": {"name": "a"}}, "team")


async def _watch(url: str) -> object:
    async with Client(Access(server=url)) as client:
        return [event async for event in client.stream("/api/v1/pods", idle_seconds=_SECONDS)]


async def _download(url: str) -> object:
    return await asyncio.to_thread(manifests.download, url, max_bytes=_MOST_BYTES, timeout=_SECONDS)


async def _clone(url: str) -> object:
    def load() -> None:
        with clone.cloned(clone.GitSource(f"{url}/owner/policies"), limits=GitLimits(seconds=_SECONDS)):
            pass

    return await asyncio.to_thread(load)


async def _update(url: str) -> object:
    def load() -> bytes:
        with TemporaryDirectory() as folder:
            repository = Repository(Path(folder))
            root = repository.sign(repository.root)
            return tufrepository.fetch_target(url, "trusted_root.json", root, Path(folder) / "kept")

    return await asyncio.to_thread(load)


CLIENTS: dict[str, Callable[[str], Awaitable[object]]] = {
    "logins": _describe,
    "services": _call,
    "registries": _registry,
    "revocations": _outside,
    "clouds": _cloud,
    "notifications": _notify,
    "reads": _request,
    "writes": _store,
    "watches": _watch,
    "downloads": _download,
    "repositories": _clone,
    "roots": _update,
}
_ASKS_STATUS_ONLY = {"notifications": {"fewer bytes than its length", "silence in the body"}}
"""Faults of bodies that a client does not need."""

_HAVE_LIMITS_OF_MEMORY = {"repositories"}
"""Programs of others, which take bytes until their memory ends (`test_git.py`)."""


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the limits of time that are constants."""
    for module, name in (
        (oidc, "_SECONDS"),
        (notifications, "_SECONDS"),
        (clusterclient, "_HEAD_SECONDS"),
        (clusterclient, "_SHORT_SECONDS"),
        (tuffetcher, "_SECONDS"),
    ):
        monkeypatch.setattr(module, name, _SECONDS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.replace(" ", "-"))
@pytest.mark.parametrize("client", CLIENTS)
def test_no_answer_of_a_peer_is_more_than_an_error(client: str, fault: str) -> None:
    """The client ends with one of our errors, within its limits of time and bytes, after few connections."""

    async def play() -> tuple[bool, int, int]:
        async with hostile_peer(FAULTS[fault]) as peer:
            try:
                async with asyncio.timeout(60):
                    await CLIENTS[client](peer.url)
                is_error = False
            except PyvernoError as error:
                is_error = bool(error.message)
            return is_error, peer.taken, peer.connections

    is_error, taken, connections = asyncio.run(play())
    is_answer = fault in HARMLESS or "redirect" in fault or fault == "a change of the protocol"
    assert is_error or is_answer or fault.startswith("an encoding") or fault in _ASKS_STATUS_ONLY.get(client, ())
    few = taken <= _MOST_BYTES + _BUFFERS or client in _HAVE_LIMITS_OF_MEMORY
    assert (True, True) == (few, 1 <= connections <= _MOST_CONNECTIONS)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_peer_that_says_nothing_in_tls_is_given_up(client: str) -> None:
    """The limit of time holds before HTTP begins, too."""

    async def play() -> None:
        async with hostile_peer(FAULTS["silence"]) as peer:
            async with asyncio.timeout(60):
                with pytest.raises(PyvernoError):
                    await CLIENTS[client](peer.url.replace("http:", "https:"))

    asyncio.run(play())


@pytest.mark.parametrize("client", CLIENTS)
def test_no_redirect_leads_to_a_metadata_service(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all addresses that a client dials, none is that of the redirect; a registry may name it as a mirror, too."""
    dialled: list[str] = []
    dial = BaseSelectorEventLoop.sock_connect

    async def record(loop: Any, sock: Any, address: Any) -> None:
        dialled.append(str(address[0]))
        if address[0] == METADATA:
            raise ConnectionRefusedError
        await dial(loop, sock, address)

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_connect", record)

    async def play() -> None:
        async with hostile_peer(FAULTS["a redirect to a metadata service"]) as peer:
            with suppress(PyvernoError):  # what answers to a redirect with its status is no error
                await CLIENTS[client](peer.url)

    asyncio.run(play())
    assert {"127.0.0.1"} == set(dialled)


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]", "[64:ff9b::a9fe:a9fe]"]
)
def test_every_form_of_a_metadata_service_is_refused(address: str) -> None:
    """Peers choose names as well as addresses; the check is of the address that is dialled."""

    async def play() -> None:
        async with aiohttp.ClientSession(connector=ForeignConnector()) as session:
            with pytest.raises(aiohttp.ClientConnectorError) as caught:
                await session.get(f"http://{address}/")
                assert isinstance(caught.value.os_error, PermissionError)

    asyncio.run(play())


def test_a_neighbour_of_the_metadata_services_is_dialled() -> None:
    """The twin: containers reach their host by a link-local address."""

    async def play() -> bytes:
        async with (
            hostile_peer(FAULTS["no JSON"]) as peer,
            aiohttp.ClientSession(connector=ForeignConnector()) as session,
            session.get(peer.url) as answer,
        ):
            return await answer.read()

    assert b"<html>" == asyncio.run(play())


# ------------------------------------------------------------------------------------------------------- bodies


@pytest.mark.parametrize("pieces", [[b"{", b"}"], [b"", b"{}"], [b"{}"], [b"a" * 5, b"b" * 5, b"c"]])
def test_a_body_may_come_in_pieces(pieces: list[bytes]) -> None:
    """A reader of aiohttp returns what has arrived, which need not be all."""

    async def play() -> bytes:
        protocol = aiohttp.base_protocol.BaseProtocol(asyncio.get_running_loop())
        protocol.transport = asyncio.Transport()
        content = aiohttp.StreamReader(protocol, 2**16, loop=asyncio.get_running_loop())
        reading = asyncio.ensure_future(read_at_most(content, 7))
        for piece in pieces:
            content.feed_data(piece)
            await asyncio.sleep(0)
        content.feed_eof()
        return await reading

    assert b"".join(pieces)[:8] == asyncio.run(play())


@pytest.mark.parametrize("client", ["logins", "notifications", "clouds"])
def test_a_long_answer_is_read_to_its_end(client: str) -> None:
    """900 KiB arrive in several pieces: half of a document was an error, and a notification was sent again."""

    async def play() -> object:
        def pieces(url: str) -> Any:
            document = {
                "issuer": url,
                "authorization_endpoint": f"{url}/a",
                "token_endpoint": f"{url}/t",
                "jwks_uri": f"{url}/k",
                "more": "x" * 900_000,
            }
            body = json.dumps(document).encode()
            yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
            yield body

        async with hostile_peer(pieces) as peer:
            found: Any = await CLIENTS[client](peer.url)
            return found["jwks_uri"].removeprefix(peer.url)

    assert "/k" == asyncio.run(play())


# ------------------------------------------------------------------------------------------------------- logins


def test_logins_share_the_failure_of_a_silent_issuer() -> None:
    """Without that each of them waits for all before it, and anybody may begin a login."""

    async def play() -> tuple[int, int]:
        async with hostile_peer(FAULTS["silence"]) as peer:
            logins = _login(peer.url)
            async with asyncio.timeout(60):
                ended = await asyncio.gather(*(logins.begin() for _ in range(200)), return_exceptions=True)
            await logins.close()
            return sum(isinstance(each, HostError) for each in ended), peer.connections

    assert (200, 1) == asyncio.run(play())


def test_a_failure_of_an_issuer_ends() -> None:
    """The twin: after five seconds the issuer is asked again."""
    clock = [1000.0]

    async def play() -> list[int]:
        async with hostile_peer(FAULTS["no JSON"]) as peer:
            settings = oidc.OidcSettings(issuer=peer.url, client="pyverno", callback="http://localhost/callback")
            logins, seen = oidc.OidcLogins(settings, now=lambda: clock[0]), []
            for passed in (0.0, 4.9, 0.2):
                clock[0] += passed
                with pytest.raises(HostError):
                    await logins.begin()
                seen.append(peer.connections)
            await logins.close()
            return seen

    first, again, later = asyncio.run(play())
    assert (first, True) == (again, later > again)


def test_a_key_set_has_few_keys() -> None:
    """Each key without a name is tried for each login: those after the hundredth are left out."""

    async def play() -> int:
        def pieces(url: str) -> Any:
            endpoints = dict.fromkeys(("authorization_endpoint", "token_endpoint", "jwks_uri"), f"{url}/x")
            body = json.dumps({"issuer": url, **endpoints, "keys": [{"kty": "RSA"}] * 50_000}).encode()
            yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
            yield body

        async with hostile_peer(pieces) as peer:
            logins = _login(peer.url)
            try:
                return len(await logins.keys())
            finally:
                await logins.close()

    assert 100 == asyncio.run(play())


_CHECK = partial(check_id_token, issuer="https://issuer", audience="pyverno", nonce="n", now=1000.0)
_CLAIMS = {"iss": "https://issuer", "aud": "pyverno", "nonce": "n", "exp": 1100, "iat": 990}


def _jwk(modulus: int, exponent: int) -> dict[str, str]:
    sizes = {"n": (modulus, (modulus.bit_length() + 7) // 8), "e": (exponent, (exponent.bit_length() + 7) // 8)}
    texts = {
        name: base64.urlsafe_b64encode(number.to_bytes(size)).rstrip(b"=").decode()
        for name, (number, size) in sizes.items()
    }
    return {"kty": "RSA", **texts}


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "RSA", "n": "!", "e": "AQAB"},
        {"kty": "RSA", "n": 5, "e": []},
        {"kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB"},
        {"kty": "RSA"},
        _jwk(2**2047 + 1, 2**100 + 1),
        _jwk((1 << 4096) + 1, 1),
        _jwk((1 << 100_000) + 1, 65_537),
    ],
    ids=["no base64", "no text", "no point", "nothing", "a long exponent", "an even modulus", "a long modulus"],
)
def test_a_key_that_is_none_leaves_the_others(key: dict[str, Any]) -> None:
    """One entry of another form, or of another size, does not end the logins of all."""
    signing = SigningKey()
    token = signing.sign(_CLAIMS)
    assert _CLAIMS == _CHECK(token, [{**key, "kid": "one"}, signing.jwk()])


@pytest.mark.parametrize(
    "modulus, exponent",
    [((1 << 8192) + 1, 65_537), (2**2047 + 1, 2**100 + 1), (2**1023 + 1, 3)],
    ids=["long", "a long exponent", "short"],
)
def test_keys_of_other_sizes_are_not_tried(modulus: int, exponent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check with a long exponent or a long modulus takes a thousand times as long."""
    made: list[object] = []
    monkeypatch.setattr(jws, "validate_compact", lambda *key, **_: made.append(key))
    with pytest.raises(AccessDeniedError):
        _CHECK(SigningKey().sign(_CLAIMS), [{**_jwk(modulus, exponent), "kid": "one"}])
    assert [] == made


# ------------------------------------------------------------------------------------------------- values of answers


def test_the_answer_of_a_service_has_so_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bytes of text become up to 200 of memory, and the decoder lets nothing else run."""
    monkeypatch.setattr(egress, "MAX_VALUES", 100)

    async def play(count: int) -> object:
        body = json.dumps([0] * count).encode() + b" " * 500
        async with hostile_peer(
            lambda _: iter([b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body])
        ) as peer:
            return await _call(peer.url)

    assert [0] * 98 == asyncio.run(play(98))
    with pytest.raises(HostError, match="more than 100 values"):
        asyncio.run(play(101))


class _Service(AnsweringHost):
    """Answers every call of a service by one body."""

    def http_exchange(self, call: Any) -> tuple[int, bytes]:
        body: bytes = self.body
        return 200, body


def _judge(body: bytes) -> list[tuple[str, str]]:
    host = _Service(None)
    host.body = body  # type: ignore[attr-defined]
    return said(ask(kyverno(validations=validations("http.Get('http://example.com/').statusCode == 200")), host=host))


def test_the_answer_of_a_service_has_so_many_values_in_cel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is that of context entries; the error has no value of the answer."""
    monkeypatch.setattr(hostcalls, "MAX_ANSWER_VALUES", 100)
    assert [("pass", "")] == [(status, "") for status, _ in _judge(json.dumps([0] * 98).encode() + b" " * 500)]
    ((status, message),) = _judge(json.dumps(["s3cret"] * 101).encode())
    assert ("error", True, False) == (status, "more than 100 values" in message, "s3cret" in message)


@pytest.mark.parametrize("item", [b"[]", b"{}", b'{"a":{}}'])
def test_the_values_of_all_answers_of_a_review_are_counted(item: bytes) -> None:
    """Many answers within the limit of one do not become more than the steps of a review."""
    body = b"[" + b",".join([item] * (499_990 // (4 if b"a" in item else 3))) + b"]"
    host = _Service(None)
    host.body = body  # type: ignore[attr-defined]
    expression = " && ".join(["http.Get('http://example.com/').statusCode == 200"] * 20)
    ((status, message),) = said(ask(kyverno(validations=validations(expression)), host=host))
    assert ("error", True) == (status, "used up" in message)
