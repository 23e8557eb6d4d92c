"""One message to an SMTP server within limits of time and bytes; the egress guard checks all addresses of its name.

A conversation has a thread of its own, so that a silent server holds up no other target.
"""

from __future__ import annotations

import asyncio
import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.message import EmailMessage
from io import BufferedReader
from ipaddress import ip_address
from typing import Any, Final

from pyverno.cluster.egressrules import EgressRules
from pyverno.errors import HostError
from pyverno.threads import in_pool
from pyverno.ui.notifications.delivery import DeliveryError
from pyverno.value import dataclass, field

# trust rows: notification-target

__all__ = ["SmtpServer", "post"]

_SECONDS: Final = 30.0
_MOST_BYTES: Final = 64 * 1024
"""Bytes of all replies of one conversation."""


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """A server: `encryption` is starttls, ssl/tls or none; `rules` say where it may be."""

    host: str
    port: int
    encryption: str
    user: str
    password: str = field(repr=False)
    tls: ssl.SSLContext = field(compare=False)
    rules: EgressRules = field(compare=False)


async def post(server: SmtpServer, message: EmailMessage, sender: str, recipients: Sequence[str]) -> None:
    """Send a message; raises DeliveryError, which is final for a reply that no repetition changes.

    It is final, too, when the server takes the message for some recipients: these would get it again.
    """
    conversation = _Conversation(server)
    ending = asyncio.get_running_loop().call_later(_SECONDS, conversation.end)
    threads = ThreadPoolExecutor(1, thread_name_prefix="smtp")
    try:
        refused = await in_pool(threads, conversation.send, message, sender, recipients)
        if refused:
            text = f"`{server.host}` refuses {refused} of {len(recipients)} recipients"
            raise DeliveryError(text, is_final=True)
    except DeliveryError:
        raise
    except HostError as error:
        raise DeliveryError(error.message) from None
    except (smtplib.SMTPException, OSError, ValueError) as error:
        if conversation.is_ended:
            raise DeliveryError(f"`{server.host}` did not answer within {_SECONDS:g} seconds") from None
        raise _explain(server.host, error) from None
    finally:
        ending.cancel()
        conversation.end()
        threads.shutdown(wait=False)


def _explain(host: str, error: Exception) -> DeliveryError:
    """Return the error of a delivery, without the words of the server."""
    match error:
        case smtplib.SMTPResponseException(smtp_code=code):
            is_final = 500 <= code <= 599 and not isinstance(error, smtplib.SMTPAuthenticationError)
            answer = f"answers {code}" if code > 0 else "does not answer as SMTP servers do"
            return DeliveryError(f"`{host}` {answer}", is_final=is_final)
        case smtplib.SMTPRecipientsRefused(recipients=refused):
            is_final = all(500 <= code <= 599 for code, _ in refused.values())
            return DeliveryError(f"`{host}` refuses all recipients", is_final=is_final)
        case smtplib.SMTPNotSupportedError():
            return DeliveryError(f"`{host}` does not offer what is needed: STARTTLS, or a login")
        case ssl.SSLCertVerificationError():
            return DeliveryError(f"`{host}` has no valid certificate")
    return DeliveryError(f"`{host}` cannot be reached, or has no SMTP server")


class _Conversation:
    """One connection, used in a thread; `end` ends it from another one, wherever it waits."""

    def __init__(self, server: SmtpServer) -> None:
        self._server = server
        self._until = time.monotonic() + _SECONDS
        self._open: socket.socket | None = None
        self._ended = threading.Event()

    @property
    def is_ended(self) -> bool:
        """Whether `end` was called."""
        return self._ended.is_set()

    def send(self, message: EmailMessage, sender: str, recipients: Sequence[str]) -> int:
        """Send a message and return how many of its recipients are refused."""
        try:
            client = _Connection(self._server, self._dial)
            try:
                if self._server.encryption == "starttls":
                    client.starttls(context=self._server.tls)
                if self._server.user:
                    client.login(self._server.user, self._server.password)
                refused = client.send_message(message, sender, recipients)
                with suppress(smtplib.SMTPException, OSError):
                    client.putcmd("quit")  # the answer would change nothing, and may never come
                return len(refused)
            finally:
                client.close()
        finally:
            if self._open is not None:
                self._open.close()

    def end(self) -> None:
        """End the conversation, also one that has not begun."""
        self._ended.set()
        if self._open is not None:
            with suppress(OSError):
                self._open.shutdown(socket.SHUT_RDWR)

    def _dial(self) -> socket.socket:
        """Check all addresses of a server, then connect to one of them."""
        server, rules = self._server, self._server.rules
        if server.host in rules.hosts or (rules.allowed and all(each.name != server.host for each in rules.allowed)):
            raise DeliveryError(f"`{server.host}` is not permitted by `egress`", is_final=True)
        found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
        for *_, place in found:
            rules.check_address(ip_address(str(place[0]).partition("%")[0]), server.host)
        problem: OSError | None = None
        for *_, place in found:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            try:
                made = socket.create_connection((str(place[0]), server.port), left)
            except OSError as error:
                problem = error
                continue
            # TLS takes the socket away; this one still ends the connection
            self._open = made.dup()
            if self._ended.is_set():
                self.end()
            return made
        raise problem or OSError("no address")


class _Connection(smtplib.SMTP):
    """A connection to a checked address, whatever the name resolves to a moment later."""

    def __init__(self, server: SmtpServer, dial: Any) -> None:
        self._server = server
        self._dial = dial
        self._left = _MOST_BYTES
        super().__init__(server.host, server.port, local_hostname="pyverno", timeout=_SECONDS)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        plain: socket.socket = self._dial()
        if self._server.encryption != "ssl/tls":
            return plain
        try:
            return self._server.tls.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise

    def getreply(self) -> tuple[int, bytes]:
        """Return the next reply; the library would collect lines without end."""
        if self.file is None and self.sock is not None:
            self.file = _Replies(self.sock.makefile("rb"), self)
        return super().getreply()

    def take(self, size: int) -> None:
        """Count bytes of replies; raises OSError for too many."""
        self._left -= size
        if self._left < 0:
            raise OSError("the replies are too long")


class _Replies:
    """The lines that a server sends, counted."""

    def __init__(self, lines: BufferedReader, connection: _Connection) -> None:
        self._lines = lines
        self._connection = connection

    def readline(self, most: int) -> bytes:
        """Return a line of at most so many bytes."""
        line = self._lines.readline(most)
        self._connection.take(len(line) if len(line) < most else _MOST_BYTES + 1)
        return line

    def close(self) -> None:
        """Close the file."""
        self._lines.close()
