"""The metrics port: plain, or over TLS with its own certificates in a sandbox."""

from __future__ import annotations

import asyncio
import base64
import ssl

import aiohttp
import pytest
from cryptography import x509

from kubesandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.certificates.secrets import SECRETS, CertificateSettings
from pyverno.controllers.certificates.secrettls import SecretTls
from pyverno.controllers.runtime.metricsport import MetricsPort
from pyverno.errors import HostError

TEXT = b"# TYPE a counter\na_total 1.0\n"


async def text() -> list[bytes]:
    """Return the body of a response."""
    return [TEXT[:5], TEXT[5:]]


def test_metrics_are_text_at_their_path() -> None:
    """Other paths are not served."""

    async def run() -> None:
        async with MetricsPort(text, "127.0.0.1", 0) as port, aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port.port}/metrics") as reply:
                assert (200, TEXT) == (reply.status, await reply.read())
                assert "text/plain; version=0.0.4; charset=utf-8" == reply.headers["Content-Type"]
            async with session.get(f"http://127.0.0.1:{port.port}/") as reply:
                assert 404 == reply.status

    asyncio.run(run())


def test_a_port_in_use_is_an_error() -> None:
    """The error appears before any work starts."""

    async def run() -> None:
        async with MetricsPort(text, "127.0.0.1", 0) as port:
            with pytest.raises(HostError, match=f"cannot listen on `127.0.0.1:{port.port}`: .*already in use"):
                async with MetricsPort(text, "127.0.0.1", port.port):
                    pass

    asyncio.run(run())


def test_with_certificates_metrics_are_read_by_https() -> None:
    """The Secrets are created; clients that trust the authority connect by service name or address."""

    async def run() -> None:
        async with Sandbox(Settings(namespaces=("kyverno",))) as sandbox:
            access = load_kubeconfig(sandbox.kubeconfig)
            settings = CertificateSettings(
                ca_secret="metrics-ca",  # noqa: S106 - a name
                tls_secret="metrics-tls",  # noqa: S106 - a name
                server="127.0.0.1",
                more_services=("kyverno-svc-metrics",),
            )
            async with (
                MetricsPort(text, "127.0.0.1", 0, SecretTls(access, settings)) as port,
                Client(access) as client,
                aiohttp.ClientSession() as session,
            ):
                secret = await client.get(SECRETS, "metrics-ca", "kyverno")
                context = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["tls.crt"]).decode())
                async with session.get(f"https://127.0.0.1:{port.port}/metrics", ssl=context) as reply:
                    assert TEXT == await reply.read()
                with pytest.raises(aiohttp.ClientError):
                    await session.get(f"http://127.0.0.1:{port.port}/metrics")
                leaf = base64.b64decode((await client.get(SECRETS, "metrics-tls", "kyverno"))["data"]["tls.crt"])
        names = x509.load_pem_x509_certificate(leaf).extensions.get_extension_for_class(x509.SubjectAlternativeName)
        assert {"kyverno-svc.kyverno.svc", "kyverno-svc-metrics.kyverno.svc"} <= set(
            names.value.get_values_for_type(x509.DNSName)
        )

    asyncio.run(run())


def test_clients_that_never_read_hold_few_texts_and_lose_their_connection() -> None:
    """Scrapes of a large cluster have megabytes: many unread ones must fill neither the memory nor the port."""
    made = 0

    async def large() -> list[bytes]:
        nonlocal made
        made += 1
        return [bytes([65 + made % 26]) * 100_000 for _ in range(200)]

    async def play() -> tuple[int, int]:
        async with MetricsPort(large, "127.0.0.1", 0, seconds=2.0) as port, aiohttp.ClientSession() as session:
            peers = []
            for _ in range(30):
                _, writer = await asyncio.open_connection("127.0.0.1", port.port, limit=1024)
                writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
                await writer.drain()
                writer.transport.pause_reading()
                peers.append(writer)
            async with asyncio.timeout(120):
                while port._sending < 30:
                    await asyncio.sleep(0.01)
                during = made
                while port._sending:
                    await asyncio.sleep(0.05)
            for writer in peers:
                writer.transport.abort()
            async with session.get(f"http://127.0.0.1:{port.port}/metrics") as response:
                assert 20_000_000 == len(await response.read())
            return during, made

    during, after = asyncio.run(play())
    assert during <= 4
    assert during + 1 == after
