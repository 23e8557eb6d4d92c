"""HTTP calls of rules to services, behind the egress guard.

A name is resolved once, the guard checks all of its addresses, and the call connects to one of these; no redirect is
followed and no proxy, cookie or credential is taken from the environment. Only a token made for services (a projected
one with a separate audience) may be sent along. This module must never send our own credentials, and never put a
service's response, or an address that a name resolved to, into an error.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final, TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from pyverno.cluster.access import SERVICE_ACCOUNT
from pyverno.cluster.egressrules import EgressRules
from pyverno.cluster.serviceurl import ServiceUrl, parse_service_url
from pyverno.connector import Connector
from pyverno.engine.host import HttpCall
from pyverno.errors import DocumentError, HostError, UsageError, ValueSyntaxError
from pyverno.kube.json import JSON, decode, encode
from pyverno.kube.jsonscan import has_more_values
from pyverno.threads import in_thread
from pyverno.value import dataclass, field
from pyverno.version import __version__

# trust rows: named-file, service-answer

__all__ = ["SCOPED_TOKEN", "Egress", "EgressSettings", "Lookup"]

SCOPED_TOKEN: Final = Path("/var/run/secrets/kyverno/apicall/token")
"""Path at which Kyverno's installation optionally mounts the token for services."""

Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host name and a port to addresses; raises OSError."""

MAX_VALUES: Final = 500_000
"""Values of the JSON of one answer: the decoder lets nothing else run, and takes up to 200 bytes for each."""

_METHODS: Final = ("GET", "POST")
_CONTEXTS: Final = 16
_TOKEN_BYTES: Final = 65_536
_NAME: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
# headers that Go writes itself and ignores when they are set, and headers of one connection
_OWN_HEADERS: Final = frozenset(
    ("host", "content-length", "transfer-encoding", "trailer", "connection", "upgrade", "keep-alive", "te", "expect")
)


@dataclass(frozen=True, slots=True)
class EgressSettings:
    """The flags: permitted addresses, bytes of an answer (0 for no limit), seconds of a call (0 for no limit).

    `token_file` holds the token that goes along where a policy sets no Authorization header; a file that does not exist
    is no token. Raises UsageError for the token of our own service account, which is for the API server only.
    """

    rules: EgressRules = field(default_factory=EgressRules.read)
    max_bytes: int = 10_000_000
    seconds: float = 30.0
    token_file: Path | None = None

    def __post_init__(self) -> None:
        if self.token_file is not None and self.token_file.absolute().is_relative_to(SERVICE_ACCOUNT):
            raise UsageError(f"`{self.token_file}` is our own credential, which is never sent to services")


async def _system_lookup(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(each[4][0]) for each in found))


class Egress:
    """Sends calls; belongs to one event loop. `close` it at the end."""

    def __init__(self, settings: EgressSettings | None = None, lookup: Lookup = _system_lookup) -> None:
        """Take the settings and the name service."""
        self._settings = settings or EgressSettings()
        self._lookup = lookup
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()

    async def close(self) -> None:
        """Close all connections; later calls raise HostError."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def exchange(self, call: HttpCall) -> tuple[int, bytes]:
        """Send a call and return status and body, whatever the status; raises HostError for everything else."""
        try:
            url = parse_service_url(call.url)
        except ValueSyntaxError as error:
            raise HostError(error.message) from None
        self._settings.rules.check_url(url)
        if call.method not in _METHODS:
            raise HostError(f"`{url.origin}` cannot be called by {call.method}: only GET and POST are allowed")
        seconds = self._seconds(call)
        try:
            async with asyncio.timeout(seconds):
                return await self._send(call, url)
        except TimeoutError:
            raise HostError(f"`{url.origin}` did not answer within {seconds or 0:g} seconds") from None
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError) as error:
            why = getattr(getattr(error, "certificate_error", error), "verify_message", "it cannot be verified")
            raise HostError(f"`{url.origin}` has no valid certificate: {why}") from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise HostError(f"`{url.origin}` cannot be reached, or does not answer as HTTP servers do") from None

    async def fetch(self, call: HttpCall) -> JSON:
        """Send a call and return the JSON of its answer; raises HostError for a status outside of 200-299 too."""
        status, body = await self.exchange(call)
        if not 200 <= status <= 299:
            raise HostError(f"HTTP {status}")
        if has_more_values(body, MAX_VALUES):
            raise HostError(f"the service answered with more than {MAX_VALUES} values")
        try:
            return decode(body)
        except DocumentError:
            raise HostError("the service answered with something that is no JSON") from None

    async def _send(self, call: HttpCall, url: ServiceUrl) -> tuple[int, bytes]:
        data = _body(call) if call.method == "POST" else None
        async with self._open().request(
            call.method,
            _build_url(url),
            data=data,
            headers=self._headers(call, url),
            allow_redirects=False,
            ssl=await self._context(call.ca_bundle) if url.scheme == "https" else True,
        ) as reply:
            return reply.status, await self._read(reply)

    async def _read(self, reply: aiohttp.ClientResponse) -> bytes:
        """Return a body without decompression, so that a small answer cannot become a large one."""
        most = self._settings.max_bytes
        parts: list[bytes] = []
        total = 0
        async for part in reply.content.iter_any():
            total += len(part)
            if most and total > most:
                raise HostError(f"response length must be less than max allowed response length of {most}")
            parts.append(part)
        return b"".join(parts)

    def _seconds(self, call: HttpCall) -> float | None:
        limits = [self._settings.seconds] if self._settings.seconds else []
        if call.deadline is not None:
            limits.append(max(call.deadline - time.monotonic(), 0.0))
        return min(limits, default=None)

    def _headers(self, call: HttpCall, url: ServiceUrl) -> dict[str, str]:
        found = {"User-Agent": f"pyverno/{__version__}"}
        if call.method == "POST":
            found["Content-Type"] = "application/json"
        token = self._token()
        if token:
            found["Authorization"] = f"Bearer {token}"
        found = _overlaid(found, call.headers, url)
        # set last: without compression a response has its declared size
        return {name: value for name, value in found.items() if name.lower() != "accept-encoding"} | {
            "Accept-Encoding": "identity"
        }

    def _token(self) -> str:
        if self._settings.token_file is None:
            return ""
        try:
            with self._settings.token_file.open("rb") as file:
                text = file.read(_TOKEN_BYTES).decode("ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return text if text.isprintable() else ""

    def connector(self) -> Connector:
        """Return a connector with guarded connections, for other HTTP clients; call it on the loop."""
        return Connector(
            resolver=_JudgingResolver(self._settings.rules, self._lookup),
            use_dns_cache=False,
            socket_factory=self._socket,
            limit=100,
            limit_per_host=20,
            family=socket.AF_UNSPEC,
        )

    def _open(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise HostError("the client of services is closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self.connector(),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
                auto_decompress=False,
            )
        return self._session

    def _socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        """Make the socket of a connection, after a last check of its address."""
        family, kind, protocol, _, place = address
        self._settings.rules.check_address(ip_address(str(place[0])), "the service")
        made = socket.socket(family=family, type=kind, proto=protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return made

    async def _context(self, bundle: str) -> ssl.SSLContext:
        """Return the TLS context, which trusts only the bundle if there is one; contexts are cached."""
        found = self._contexts.get(bundle)
        if found is None:
            found = self._contexts[bundle] = await in_thread(_trusting, bundle)
            if len(self._contexts) > _CONTEXTS:
                self._contexts.popitem(last=False)
        self._contexts.move_to_end(bundle)
        return found


class _JudgingResolver(AbstractResolver):
    """Resolves names and returns addresses only if all of them may be called."""

    def __init__(self, rules: EgressRules, lookup: Lookup) -> None:
        self._rules = rules
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = [ip_address(text) for text in await self._lookup(host, port)]
        for address in addresses:
            self._rules.check_address(address, host)
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET6 if address.version == 6 else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Hold nothing."""


def _build_url(url: ServiceUrl) -> URL:
    """Return a URL of the parts that were judged; nothing is parsed again."""
    return URL.build(
        scheme=url.scheme, host=url.host, port=url.port, path=url.path, query_string=url.query, encoded=True
    )


def _body(call: HttpCall) -> bytes:
    try:
        return encode(call.body).encode()
    except DocumentError as error:
        raise HostError(f"what is to be sent is no JSON: {error.message}") from None


def _overlaid(found: dict[str, str], headers: Mapping[str, str], url: ServiceUrl) -> dict[str, str]:
    """Put the headers of a policy over ours; raises HostError for one that would be more than a header."""
    for name, value in headers.items():
        lower = name.lower()
        if not name or not _NAME.issuperset(lower) or any(ord(each) < 0x20 and each != "\t" for each in value):
            raise HostError(f"a header of the call of `{url.origin}` is not valid")
        if lower in _OWN_HEADERS or lower.startswith("proxy-") or "\x7f" in value:
            continue
        found = {key: kept for key, kept in found.items() if key.lower() != lower}
        if value or lower != "authorization":  # Kyverno: an empty Authorization is as if there were none
            found[name] = value
    return found


def _trusting(bundle: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=bundle or None)
    except (ssl.SSLError, ValueError):
        raise HostError("failed to parse PEM CA bundle for APICall") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
