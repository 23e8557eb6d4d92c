"""E-mail by SMTP: one message for a delivery, as text and as HTML.

Headers are made of single lines, HTML of escaped text. A message that is sent again has the same `Message-ID`. The
egress guard checks the addresses of the server's name, and the connection goes to one of them.
"""

from __future__ import annotations

import html
import smtplib
import socket
import ssl
from collections.abc import Iterator, Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate
from ipaddress import ip_address
from typing import Final

from pyverno.cluster.egressrules import EgressRules
from pyverno.errors import HostError, UsageError
from pyverno.threads import in_thread
from pyverno.ui.notifications.delivery import Delivery, DeliveryError
from pyverno.ui.notifications.notice import clip
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.targets.lines import list_fields, one_line, split_visible, summarize
from pyverno.ui.notifications.transport import Transport, read_tls
from pyverno.value import dataclass, field

__all__ = ["open_mail"]

_SECONDS: Final = 30.0
_ENCRYPTIONS: Final = {"starttls": 587, "ssl/tls": 465, "none": 25}
_ALIASES: Final = {"ssl": "ssl/tls", "tls": "ssl/tls"}
_MOST_SHOWN: Final = 200
_MOST_RECIPIENTS: Final = 100


@dataclass(frozen=True, slots=True)
class _Server:
    host: str
    port: int
    encryption: str
    user: str
    password: str = field(repr=False)
    tls: ssl.SSLContext = field(compare=False)
    rules: EgressRules = field(compare=False)


async def open_mail(transport: Transport, options: Options) -> Mail:
    """Return the target of these options; raises UsageError for invalid addresses."""
    named = options.text("encryption")
    encryption = _ALIASES.get(named, named) or "starttls"
    if encryption not in _ENCRYPTIONS:
        raise UsageError(f"`encryption` must be one of {', '.join(_ENCRYPTIONS)}")
    if options.text("username") and encryption == "none":
        raise UsageError("a password is only sent encrypted: give `encryption: starttls` or `ssl/tls`")
    tls = await read_tls(options)
    server = _Server(
        options.required("host").lower(),
        options.number("port", _ENCRYPTIONS[encryption]),
        encryption,
        options.text("username"),
        options.text("password"),
        tls if isinstance(tls, ssl.SSLContext) else ssl.create_default_context(),
        transport.rules,
    )
    recipients = [_address("to", each) for each in options.texts("to")]
    if not 1 <= len(recipients) <= _MOST_RECIPIENTS:
        raise UsageError(f"`to` needs addresses, {_MOST_RECIPIENTS} at most")
    return Mail(server, _address("from", options.required("from")), recipients, options.text("titlePrefix"))


class Mail:
    """One server with a sender and recipients."""

    def __init__(self, server: _Server, sender: str, recipients: Sequence[str], prefix: str) -> None:
        """Take checked addresses, and the prefix of subjects."""
        self._server = server
        self._sender = sender
        self._recipients = recipients
        self._prefix = prefix

    async def send(self, delivery: Delivery) -> None:
        """Send one message to all recipients."""
        await self._post(self._message(delivery))

    async def send_page(self, title: str, text: str, page: str, at: int) -> None:
        """Send a page of HTML, with its content as text; `at` is in seconds since 1970."""
        message = self._envelope(title, at)
        message.set_content(text)
        message.add_alternative(page, subtype="html")
        await self._post(message)

    async def _post(self, message: EmailMessage) -> None:
        try:
            await in_thread(_send, self._server, message, self._sender, self._recipients)
        except smtplib.SMTPResponseException as error:
            is_final = 500 <= error.smtp_code <= 599 and not isinstance(error, smtplib.SMTPAuthenticationError)
            raise DeliveryError(f"`{self._server.host}` answers {error.smtp_code}", is_final=is_final) from None
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            is_final = all(code >= 500 for code in codes)
            raise DeliveryError(f"`{self._server.host}` refuses all recipients", is_final=is_final) from None
        except smtplib.SMTPNotSupportedError:
            text = f"`{self._server.host}` does not offer what is needed: STARTTLS, or a login"
            raise DeliveryError(text) from None
        except ssl.SSLCertVerificationError:
            raise DeliveryError(f"`{self._server.host}` has no valid certificate") from None
        except HostError as error:
            raise DeliveryError(error.message) from None
        except (smtplib.SMTPException, OSError):
            raise DeliveryError(f"`{self._server.host}` cannot be reached, or has no SMTP server") from None

    def _message(self, delivery: Delivery) -> EmailMessage:
        message = self._envelope(delivery.title, delivery.at)
        message["Message-ID"] = f"<{delivery.id}@{self._sender.rpartition('@')[2]}>"
        message.set_content("\n".join(_text(delivery)))
        message.add_alternative("\n".join(_html(delivery)), subtype="html")
        return message

    def _envelope(self, title: str, at: int) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = one_line(f"{self._prefix} {title}")
        message["From"] = self._sender
        message["To"] = ", ".join(self._recipients)
        message["Date"] = formatdate(at)
        message["Auto-Submitted"] = "auto-generated"
        return message


def _text(delivery: Delivery) -> Iterator[str]:
    shown, left = split_visible(delivery, _MOST_SHOWN)
    if len(shown) == 1 and not left:
        yield from (f"{one_line(name)}: {one_line(text)}" for name, text in list_fields(shown[0], delivery.custom))
        return
    yield from (f"- {summarize(notice)}" for notice in shown)
    if left:
        yield f"and {left} more"


def _html(delivery: Delivery) -> Iterator[str]:
    shown, left = split_visible(delivery, _MOST_SHOWN)
    yield f"<!doctype html><html><body><h1>{_escape(delivery.title)}</h1>"
    if len(shown) == 1 and not left:
        rows = [(name, text) for name, text in list_fields(shown[0], delivery.custom)]
    else:
        rows = [(notice.outcome, summarize(notice)) for notice in shown]
    yield "<table>"
    yield from (f'<tr><th align="left">{_escape(name)}</th><td>{_escape(text)}</td></tr>' for name, text in rows)
    yield "</table>"
    if left:
        yield f"<p>and {left} more</p>"
    yield "</body></html>"


def _escape(text: str) -> str:
    return html.escape(one_line(clip(text, 4000)))


def _address(name: str, text: str) -> str:
    """Return a bare address: no name, no comment, no second address, no line break."""
    try:
        found = Address(addr_spec=text)
    except ValueError:
        found = None
    if found is None or found.addr_spec != text or not text.isascii() or "." not in found.domain + ".":
        raise UsageError(f"`{name}` has one that is no mail address such as team@example.org")
    return text


def _send(server: _Server, message: EmailMessage, sender: str, recipients: Sequence[str]) -> None:
    with _connect(server) as client:
        if server.encryption == "starttls":
            client.starttls(context=server.tls)
        if server.user:
            client.login(server.user, server.password)
        client.send_message(message, sender, recipients)


def _connect(server: _Server) -> smtplib.SMTP:
    if server.encryption == "ssl/tls":
        return _CheckedTlsConnection(server)
    return _CheckedConnection(server)


class _CheckedConnection(smtplib.SMTP):
    """A connection to a checked address, whatever the name resolves to a moment later."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        super().__init__(server.host, server.port, local_hostname="pyverno", timeout=_SECONDS)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return _dial(self._server, timeout)


class _CheckedTlsConnection(_CheckedConnection):
    """The same, encrypted from the beginning."""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        plain = _dial(self._server, timeout)
        try:
            return self._server.tls.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise


def _dial(server: _Server, timeout: float) -> socket.socket:
    """Check all addresses of a server, then connect to one of them."""
    rules = server.rules
    if server.host in rules.hosts or (rules.allowed and all(each.name != server.host for each in rules.allowed)):
        raise DeliveryError(f"`{server.host}` is not permitted by `egress`", is_final=True)
    found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
    for *_, place in found:
        rules.check_address(ip_address(str(place[0]).partition("%")[0]), server.host)
    problem: OSError | None = None
    for *_, place in found:
        try:
            return socket.create_connection((str(place[0]), server.port), timeout)
        except OSError as error:
            problem = error
    raise problem or OSError("no address")
