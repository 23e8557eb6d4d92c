"""The webhook's TLS: every protocol and suite that OpenSSL knows is tried, and of TLS 1.2 six suites are accepted."""

from __future__ import annotations

import asyncio
import ssl

from pyverno.webhook.server import WebhookServer
from tests.security.test_admission import NEEDS_LABEL, Caller, play
from tests.support.webhookserver import make_certificate

SUITES = {
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-RSA-CHACHA20-POLY1305",
}


def _context(version: ssl.TLSVersion, suite: str = "") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    if suite:
        context.set_ciphers(f"{suite}:@SECLEVEL=0")
    return context


async def _spoken(port: int, context: ssl.SSLContext) -> str:
    """Return the negotiated suite, or nothing where the handshake failed."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    except (ssl.SSLError, ConnectionError):
        return ""
    name: str = writer.get_extra_info("cipher")[0]
    writer.close()
    await writer.wait_closed()
    return name


def test_no_suite_but_the_six_is_spoken() -> None:
    """GHSA-hgv6: no 3DES, CBC, RC4, RSA key exchange or plain DH, however a client insists; TLS 1.3 is."""
    everything = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    everything.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    known = {each["name"] for each in everything.get_ciphers() if not each["name"].startswith("TLS_")}
    assert known > SUITES

    async def scene(caller: Caller, _: WebhookServer) -> None:
        tried = {suite: await _spoken(caller.port, _context(ssl.TLSVersion.TLSv1_2, suite)) for suite in sorted(known)}
        # the suites of the other kind of key need a certificate of that kind
        spoken = {suite for suite, agreed in tried.items() if agreed}
        assert spoken == {suite for suite in SUITES if "ECDSA" in suite}
        assert (await _spoken(caller.port, _context(ssl.TLSVersion.TLSv1_3))).startswith("TLS_")

    play(NEEDS_LABEL, scene, make_certificate())
