"""Logins by OpenID Connect: authorization code with PKCE, with the issuer's discovery document.

OpenID Connect Core and Discovery 1.0, RFC 7636. Only the issuer of the flags is queried, no redirect of its endpoints
is followed, and answers are bounded. This module must never put a token, a code or a secret into an error.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode, urlsplit

import aiohttp

from pyverno.connector import Connector, read_at_most
from pyverno.errors import DocumentError, HostError, UsageError
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.ui.access.identity import AccessDeniedError, Identity
from pyverno.ui.access.idtokens import check_id_token
from pyverno.ui.access.userclaims import UserClaims
from pyverno.value import dataclass, field

# trust rows: token-claim

__all__ = ["SCOPES", "OidcLogins", "OidcSettings", "check_address"]

SCOPES: Final = ("profile", "email")
_MOST_BYTES: Final = 1024 * 1024
_SECONDS: Final = 10.0
_KEYS_SECONDS: Final = 600.0
_RETRY_SECONDS: Final = 10.0
_LOGIN_SECONDS: Final = 600.0
_MOST_LOGINS: Final = 10_000
"""Ended logins whose states are remembered."""
_MOST_KEYS: Final = 100
_SILENT_SECONDS: Final = 5.0
"""Logins fail at once for so long after an issuer gave no answer: they wait for it one after the other."""
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """The issuer, and this server as its client; `callback` is the redirect address after a login.

    `claims` says which claims name the user and groups. Raises UsageError for an address that is not HTTPS (loopback
    may be HTTP).
    """

    issuer: str
    client: str
    callback: str
    secret: str = field(default="", repr=False)
    scopes: Sequence[str] = SCOPES
    claims: UserClaims = field(default_factory=UserClaims)
    tls: ssl.SSLContext | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.client:
            raise UsageError("a login needs --oidc-client-id")
        for url in (self.issuer, self.callback):
            check_address(url)


@dataclass(frozen=True, slots=True)
class _Begun:
    """What a login began with: made of the state that the browser keeps, and of a secret of this server.

    Nothing is kept here, so that clients who begin any number of logins end none of another.
    """

    state: str
    nonce: str
    verifier: str
    seconds: int

    @classmethod
    def of(cls, secret: bytes, seed: str, seconds: int) -> _Begun:
        """Return the login of a seed and the time at which it began."""
        body = f"{seed}.{seconds}"
        state, nonce, verifier = (_derive(secret, each, body) for each in ("state", "nonce", "verifier"))
        return cls(f"{body}.{state}", nonce, verifier, seconds)


class OidcLogins:
    """Begins and ends logins; belongs to one event loop. `close` it at the end."""

    def __init__(self, settings: OidcSettings, *, now: Callable[[], float] = time.time) -> None:
        """Take the settings; `now` returns seconds since 1970."""
        self._settings = settings
        self._now = now
        self._session: aiohttp.ClientSession | None = None
        self._described: Mapping[str, str] | None = None
        self._keys: tuple[float, Sequence[JSONObject]] | None = None
        self._secret = secrets.token_bytes(32)
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._turn = asyncio.Lock()
        self._failed: tuple[float, str] | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def begin(self) -> tuple[str, str]:
        """Return the issuer's address for a browser, and the state that the redirect must repeat; raises HostError."""
        described = await self.describe()
        begun = _Begun.of(self._secret, secrets.token_urlsafe(32), int(self._now()))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(begun.verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._settings.client,
            "redirect_uri": self._settings.callback,
            "scope": " ".join(dict.fromkeys(("openid", *self._settings.scopes))),
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = described["authorization_endpoint"]
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", begun.state

    async def end(self, state: str, code: str) -> Identity:
        """Return the user for an authorization code; raises AccessDeniedError, HostError."""
        begun = self._find_begun(state)
        if begun is None:
            raise AccessDeniedError("this login has expired, or was never begun: log in again")
        while len(self._ended) >= _MOST_LOGINS:  # the issuer takes a code only once, too
            self._ended.popitem(last=False)
        self._ended[state] = None
        described = await self.describe()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._settings.callback,
            "client_id": self._settings.client,
            "code_verifier": begun.verifier,
        }
        if self._settings.secret:
            form["client_secret"] = self._settings.secret
        answer = await self._ask(described["token_endpoint"], form)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise AccessDeniedError("the issuer answered without an ID token: is `openid` among the scopes it allows?")
        return self.identity(await self.claims(token, begun.nonce))

    def _find_begun(self, state: str) -> _Begun | None:
        """Return the login with a state that this server made and that has not ended; None for any other."""
        seed, _, rest = state.partition(".")
        moment = rest.partition(".")[0]
        if not (moment.isascii() and moment.isdigit() and len(moment) < 17):
            return None
        begun = _Begun.of(self._secret, seed, int(moment))
        if not hmac.compare_digest(begun.state.encode(), state.encode()) or state in self._ended:
            return None
        return begun if self._now() - begun.seconds <= _LOGIN_SECONDS else None

    async def claims(self, token: str, nonce: str | None) -> JSONObject:
        """Return the claims of a token; for an unknown key the key set is read again, at a limited rate.

        `nonce` is that of the login, None for a token that this server did not request.
        """
        for is_last in (False, True):
            keys, is_new = await self._read_keys(again=is_last)
            try:
                return check_id_token(
                    token,
                    keys,
                    issuer=self._settings.issuer,
                    audience=self._settings.client,
                    nonce=nonce,
                    now=self._now(),
                )
            except AccessDeniedError as error:
                if is_last or is_new or "no key" not in error.message:
                    raise
        raise AssertionError("unreachable")  # pragma: no cover

    def identity(self, claims: JSONObject) -> Identity:
        """Return the user that the claims name; raises AccessDeniedError with names of claims, never a value."""
        return self._settings.claims.identity(claims, self._settings.issuer)

    async def describe(self) -> Mapping[str, str]:
        """Return the endpoints of the issuer; raises HostError for an invalid discovery document."""
        async with self._turn:
            if self._described is None:
                found = await self._read(f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
                if found.get("issuer") != self._settings.issuer:
                    raise HostError(
                        f"the issuer names itself `{str(found.get('issuer'))[:200]}`: give --oidc-issuer the same text"
                    )
                endpoints = {name: str(found.get(name, "")) for name in _ENDPOINTS}
                for name, url in endpoints.items():
                    _check_endpoint(name, url)
                self._described = endpoints
            return self._described

    async def keys(self) -> Sequence[JSONObject]:
        """Return the keys of the issuer; raises HostError."""
        return (await self._read_keys(again=False))[0]

    async def _read_keys(self, *, again: bool) -> tuple[Sequence[JSONObject], bool]:
        described = await self.describe()
        async with self._turn:
            age = None if self._keys is None else self._now() - self._keys[0]
            if self._keys is None or age is None or age > (_RETRY_SECONDS if again else _KEYS_SECONDS):
                found = (await self._read(described["jwks_uri"])).get("keys")
                listed = found[:_MOST_KEYS] if isinstance(found, list) else []
                keys = [each for each in listed if isinstance(each, dict)]
                self._keys = (self._now(), keys)
                return keys, True
            return self._keys[1], False

    async def _read(self, url: str) -> JSONObject:
        """Return a document of the issuer for the login whose turn it is; those that waited share its failure."""
        if self._failed is not None and 0 <= self._now() - self._failed[0] < _SILENT_SECONDS:
            raise HostError(self._failed[1])
        try:
            return await self._ask(url)
        except HostError as error:
            self._failed = (self._now(), error.message)
            raise

    async def _ask(self, url: str, form: Mapping[str, str] | None = None) -> JSONObject:
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=Connector(), timeout=aiohttp.ClientTimeout(total=_SECONDS))
        what = urlsplit(url)._replace(query="").geturl()
        try:
            async with self._session.request(
                "GET" if form is None else "POST",
                url,
                data=form,
                ssl=self._settings.tls or True,
                allow_redirects=False,
                headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            ) as response:
                body = await read_at_most(response.content, _MOST_BYTES)
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise HostError(f"{what} does not answer: {type(error).__name__}") from error
        if len(body) > _MOST_BYTES:
            raise HostError(f"{what} answers with more than {_MOST_BYTES} bytes")
        found = _decode(body)
        if status != 200:
            code = found.get("error") if isinstance(found, dict) else None
            reason = f" ({code[:100]})" if isinstance(code, str) and code.isascii() else ""
            raise HostError(f"{what} answers {status}{reason}")
        if not isinstance(found, dict):
            raise HostError(f"{what} does not answer with a JSON object")
        return found


def _derive(secret: bytes, purpose: str, body: str) -> str:
    """Return 43 characters that only the secret can give."""
    found = hmac.digest(secret, f"{purpose} {body}".encode(), "sha256")
    return base64.urlsafe_b64encode(found).rstrip(b"=").decode()


def check_address(url: str) -> None:
    """Raise UsageError for an address that is not HTTPS, unless it is this machine's own."""
    parts = urlsplit(url)
    is_plain = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if (parts.scheme != "https" and not is_plain) or not parts.hostname or parts.username is not None:
        raise UsageError(f"`{url}` must be an address that begins with https://")


def _check_endpoint(name: str, url: str) -> None:
    try:
        check_address(url)
    except UsageError as error:
        raise HostError(f"the issuer's `{name}` is wrong: {error.message}") from error


def _decode(body: bytes) -> JSON:
    try:
        return decode(body)
    except DocumentError:
        return None
