"""HTTP to targets, behind the egress guard: addresses are checked before each connection, redirects are not followed.

Proxies, cookies and credentials of the environment are not used. Errors name the origin alone, because paths and
queries of webhooks are secrets.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import aiohttp
import orjson
from yarl import URL

from pyverno.cluster.egress import Egress, EgressSettings
from pyverno.cluster.egressrules import EgressRules
from pyverno.cluster.serviceurl import ServiceUrl, parse_service_url
from pyverno.connector import read_at_most
from pyverno.errors import HostError, UsageError, ValueSyntaxError
from pyverno.kube.json import JSON
from pyverno.threads import in_thread
from pyverno.ui.notifications.delivery import DeliveryError
from pyverno.ui.notifications.options import Options
from pyverno.version import __version__

# trust rows: notification-target

__all__ = ["Endpoint", "Reply", "Transport", "basic_login", "read_tls", "read_url"]

_SECONDS: Final = 30.0
_MOST_BYTES: Final = 1024 * 1024
_LONGEST_WAIT: Final = 3600.0
_AGAIN: Final = frozenset({401, 403, 408, 425, 429})
"""Of these a later attempt may succeed: credentials are read again, and limits end."""


class Reply:
    """Status and body of an answer."""

    __slots__ = ("body", "status")

    def __init__(self, status: int, body: bytes) -> None:
        """Take the response."""
        self.status = status
        self.body = body

    def json(self) -> JSON:
        """Return the body as JSON; raises DeliveryError."""
        try:
            found: JSON = orjson.loads(self.body)
        except ValueError:
            raise DeliveryError("the target does not answer with JSON") from None
        return found


class Transport:
    """Sends requests; belongs to one event loop. `close` it at the end."""

    def __init__(self, rules: EgressRules) -> None:
        """Take where targets may be."""
        self.rules = rules
        self._egress = Egress(EgressSettings(rules))
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        await self._egress.close()
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(
        self, method: str, url: ServiceUrl, body: bytes, headers: Mapping[str, str], tls: ssl.SSLContext | bool
    ) -> Reply:
        """Send a request and return the answer, whatever its status; raises DeliveryError."""
        try:
            self.rules.check_url(url)
        except HostError as error:
            raise DeliveryError(error.message, is_final=True) from None
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._egress.connector(),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=_SECONDS),
                trust_env=False,
                auto_decompress=False,
            )
        target = URL.build(
            scheme=url.scheme, host=url.host, port=url.port, path=url.path, query_string=url.query, encoded=True
        )
        sent = {"User-Agent": f"pyverno/{__version__}", **headers, "Accept-Encoding": "identity"}
        try:
            async with self._session.request(
                method, target, data=body, headers=sent, allow_redirects=False, ssl=tls
            ) as answer:
                reply = Reply(answer.status, await _read(answer))
                wait = answer.headers.get("Retry-After", "")
        except HostError as error:  # the egress guard refused the addresses of the name
            raise DeliveryError(error.message) from None
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError):
            raise DeliveryError(f"`{url.origin}` has no valid certificate") from None
        except TimeoutError:
            raise DeliveryError(f"`{url.origin}` did not answer within {_SECONDS:g} seconds") from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise DeliveryError(f"`{url.origin}` cannot be reached, or does not answer as HTTP servers do") from None
        _check_status(url, reply.status, wait)
        return reply


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body, empty if it breaks off: the status has said what became of the request."""
    try:
        return await read_at_most(answer.content, _MOST_BYTES)
    except (aiohttp.ClientError, OSError):
        return b""


def _check_status(url: ServiceUrl, status: int, wait: str) -> None:
    if 200 <= status <= 299:
        return
    if 300 <= status <= 399:
        raise DeliveryError(f"`{url.origin}` answers with a redirect, which is not followed", is_final=True)
    seconds = min(float(wait), _LONGEST_WAIT) if wait.isascii() and wait.isdigit() and len(wait) < 7 else 0.0
    is_final = 400 <= status <= 499 and status not in _AGAIN
    raise DeliveryError(f"`{url.origin}` answers {status}", is_final=is_final, wait=seconds)


class Endpoint:
    """One address of a target with its headers, login and certificates."""

    def __init__(
        self, transport: Transport, url: ServiceUrl, headers: Mapping[str, str], tls: ssl.SSLContext | bool
    ) -> None:
        """Take the parts; `open` reads them from options."""
        self.url = url
        self._transport = transport
        self._headers = headers
        self._tls = tls

    @classmethod
    async def open(cls, transport: Transport, options: Options, name: str, path: str = "") -> Endpoint:
        """Return the endpoint of an option with an address, below which `path` is; raises UsageError."""
        url = read_url(name, options.required(name).rstrip("/") + path if path else options.required(name))
        headers = {"Content-Type": "application/json; charset=utf-8", **options.mapping("headers")}
        user = options.text("username")
        if user and "Authorization" not in headers:
            headers["Authorization"] = basic_login(user, options.text("password"))
        for key, value in headers.items():
            if not key.isascii() or not all(each.isprintable() for each in (key, value)) or not key.strip():
                raise UsageError("`headers` has one that is no header")
        return cls(transport, url, headers, await read_tls(options))

    async def send(
        self,
        body: JSON | bytes,
        headers: Mapping[str, str] | None = None,
        *,
        method: str = "POST",
        url: ServiceUrl | None = None,
    ) -> Reply:
        """Send JSON, or bytes as they are, with more headers than those of every request."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        return await self._transport.send(
            method, url or self.url, data, {**self._headers, **(headers or {})}, self._tls
        )


def basic_login(user: str, password: str) -> str:
    """Return the header of a user and a password (RFC 7617); raises UsageError for a user with a colon."""
    if ":" in user:
        raise UsageError("`username` must not have a colon")
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def read_url(name: str, text: str) -> ServiceUrl:
    """Return an address; raises UsageError without its text."""
    try:
        return parse_service_url(text)
    except ValueSyntaxError:
        raise UsageError(f"`{name}` is not an address such as https://chat.example.org/path") from None


async def read_tls(options: Options) -> ssl.SSLContext | bool:
    """Return the trust: `certificate` names a file with authorities, `skipTLS` trusts everything."""
    return await in_thread(_tls, options.text("certificate"), skips=options.flag("skipTLS"))


def _tls(file: str, *, skips: bool) -> ssl.SSLContext | bool:
    if not file and not skips:
        return True
    try:
        context = ssl.create_default_context(cafile=str(Path(file)) if file else None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"`certificate` names `{file}`, which cannot be read as PEM") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if skips:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
