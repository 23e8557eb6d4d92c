"""A service on this machine with configurable responses that records its requests."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from aiohttp import web

from tests.support.servers import listening
from tests.support.webhookserver import Certificate

__all__ = ["Asked", "Service", "names"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A received request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Service:
    """Listens on 127.0.0.1 while it is entered; `answers` are by path, the default is `{"ok": true}`."""

    answers: dict[str, Callable[[], web.StreamResponse]] = field(default_factory=dict)
    certificate: Certificate | None = None
    asked: list[Asked] = field(default_factory=list)
    port: int = 0

    async def __aenter__(self) -> Self:
        self._serving = listening(self._answer, _context(self.certificate))
        self.port = await self._serving.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._serving.__aexit__(kind, error, trace)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """Return the URL of a path, with any host name."""
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}{path}"

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        self.asked.append(Asked(request.method, str(request.rel_url), dict(request.headers), body))
        made = self.answers.get(request.path)
        return web.json_response({"ok": True}) if made is None else made()


def _context(certificate: Certificate | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate.key + certificate.certificate)
        file.flush()
        context.load_cert_chain(file.name)
    return context


def names(**known: list[str]) -> Callable[[str, int], Awaitable[list[str]]]:
    """Return a resolver for some names, written with `_` for dots."""

    async def lookup(host: str, port: int) -> list[str]:
        try:
            return known[host.replace(".", "_")]
        except KeyError:
            raise OSError("no such host") from None

    return lookup
