"""HTTP to registries: a request with a limited response, redirects without credentials, and tokens on demand.

Redirects to another host, which registries use for blobs, are followed without any credential. Tokens are fetched from
the realm that a registry names, with the credential of that registry only, and never over plain HTTP for a registry
that is reached by HTTPS.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import aiohttp
from yarl import URL

from pyverno.connector import ForeignConnector
from pyverno.errors import DocumentError, HostError
from pyverno.kube.imageref.hosts import is_docker_hub
from pyverno.kube.json import decode
from pyverno.registry.challenge import Challenge, parse_challenges
from pyverno.registry.credentials import Credential
from pyverno.value import dataclass, replace
from pyverno.version import __version__

# trust rows: registry-answer

__all__ = ["RegistryAnswer", "RegistryCall", "RegistrySettings", "RegistryUnauthorizedError", "Transport"]

_MAX_REDIRECTS: Final = 4
_MAX_TOKEN: Final = 1_048_576
_MAX_TOKENS: Final = 1024
_MAX_TOKEN_LENGTH: Final = 16_384
_TOKEN_SECONDS: Final = 60
_EARLY_SECONDS: Final = 10
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504, 522})
_FIRST_PAUSE: Final = 0.2
_TRIES: Final = 3
_OUTSIDE_SECONDS: Final = 5.0


class RegistryUnauthorizedError(HostError):
    """A registry refused every credential."""

    code = "registry-unauthorized"


class _UnreachableError(HostError):
    """A failed connection or TLS handshake; an invalid certificate is another error."""


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Access to registries: seconds at most, and whether plain HTTP is allowed."""

    seconds: float = 30.0
    allows_http: bool = False


@dataclass(frozen=True, slots=True)
class RegistryCall:
    """A request for a path of a registry, with the repository, the credentials and the limit of the response.

    `actions` are those that a token must allow. With `allows_http` a registry that cannot be reached by HTTPS is read
    by plain HTTP.
    """

    registry: str
    repository: str
    path: str
    credentials: tuple[Credential, ...] = ()
    accept: str = ""
    max_bytes: int = 4 * 1024 * 1024
    allows_http: bool = False
    method: str = "GET"
    body: bytes = b""
    content_type: str = ""
    actions: str = "pull"


class RegistryAnswer(NamedTuple):
    """Status, headers and body of an answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class _Token:
    value: str
    ends: float


@dataclass(frozen=True, slots=True)
class _Outgoing:
    """One request on the wire; `form` is posted."""

    registry: str
    target: URL
    headers: Mapping[str, str]
    max_bytes: int
    form: Mapping[str, str] | None = None
    method: str = "GET"
    body: bytes = b""


class Transport:
    """Sends requests; belongs to one event loop. `close` it at the end."""

    def __init__(
        self,
        settings: RegistrySettings | None = None,
        connector: Callable[[], aiohttp.BaseConnector] = ForeignConnector,
    ) -> None:
        """Take the settings, and the factory of connections, which also guards the addresses."""
        self._settings = settings or RegistrySettings()
        self._connector = connector
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False
        self._tokens: dict[tuple[str, ...], _Token] = {}
        self._plain: set[str] = set()

    async def close(self) -> None:
        """Close all connections; later calls raise HostError."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, call: RegistryCall) -> RegistryAnswer:
        """Send a request with the first credential that the registry takes.

        Raises RegistryUnauthorizedError when it takes none of them, HostError when it cannot be reached in time or
        answers with too much.
        """
        seconds = self._settings.seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._send_anywhere(call)
        except TimeoutError:
            raise HostError(f"the registry `{call.registry}` did not answer within {seconds:g} seconds") from None

    async def fetch(self, url: str, body: bytes, content_type: str, max_bytes: int) -> RegistryAnswer:
        """Return the response of an address outside of registries to a GET, or to the POST of a body; raises HostError.

        No credential is sent, and no redirect followed.
        """
        try:
            target = URL(url)
        except ValueError:
            raise HostError("this is no address") from None
        method, headers = ("POST", {"Content-Type": content_type}) if body else ("GET", {})
        seconds = min(self._settings.seconds, _OUTSIDE_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                return await self._once(_Outgoing(target.host or "", target, headers, max_bytes, None, method, body))
        except TimeoutError:
            raise HostError(f"no answer within {seconds:g} seconds") from None
        except HostError:
            raise HostError(f"no connection, or an answer of more than {max_bytes} bytes") from None

    async def _send_anywhere(self, call: RegistryCall) -> RegistryAnswer:
        """Send a request by HTTPS; by HTTP where that is allowed and the registry has no HTTPS."""
        allows_http = (call.allows_http or self._settings.allows_http) and not _is_local(call.registry)
        if not allows_http or call.registry not in self._plain:
            try:
                return await self._with_credentials(replace(call, allows_http=False))
            except _UnreachableError:
                if not allows_http:
                    raise
        answer = await self._with_credentials(replace(call, allows_http=True))
        if len(self._plain) >= _MAX_TOKENS:
            self._plain.clear()
        self._plain.add(call.registry)
        return answer

    async def _with_credentials(self, call: RegistryCall) -> RegistryAnswer:
        refused: list[str] = []
        for credential in (*call.credentials, Credential(source="no credential")):
            answer = await self._send_authenticated(call, credential)
            if answer.status not in (401, 403):
                return answer
            refused.append(f"{credential.source}: {answer.status}")
        tried = ", ".join(refused)
        raise RegistryUnauthorizedError(
            f"the registry `{call.registry}` refused access to `{call.repository}` ({tried})"
        )

    async def _send_authenticated(self, call: RegistryCall, credential: Credential) -> RegistryAnswer:
        """Send a request, and once more with the authorization that the registry demands."""
        target = _base(call).join(URL(call.path, encoded=True))
        headers = {"Accept": call.accept} if call.accept else {}
        if call.content_type:
            headers["Content-Type"] = call.content_type
        known = self._tokens.get(_token_key(call, credential))
        if known is not None and known.ends > time.monotonic():
            headers["Authorization"] = f"Bearer {known.value}"
        elif credential.registry_token:
            headers["Authorization"] = f"Bearer {credential.registry_token}"
        outgoing = _Outgoing(call.registry, target, headers, call.max_bytes, None, call.method, call.body)
        answer = await self._send(outgoing)
        if answer.status != 401:
            return answer
        header = await self._authorization(call, credential, answer)
        if not header:
            return answer
        return await self._send(replace(outgoing, headers={**headers, "Authorization": header}))

    # -------------------------------------------------------------------------------------------------------- tokens

    async def _authorization(self, call: RegistryCall, credential: Credential, answer: RegistryAnswer) -> str:
        """Return the header that answers a challenge; empty without credentials."""
        for challenge in parse_challenges(answer.headers.get("www-authenticate", "")):
            if challenge.scheme == "bearer":
                token = await self._fetch_token(call, credential, challenge)
                if token:
                    return f"Bearer {token}"
            elif challenge.scheme == "basic" and credential.username:
                return _basic(credential)
        return ""

    async def _fetch_token(self, call: RegistryCall, credential: Credential, challenge: Challenge) -> str:
        realm = _realm(call, challenge)
        query = {"scope": f"repository:{call.repository}:{call.actions}"}
        if "service" in challenge.parameters:
            query["service"] = challenge.parameters["service"]
        if credential.identity_token:
            form = {"grant_type": "refresh_token", "refresh_token": credential.identity_token, "client_id": "pyverno"}
            answer = await self._once(_Outgoing(call.registry, realm, {}, _MAX_TOKEN, {**form, **query}, "POST"))
        else:
            headers = {"Authorization": _basic(credential)} if credential.username else {}
            answer = await self._once(_Outgoing(call.registry, realm.update_query(query), headers, _MAX_TOKEN))
        if answer.status in (401, 403):
            return ""
        if answer.status != 200:
            raise HostError(f"the token service of the registry `{call.registry}` answers {answer.status}")
        token, seconds = _read_token(call.registry, answer.body)
        if len(self._tokens) >= _MAX_TOKENS:
            self._tokens.clear()
        self._tokens[_token_key(call, credential)] = _Token(token, time.monotonic() + max(seconds - _EARLY_SECONDS, 0))
        return token

    # ------------------------------------------------------------------------------------------------------ requests

    async def _send(self, outgoing: _Outgoing) -> RegistryAnswer:
        """Send a request, retry where the response allows it, and follow the redirects of a GET."""
        pause = _FIRST_PAUSE
        for left in range(_TRIES - 1, -1, -1):
            answer = await self._follow(outgoing)
            if answer.status not in _RETRIED or not left:
                break
            await asyncio.sleep(max(pause, _retry_after(answer)))
            pause *= 2
        return answer

    async def _follow(self, outgoing: _Outgoing) -> RegistryAnswer:
        registry = outgoing.registry
        for _ in range(_MAX_REDIRECTS + 1):
            answer = await self._once(outgoing)
            location = answer.headers.get("location", "")
            if answer.status not in _REDIRECTS or not location or outgoing.method != "GET":
                return answer
            outgoing = _redirect(outgoing, location)
        raise HostError(f"the registry `{registry}` redirects more than {_MAX_REDIRECTS} times")

    async def _once(self, outgoing: _Outgoing) -> RegistryAnswer:
        registry, data = outgoing.registry, outgoing.form or outgoing.body or None
        request = self._open().request(
            outgoing.method, outgoing.target, headers=outgoing.headers, data=data, allow_redirects=False
        )
        try:
            async with request as reply:
                body = await _read(registry, reply, outgoing.max_bytes)
                found = {name.lower(): value for name, value in reply.headers.items()}
                return RegistryAnswer(reply.status, found, body)
        except TimeoutError:
            raise
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError):
            raise HostError(f"the registry `{registry}` has no valid certificate") from None
        except aiohttp.ClientConnectorError:
            raise _UnreachableError(f"the registry `{registry}` cannot be reached") from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise HostError(f"the registry `{registry}` cannot be reached") from None

    def _open(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise HostError("the client of registries is closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._connector(),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
                trust_env=False,
                auto_decompress=False,
                headers={"User-Agent": f"pyverno/{__version__}", "Accept-Encoding": "identity"},
            )
        return self._session


def _is_local(registry: str) -> bool:
    return registry.startswith("[::1]") or registry.partition(":")[0] in ("localhost", "127.0.0.1")


def _base(call: RegistryCall) -> URL:
    registry = call.registry
    host = "registry-1.docker.io" if is_docker_hub(registry) else registry
    scheme = "http" if call.allows_http or _is_local(host) else "https"
    try:
        return URL(f"{scheme}://{host}")
    except ValueError:
        raise HostError(f"`{registry}` is no address of a registry") from None


def _realm(call: RegistryCall, challenge: Challenge) -> URL:
    registry = call.registry
    try:
        realm = URL(challenge.parameters.get("realm", ""))
    except ValueError:
        realm = URL("")
    if realm.scheme not in ("http", "https") or not realm.host or realm.user or realm.password:
        raise HostError(f"the registry `{registry}` names no usable realm for tokens")
    if realm.scheme != "https" and _base(call).scheme == "https":
        raise HostError(f"the registry `{registry}` demands a credential over plain HTTP")
    return realm


def _redirect(outgoing: _Outgoing, location: str) -> _Outgoing:
    """Return the redirected request, without its credential unless scheme, host and port stay."""
    registry, at = outgoing.registry, outgoing.target
    try:
        to = at.join(URL(location))
    except ValueError:
        raise HostError(f"the registry `{registry}` redirects to nowhere") from None
    if to.scheme not in (at.scheme, "https"):
        raise HostError(f"the registry `{registry}` redirects to another scheme")
    if (to.scheme, to.host, to.port) == (at.scheme, at.host, at.port):
        return replace(outgoing, target=to)
    kept = {name: value for name, value in outgoing.headers.items() if name != "Authorization"}
    return replace(outgoing, target=to, headers=kept)


async def _read(registry: str, reply: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    if reply.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise HostError(f"the registry `{registry}` answers with an encoded body, which was not requested")
    parts: list[bytes] = []
    total = 0
    async for part in reply.content.iter_any():
        total += len(part)
        if total > max_bytes:
            raise HostError(f"the registry `{registry}` answers with more than {max_bytes} bytes")
        parts.append(part)
    return b"".join(parts)


def _read_token(registry: str, body: bytes) -> tuple[str, float]:
    try:
        found = decode(body)
    except DocumentError:
        found = None
    if isinstance(found, dict):
        token = found.get("token") or found.get("access_token")
        seconds = found.get("expires_in")
        if isinstance(token, str) and len(token) <= _MAX_TOKEN_LENGTH and token.isascii() and token.isprintable():
            return token, seconds if isinstance(seconds, int | float) and seconds > 0 else _TOKEN_SECONDS
    raise HostError(f"the registry `{registry}` has a realm that answers with no token")


def _token_key(call: RegistryCall, credential: Credential) -> tuple[str, ...]:
    secrets = (credential.username, credential.password, credential.identity_token, credential.registry_token)
    return (call.registry, call.repository, call.actions, *secrets)


def _basic(credential: Credential) -> str:
    pair = f"{credential.username}:{credential.password}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


def _retry_after(answer: RegistryAnswer) -> float:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0.0
