"""The ambient identity of a process: its environment, mounted tokens, and metadata services."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp

from pyverno.connector import Connector, read_at_most
from pyverno.errors import DocumentError, HostError
from pyverno.kube.json import JSONObject, decode
from pyverno.value import dataclass, field

# trust rows: cloud-metadata, service-answer

__all__ = ["Ambient", "CloudReply", "CloudRequest", "seconds_of", "text_of"]

_MAX_BYTES: Final = 1_048_576
_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class CloudRequest:
    """A request to an endpoint of a cloud; `what` names it in messages, which never hold its headers or body."""

    method: str
    url: str
    what: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class CloudReply(NamedTuple):
    """Status and body of an answer."""

    status: int
    body: bytes


class Ambient:
    """Environment variables, files and HTTP of this process; redirects are not followed."""

    def __init__(
        self,
        environment: Mapping[str, str],
        connector: Callable[[], aiohttp.BaseConnector] = Connector,
        seconds: float = _SECONDS,
    ) -> None:
        """Take the environment, the factory of connections, and the timeout of a response."""
        self.environment = environment
        self._connector = connector
        self._seconds = seconds

    def text(self, name: str) -> str:
        """Return an environment variable, "" when it is not set."""
        return self.environment.get(name, "")

    def read_file(self, path: str, what: str) -> str:
        """Return the text of a mounted token; raises HostError."""
        try:
            return Path(path).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise HostError(f"{what} cannot be read from the file that the environment names") from None

    async def send(self, request: CloudRequest) -> CloudReply:
        """Send a request; raises HostError when the response is late or too long."""
        try:
            async with (
                asyncio.timeout(self._seconds),
                aiohttp.ClientSession(
                    connector=self._connector(), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
                ) as session,
                session.request(
                    request.method,
                    request.url,
                    headers=request.headers,
                    data=request.body or None,
                    allow_redirects=False,
                ) as reply,
            ):
                body = await read_at_most(reply.content, _MAX_BYTES)
                if len(body) > _MAX_BYTES:
                    raise HostError(f"{request.what} answers with more than {_MAX_BYTES} bytes")
                return CloudReply(reply.status, body)
        except TimeoutError:
            raise HostError(f"{request.what} did not answer within {self._seconds:g} seconds") from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise HostError(f"{request.what} cannot be reached") from None

    async def ask(self, request: CloudRequest) -> JSONObject:
        """Return the JSON object of a response with status 200; raises HostError for any other response."""
        reply = await self.send(request)
        if reply.status != 200:
            raise HostError(f"{request.what} answers {reply.status}")
        try:
            found = decode(reply.body)
        except DocumentError:
            found = None
        if not isinstance(found, dict):
            raise HostError(f"{request.what} answers with no JSON object")
        return found


def text_of(body: JSONObject, name: str, what: str) -> str:
    """Return a required text of a response; raises HostError."""
    found = body.get(name)
    if not isinstance(found, str) or not found:
        raise HostError(f"{what} answers without `{name}`")
    return found


def seconds_of(body: JSONObject, name: str, default: float) -> float:
    """Return a number of seconds, which some services write as text."""
    found = body.get(name)
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 8:
        return float(found)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) and found > 0 else default
