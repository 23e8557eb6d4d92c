"""No mail server holds up a delivery, fills the memory, gets a password without TLS, or has a mail sent again."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyverno.ui.notifications import smtp
from pyverno.ui.notifications.delivery import DeliveryError
from tests.support.hostilemail import MAIL_FAULTS, STEPS, HostileMail, Pieces, hostile_mail
from tests.support.notifications import deliver, notice
from tests.support.webhookserver import make_certificate

_SECONDS = 30.0
_SHORT = 0.5
"""For conversations that only their time ends."""
_SLOW = {"a line byte by byte", "silence", "half a line"}
_BUFFERS = 16 * 1024 * 1024
"""What the sockets of both ends may hold."""
_FINAL = {"never": True, "no access": True}
_USED = {
    "none": {"greeting", "EHLO", "MAIL", "RCPT", "DATA", "message"},
    "ssl/tls": {"greeting", "EHLO", "AUTH", "MAIL", "RCPT", "DATA", "message"},
}
_FINE = {"announcements without end"}
"""Faults that begin with an answer."""


@pytest.fixture(autouse=True)
def own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the limit of time."""
    monkeypatch.setattr(smtp, "_SECONDS", _SECONDS)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    """A certificate of 127.0.0.1, and the file with its authority."""
    folder = tmp_path_factory.mktemp("mail")
    made = make_certificate()
    (folder / "ca.pem").write_bytes(made.certificate)
    (folder / "both.pem").write_bytes(made.key + made.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    return context, folder / "ca.pem"


def _deliver(
    step: str, fault: Pieces, encryption: str, certificate: tuple[ssl.SSLContext, Path]
) -> tuple[DeliveryError | None, HostileMail]:
    login = "" if encryption == "none" else f", username: u, password: p4ss, certificate: {certificate[1]}"

    async def play() -> tuple[DeliveryError | None, HostileMail]:
        tls = certificate[0] if encryption == "ssl/tls" else None
        async with hostile_mail(step, fault, tls) as server, asyncio.timeout(60):
            target = (
                f"targets: [{{type: email, host: 127.0.0.1, port: {server.port}, from: a@b.example, to: c@d.example,"
                f" encryption: {encryption}{login}}}]"
            )
            try:
                await deliver(target, [notice(message="a")])
            except DeliveryError as error:
                return error, server
            return None, server

    return asyncio.run(play())


@pytest.mark.parametrize("fault", MAIL_FAULTS, ids=lambda fault: fault.replace(" ", "-"))
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("encryption", ["none", "starttls", "ssl/tls"])
def test_no_answer_of_a_mail_server_is_more_than_an_error(
    encryption: str,
    step: str,
    fault: str,
    certificate: tuple[ssl.SSLContext, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A delivery ends within its limits; it is given up only after a refusal for good, and sent once is sent."""
    if fault in _SLOW and step != "QUIT":
        monkeypatch.setattr(smtp, "_SECONDS", _SHORT)
    error, server = _deliver(step, MAIL_FAULTS[fault], encryption, certificate)
    assert server.taken <= _BUFFERS
    seen = b"".join(server.commands)
    if error is not None:
        assert "p4ss" not in str(error)
        is_refusal = fault in _FINAL and not (step == "AUTH" and fault == "no access")
        assert not error.is_final or is_refusal
    if fault == "lines without end":
        assert "did not answer within" not in str(error)  # the size ended it
    if encryption == "starttls":
        assert error is not None  # this server never goes on with TLS
        assert (False, False) == (b"AUTH" in seen, b"MAIL" in seen)
    elif step == "QUIT":
        assert (None, 1) == (error, server.messages)
    elif step in _USED[encryption] and fault not in _FINE:
        assert error is not None or (step == "EHLO" and server.messages)  # HELO is tried then


@pytest.mark.parametrize("step", ["greeting", "MAIL", "message"])
def test_a_mail_server_that_says_little_at_a_time_is_given_up(
    step: str, certificate: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is for the conversation: bytes one after the other keep it open for days otherwise."""
    monkeypatch.setattr(smtp, "_SECONDS", _SHORT)
    error, _ = _deliver(step, MAIL_FAULTS["a line byte by byte"], "none", certificate)
    assert "`127.0.0.1` did not answer within 0.5 seconds" == str(error)


def test_silent_mail_servers_hold_up_nothing_else(
    certificate: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each conversation has its own thread: those of the loop are for the queues of all targets."""
    monkeypatch.setattr(smtp, "_SECONDS", 90.0)

    async def play() -> int:
        async with hostile_mail("greeting", MAIL_FAULTS["silence"]) as server:
            target = (
                f"targets: [{{type: email, host: 127.0.0.1, port: {server.port}, from: a@b.example, to: c@d.example,"
                " encryption: none}]"
            )
            waiting = [asyncio.ensure_future(deliver(target, [notice()])) for _ in range(40)]
            async with asyncio.timeout(30):
                await asyncio.sleep(0.5)
                found = sum([await asyncio.to_thread(lambda: 1) for _ in range(40)])
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            return found

    assert 40 == asyncio.run(play())
    for thread in threading.enumerate():
        if thread.name.startswith("smtp"):
            thread.join(timeout=60)
            assert not thread.is_alive()


def _plain(commands: list[bytes]) -> Iterator[bytes]:
    yield from (each for each in commands if not each.startswith((b"ehlo", b"EHLO", b"STARTTLS", b"QUIT", b"quit")))


@pytest.mark.parametrize(
    "stripped", [b"250 mail\r\n", b"250-mail\r\n250 XXXXXXXA\r\n", b"250-mail\r\n250 AUTH PLAIN\r\n"]
)
def test_a_mail_server_without_tls_gets_nothing(stripped: bytes, certificate: tuple[ssl.SSLContext, Path]) -> None:
    """Who is between the two may take STARTTLS out of the answer: neither login nor message are sent then."""
    error, server = _deliver("EHLO", lambda: iter([stripped]), "starttls", certificate)
    assert "does not offer what is needed" in str(error)
    assert [] == list(_plain(server.commands))


def test_a_mail_server_with_a_certificate_of_others_gets_nothing(certificate: tuple[ssl.SSLContext, Path]) -> None:
    """A name or an authority that does not fit ends the conversation before the login."""

    async def play(host: str, file: str) -> tuple[str, list[bytes]]:
        async with hostile_mail("nowhere", MAIL_FAULTS["nothing"], certificate[0], host) as server:
            target = (
                f"targets: [{{type: email, host: {host}, port: {server.port}, from: a@b.example, to: c@d.example,"
                f" encryption: ssl/tls, username: u, password: p4ss{file}}}]"
            )
            with pytest.raises(DeliveryError) as caught:
                await deliver(target, [notice()])
            return caught.value.message, server.commands

    assert ("`127.0.0.1` has no valid certificate", []) == asyncio.run(play("127.0.0.1", ""))
    trusted = f", certificate: {certificate[1]}"
    assert ("`127.0.0.2` has no valid certificate", []) == asyncio.run(play("127.0.0.2", trusted))
