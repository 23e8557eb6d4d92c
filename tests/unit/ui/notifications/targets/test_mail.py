"""Mail goes to a real SMTP server: encrypted, logged in, with headers and HTML that results cannot change."""

from __future__ import annotations

import asyncio
import email.policy
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

from pyverno.cluster.egressrules import EgressRules
from pyverno.errors import UsageError
from pyverno.ui.notifications.delivery import DeliveryError
from tests.support.notifications import ANYWHERE, HOSTILE, deliver, notice
from tests.support.webhookserver import make_certificate


class Inbox:
    """The messages that an SMTP server accepted; with a `refusal` it answers that instead."""

    def __init__(self) -> None:
        self.messages: list[tuple[list[str], EmailMessage]] = []
        self.refusal = ""
        self.refused: dict[str, str] = {}

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        if self.refusal:
            return self.refusal
        parser: Any = BytesParser(policy=email.policy.default)
        self.messages.append((envelope.rcpt_tos, parser.parsebytes(envelope.content)))
        return "250 OK"


@asynccontextmanager
async def serve(inbox: Inbox, folder: Path, options: Mapping[str, Any]) -> AsyncIterator[str]:
    """Run a server with STARTTLS and a login; yield the options of a target."""
    made = make_certificate()
    (folder / "ca.pem").write_bytes(made.certificate)
    (folder / "both.pem").write_bytes(made.key + made.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")

    def login(_server: Any, _session: Any, _envelope: Any, _mechanism: Any, data: Any) -> AuthResult:
        is_known = isinstance(data, LoginPassword) and (data.login, data.password) == (b"u", b"p4ss")
        return AuthResult(success=is_known, handled=False)

    settings = {"tls_context": context, "require_starttls": True, "auth_required": True, **options}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(inbox, authenticator=login, loop=loop, **settings), "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield (
            f"type: email, host: 127.0.0.1, port: {port}, username: u, password: p4ss, "
            f"certificate: {folder / 'ca.pem'}, from: pyverno@example.org, to: [team@example.org, two@example.org]"
        )
    finally:
        server.close()
        await server.wait_closed()


def send(
    inbox: Inbox,
    folder: Path,
    *notices: Any,
    extra: str = "",
    change: tuple[str, str] = ("", ""),
    rules: EgressRules = ANYWHERE,
    **options: Any,
) -> None:
    """Deliver to a server; `change` replaces a part of the target's options."""

    async def play() -> None:
        async with serve(inbox, folder, options) as target:
            await deliver(
                f"targets: [{{{target.replace(*change) if change[0] else target}{extra}}}]", notices, rules=rules
            )

    asyncio.run(play())


def test_a_message_is_text_and_html_without_markup_of_results(tmp_path: Path) -> None:
    """A line break in a message makes no header, a tag in it no element."""
    inbox = Inbox()
    send(inbox, tmp_path, notice(message=HOSTILE, policy="p\r\nBcc: a@b.example"), extra=", titlePrefix: '[prod]'")
    ((recipients, message),) = inbox.messages
    assert ["team@example.org", "two@example.org"] == recipients
    assert "[prod] fail: p Bcc: a@b.example on Pod team/a" == message["Subject"]
    assert {"Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted"} < {*message.keys()}
    assert "Bcc" not in message
    assert f"<{'d' * 32}@example.org>" == message["Message-ID"]
    texts = {part.get_content_type(): part.get_content() for part in message.iter_parts()}  # type: ignore[attr-defined]
    assert "<script>alert(1)</script>" in texts["text/plain"]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in texts["text/html"]
    assert "<script" not in texts["text/html"]


def test_a_digest_lists_all_its_notices(tmp_path: Path) -> None:
    """One message for a window."""
    inbox = Inbox()
    send(inbox, tmp_path, *[notice(name=f"a{number}") for number in range(30)], extra=", digest: 1h")
    ((_, message),) = inbox.messages
    body = message.get_body(("plain",))
    assert body is not None
    assert ("policy results: 30 new", 30) == (message["Subject"], body.get_content().count("fail [high] p/r"))


@pytest.mark.parametrize(
    ("change", "refusal", "reason", "is_final"),
    [
        (("p4ss", "wr0ng"), "", "`127.0.0.1` answers 535", False),
        (("ca.pem", "none.pem"), "", "`certificate` names", True),
        (("", ""), "451 later", "`127.0.0.1` answers 451", False),
        (("", ""), "552 too large", "`127.0.0.1` answers 552", True),
    ],
)
def test_what_a_server_refuses_is_named_without_the_password(
    tmp_path: Path, change: tuple[str, str], refusal: str, reason: str, *, is_final: bool
) -> None:
    """A login that fails may be right after the secret was read again."""
    inbox = Inbox()
    inbox.refusal = refusal
    with pytest.raises((DeliveryError, UsageError), match=reason) as caught:
        send(inbox, tmp_path, notice(), change=change)
    assert is_final == getattr(caught.value, "is_final", True)
    assert "wr0ng" not in str(caught.value)
    assert [] == inbox.messages


def test_a_server_without_starttls_gets_no_password(tmp_path: Path) -> None:
    """An attacker on the network could remove the STARTTLS offer and read the password."""
    inbox = Inbox()
    with pytest.raises(DeliveryError, match="does not offer what is needed"):
        send(inbox, tmp_path, notice(), tls_context=None, require_starttls=False, auth_required=False)
    with pytest.raises(UsageError, match="a password is only sent encrypted"):
        send(inbox, tmp_path, notice(), extra=", encryption: none")
    assert [] == inbox.messages


@pytest.mark.parametrize("address", ["a@b.example\\r\\nBcc: c@d.example", "A <a@b.example>", "a@b, c@d", "none"])
def test_an_address_is_nothing_but_an_address(tmp_path: Path, address: str) -> None:
    """Neither a name nor a second address nor a line break."""
    with pytest.raises(UsageError, match="`from` has one that is no mail address"):
        send(Inbox(), tmp_path, notice(), change=("from: pyverno@example.org", f'from: "{address}"'))


def test_the_guard_judges_what_a_name_resolves_to(tmp_path: Path) -> None:
    """`localhost` is this machine by any name."""
    inbox = Inbox()
    local = ("host: 127.0.0.1", "host: localhost")
    with pytest.raises(DeliveryError, match="is blocked"):
        send(inbox, tmp_path, notice(), change=local, rules=EgressRules.read())
    assert [] == inbox.messages


@pytest.mark.parametrize("answer", ["550 no such user", "451 later"])
def test_a_recipient_that_is_refused_is_noticed(tmp_path: Path, answer: str) -> None:
    """The others have the message: it is not sent again, and the target shows the error."""
    inbox = Inbox()
    inbox.refused = {"two@example.org": answer}
    with pytest.raises(DeliveryError) as caught:
        send(inbox, tmp_path, notice())
    assert ("`127.0.0.1` refuses 1 of 2 recipients", True) == (caught.value.message, caught.value.is_final)
    ((recipients, _),) = inbox.messages
    assert ["team@example.org"] == recipients
