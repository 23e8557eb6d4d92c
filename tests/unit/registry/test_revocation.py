"""Revocation lists and OCSP answers over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from aiohttp import web

from pyverno.errors import HostError
from pyverno.registry.revocation import RevocationClient
from pyverno.registry.transport import Transport
from tests.authority.notary import NotarySigner
from tests.authority.revocation import ocsp_answer, revocation_list

T = TypeVar("T")
NOW = int(time.time())
SIGNER = NotarySigner(now=NOW)


class _Server:
    """Serves a revocation list, an OCSP response and invalid content; `now` is the clock of the client."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.now = float(NOW)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests[request.path] += 1
        await asyncio.sleep(0)  # concurrent requests meet
        match request.path:
            case "/list":
                return web.Response(body=revocation_list(SIGNER, seconds=7200))
            case "/ocsp" if request.content_type == "application/ocsp-request" and await request.read() == b"question":
                return web.Response(body=ocsp_answer(SIGNER, SIGNER.leaf, seconds=600))
            case "/moved":
                raise web.HTTPFound("/list")
            case "/endless":
                return web.Response(body=bytes(5 * 1024 * 1024))
        raise web.HTTPNotFound

    def run(self, work: Callable[[RevocationClient, str], Awaitable[T]]) -> T:
        async def run() -> T:
            app = web.Application()
            app.router.add_route("*", "/{tail:.*}", self._answer)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            transport = Transport()
            client = RevocationClient(transport, lambda: self.now)
            try:
                return await work(client, f"http://127.0.0.1:{runner.addresses[0][1]}")
            finally:
                await client.close()
                await transport.close()
                await runner.cleanup()

        return asyncio.run(run())


def test_an_answer_is_read_once_while_it_is_current() -> None:
    """Concurrent reviews share one request; an hour later, or after its expiry, a response is read again."""
    server = _Server()

    async def work(client: RevocationClient, place: str) -> None:
        for moment in (0, 500, 700, 4000):
            server.now = NOW + moment
            await asyncio.gather(*(client.read(f"{place}/list", b"") for _ in range(20)))
            await client.read(f"{place}/ocsp", b"question")

    server.run(work)
    # the responder's answer expires after 540 seconds, and expired answers are not cached
    assert {"/list": 2, "/ocsp": 3} == dict(server.requests)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/missing", "the server answers 404"),
        ("/moved", "the server answers 302"),
        ("/endless", "no connection, or an answer of more than 4194304 bytes"),
    ],
)
def test_a_response_that_is_no_current_list_is_an_error(path: str, problem: str) -> None:
    """Cases are a response for another URL and a response without an expiry."""
    with pytest.raises(HostError) as caught:
        _Server().run(lambda client, place: client.read(f"{place}{path}", b""))
    assert problem == caught.value.message


def test_an_address_that_cannot_be_reached_is_an_error() -> None:
    """An invalid URL is an error as well."""
    problems = []
    for url in ("http://127.0.0.1:1/list", "http://[broken"):
        with pytest.raises(HostError) as caught:
            _Server().run(lambda client, _place, url=url: client.read(url, b""))
        problems.append(caught.value.message)
    assert ["no connection, or an answer of more than 4194304 bytes", "this is no address"] == problems


def test_the_deadline_is_that_of_the_caller() -> None:
    """After the deadline nothing is read."""
    with pytest.raises(HostError, match="no answer before the deadline"):
        _Server().run(lambda client, place: client.read(f"{place}/list", b"", time.monotonic() - 1))
