"""E-mail by SMTP: one message for a delivery, as text and as HTML.

Headers are made of single lines, HTML of escaped text. A message that is sent again has the same `Message-ID`.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate
from typing import Final

from pyverno.errors import UsageError
from pyverno.sinks.markup import html_text
from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.notice import clip
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.smtp import SmtpServer, post
from pyverno.ui.notifications.targets.lines import list_fields, one_line, split_visible, summarize
from pyverno.ui.notifications.transport import Transport, read_tls

__all__ = ["open_mail"]

_ENCRYPTIONS: Final = {"starttls": 587, "ssl/tls": 465, "none": 25}
_ALIASES: Final = {"ssl": "ssl/tls", "tls": "ssl/tls"}
_MOST_SHOWN: Final = 200
_MOST_RECIPIENTS: Final = 100


async def open_mail(transport: Transport, options: Options) -> Mail:
    """Return the target of these options; raises UsageError for invalid addresses."""
    named = options.text("encryption")
    encryption = _ALIASES.get(named, named) or "starttls"
    if encryption not in _ENCRYPTIONS:
        raise UsageError(f"`encryption` must be one of {', '.join(_ENCRYPTIONS)}")
    if options.text("username") and encryption == "none":
        raise UsageError("a password is only sent encrypted: give `encryption: starttls` or `ssl/tls`")
    tls = await read_tls(options)
    server = SmtpServer(
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

    def __init__(self, server: SmtpServer, sender: str, recipients: Sequence[str], prefix: str) -> None:
        """Take checked addresses, and the prefix of subjects."""
        self._server = server
        self._sender = sender
        self._recipients = recipients
        self._prefix = prefix

    async def send(self, delivery: Delivery) -> None:
        """Send one message to all recipients."""
        await post(self._server, self._message(delivery), self._sender, self._recipients)

    async def send_page(self, title: str, text: str, page: str, at: int) -> None:
        """Send a page of HTML, with its content as text; `at` is in seconds since 1970."""
        message = self._envelope(title, at)
        message.set_content(text)
        message.add_alternative(page, subtype="html")
        await post(self._server, message, self._sender, self._recipients)

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
    return html_text(one_line(clip(text, 4000)))


def _address(name: str, text: str) -> str:
    """Return a bare address: no name, no comment, no second address, no line break."""
    try:
        found = Address(addr_spec=text)
    except ValueError:
        found = None
    if found is None or found.addr_spec != text or not text.isascii() or "." not in found.domain + ".":
        raise UsageError(f"`{name}` has one that is no mail address such as team@example.org")
    return text
