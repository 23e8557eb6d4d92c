"""The HTTPS client of webhooks: one pool of connections per authority, and failures in the words of Go's client.

Texts are those that people search for.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from kubesandbox.admission.webhooks.failures import certificate_text, connection_text, refusal_text
from kubesandbox.admission.webhooks.hooks import ClientConfig
from kubesandbox.admission.webhooks.services import ServiceError, ServiceMap, resolve_service
from kubesandbox.parsing.requests import go_quote
from kubesandbox.view import ObjectReader
from pyverno.errors import DocumentError, PyvernoError
from pyverno.kube.json import JSON, JSONObject, decode

if TYPE_CHECKING:
    import aiohttp

__all__ = ["CallError", "WebhookCaller", "no_kind"]

_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, */*",
    "User-Agent": "kube-apiserver-admission",
}
_MAX_ANSWER = 16 * 1024 * 1024
_POOL = 100
_SCHEME = "pkg/runtime/scheme.go:111"
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_REVIEW = ("admission.k8s.io", "AdmissionReview")


class CallError(PyvernoError):
    """A webhook could not be called; the text is what follows `failed to call webhook: `."""

    code = "webhook-call"


class WebhookCaller:
    """Sends reviews; keeps connections open between calls until it is closed."""

    def __init__(self, objects: ObjectReader, *, mapped: ServiceMap | None = None) -> None:
        """Take the lookup of services, and the configured addresses of services."""
        self._objects = objects
        self._mapped = dict(mapped or {})
        self._sessions: dict[str, aiohttp.ClientSession] = {}
        self._is_closed = False

    async def close(self) -> None:
        """Close all connections; later calls raise CallError."""
        self._is_closed = True
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    async def call(
        self, client: ClientConfig, body: bytes, *, timeout: int, expected: tuple[str, str] = _REVIEW
    ) -> JSONObject:
        """Send a JSON body and return the JSON object of the answer; raises CallError.

        `timeout` is in seconds, for everything from the connection to the last byte. `expected` is the required group
        and kind of the answer, if it has any.
        """
        shown = f"{client.address}?timeout={timeout}s"
        try:
            async with asyncio.timeout(timeout):
                return await self._exchange(client, shown, body, expected)
        except TimeoutError:
            raise CallError(f'Post "{shown}": context deadline exceeded') from None

    async def _exchange(self, client: ClientConfig, shown: str, body: bytes, expected: tuple[str, str]) -> JSONObject:
        import aiohttp

        parts = urlsplit(shown)
        server_name = None
        try:
            session = self._session(client.ca_bundle)
            target, server_name = self._target(client, parts)
            headers = {**_HEADERS, "Host": parts.netloc}
            # upstream follows redirects, through which a webhook can reach every address of the server (CVE-2020-8561)
            async with session.post(
                target, data=body, headers=headers, server_hostname=server_name, allow_redirects=False
            ) as response:
                return _answer(response, await _read(response), expected)
        except (ServiceError, _BundleError) as error:
            raise CallError(f'Post "{shown}": {error.message}') from None
        except aiohttp.ClientConnectorCertificateError as error:
            why = await certificate_text(error, server_name or parts.hostname or "")
            raise CallError(f'Post "{shown}": {why}') from None
        except (aiohttp.ClientError, OSError) as error:
            raise CallError(f'Post "{shown}": {connection_text(error, parts.hostname or "")}') from None

    def _target(self, client: ClientConfig, parts: SplitResult) -> tuple[str, str | None]:
        """Return the URL to connect to and the name that the certificate must have."""
        if client.url:
            return parts.geturl(), None
        host, port = resolve_service(client, self._objects, self._mapped)
        shown = f"[{host}]" if ":" in host else host
        return parts._replace(netloc=f"{shown}:{port}").geturl(), client.server_name

    def _session(self, bundle: str) -> aiohttp.ClientSession:
        if self._is_closed:
            raise CallError("the server ends")
        found = self._sessions.get(bundle)
        if found is None:
            import aiohttp

            from pyverno.connector import Connector

            connector = Connector(ssl=_context(bundle), limit=0, limit_per_host=_POOL, keepalive_timeout=60)
            # the deadline of a call is counted around it
            found = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
            self._sessions[bundle] = found
        return found


class _BundleError(PyvernoError):
    """A caBundle holds no certificates."""

    code = "ca-bundle"


def _context(bundle: str) -> ssl.SSLContext:
    """Return the TLS settings of an authority in base64; an empty one means the machine's own authorities."""
    if not bundle:
        return ssl.create_default_context()
    try:
        text = base64.b64decode(bundle, validate=True).decode()
        return ssl.create_default_context(cadata=text)
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError, ValueError):
        raise _BundleError("unable to load root certificates: unable to parse bytes as PEM block") from None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    if response.content_length is not None and response.content_length > _MAX_ANSWER:
        raise CallError(f"the answer is larger than {_MAX_ANSWER} bytes")
    data = await response.content.read(_MAX_ANSWER + 1)
    while len(data) <= _MAX_ANSWER and not response.content.at_eof():
        data += await response.content.read(_MAX_ANSWER + 1 - len(data))
    if len(data) > _MAX_ANSWER:
        raise CallError(f"the answer is larger than {_MAX_ANSWER} bytes")
    return data


def _answer(response: aiohttp.ClientResponse, data: bytes, expected: tuple[str, str]) -> JSONObject:
    """Return the object in a response, or raise the error that client-go would report."""
    code = response.status
    if not 200 <= code <= 206:
        raise CallError(refusal_text(code, response.content_type, data))
    if not data:
        kind = response.headers.get("Content-Type", "")
        raise CallError(f"0-length response with status code: {code} and content type: {kind}")
    try:
        found = decode(data)
    except DocumentError as error:
        raise CallError(f"couldn't get version/kind; json parse error: {error.message}") from None
    if not isinstance(found, dict):
        raise CallError(f"couldn't get version/kind; json parse error: json: cannot unmarshal {_shape(found)}")
    version, kind = found.get("apiVersion") or "", found.get("kind") or ""
    if (version or kind) and (not str(version).startswith(f"{expected[0]}/") or kind != expected[1]):
        raise CallError(no_kind(str(kind), str(version)))
    return found


def no_kind(kind: str, version: str) -> str:
    """Return the API server's error for an unknown kind."""
    return f'no kind {go_quote(kind)} is registered for version {go_quote(version)} in scheme "{_SCHEME}"'


def _shape(value: JSON) -> str:
    names: dict[type, str] = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}
    return f"{names.get(type(value), 'null')} into Go value of type {_TYPE_META}"
