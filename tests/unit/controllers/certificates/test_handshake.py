"""A replica tests its own port as the API server would: the problems it reports, and when they clear."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from pyverno.controllers.certificates import handshake as ownhandshake
from pyverno.controllers.certificates.handshake import OwnHandshake
from pyverno.controllers.certificates.secrets import CertificateSettings, make_authority, make_leaf
from pyverno.webhook.tls import ServerTls
from tests.unit.controllers.state.test_clusterstate import until

SETTINGS = CertificateSettings()
NOW = datetime.now(UTC)
AUTHORITY, OTHER = (make_authority("ECDSA", NOW) for _ in range(2))
LEAF = make_leaf(AUTHORITY, SETTINGS, NOW)


def play(scene: Callable[[OwnHandshake, list[bytes], ServerTls, int], Awaitable[None]], name: str) -> None:
    """Check a server with a valid leaf every few milliseconds; the list is the CA bundle of the API server."""

    async def run() -> None:
        tls, bundle = ServerTls(LEAF.certificates, LEAF.key), [AUTHORITY.certificates]
        server = await asyncio.start_server(_answer, "127.0.0.1", 0, ssl=tls.listening)
        port = server.sockets[0].getsockname()[1]
        handshake = OwnHandshake(name, lambda: bundle[0], 0.01)
        task = asyncio.create_task(handshake.run("", port))
        try:
            await scene(handshake, bundle, tls, port)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            server.close()
            await server.wait_closed()

    asyncio.run(run())


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.read()
    except OSError:
        pass
    finally:
        writer.close()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownhandshake, "_AGAIN_SECONDS", 0.01)


def test_a_chain_that_holds_and_one_that_does_not(caplog: pytest.LogCaptureFixture) -> None:
    """A bundle of another authority is a problem, which is logged once."""

    async def scene(handshake: OwnHandshake, bundle: list[bytes], tls: ServerTls, port: int) -> None:
        bundle[0] = OTHER.certificates
        await until(lambda: "certificate is not good for `kyverno-svc.kyverno.svc`: " in handshake.problem())
        bundle[0] = OTHER.certificates + AUTHORITY.certificates
        await until(lambda: not handshake.problem())

    play(scene, SETTINGS.server_name)
    assert 1 == caplog.text.count("the API server would not trust this replica")


def test_a_certificate_for_another_name_is_refused() -> None:
    """The chain verifies, but the API server connects to another service name."""

    async def scene(handshake: OwnHandshake, bundle: list[bytes], tls: ServerTls, port: int) -> None:
        await until(lambda: "not good for `other.kyverno.svc`: Hostname mismatch" in handshake.problem())

    play(scene, "other.kyverno.svc")


def test_an_expired_certificate() -> None:
    """The leaf expired two years ago."""

    async def scene(handshake: OwnHandshake, bundle: list[bytes], tls: ServerTls, port: int) -> None:
        before = NOW.replace(year=NOW.year - 3)
        old = make_leaf(make_authority("ECDSA", before), SETTINGS, before)
        tls.swap(old.certificates, old.key)
        await until(lambda: "certificate is not good" in handshake.problem())

    play(scene, SETTINGS.server_name)


@pytest.mark.parametrize("bundle", [b"", b"no certificate", b"\xff"])
def test_an_unreadable_bundle_is_a_problem(bundle: bytes) -> None:
    """The checks continue after it."""

    async def scene(handshake: OwnHandshake, trusted: list[bytes], tls: ServerTls, port: int) -> None:
        trusted[0] = bundle
        await until(
            lambda: "no handshake with its own port" in handshake.problem() or "not good" in handshake.problem()
        )
        trusted[0] = AUTHORITY.certificates
        await until(lambda: not handshake.problem())

    play(scene, SETTINGS.server_name)


def test_a_closed_port_is_a_problem() -> None:
    """The problem names the port."""

    async def run() -> None:
        handshake = OwnHandshake("a", lambda: AUTHORITY.certificates, 0.01)
        task = asyncio.create_task(handshake.run("127.0.0.1", 1))
        await until(lambda: "no handshake with its own port 1: " in handshake.problem())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
