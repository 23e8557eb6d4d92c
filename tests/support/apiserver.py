"""A small scripted API server: responses by path, refusals, and watches line by line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from tests.support.servers import listening

__all__ = ["Received", "Script", "serving", "status", "watch"]

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Received:
    """A received request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class Script:
    """The responses of a server, in order for each method and path; the last one repeats."""

    def __init__(self) -> None:
        self.asked: list[Received] = []
        self._answers: dict[str, list[Answer]] = {}

    def on(self, what: str, *answers: Answer | web.Response | dict[str, Any]) -> None:
        """Set the responses of `METHOD /path`."""
        self._answers[what] = [_as_answer(each) for each in answers]

    def count(self, what: str) -> int:
        """Return the number of such requests."""
        return sum(1 for each in self.asked if f"{each.method} {each.path}" == what)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Respond to one request."""
        self.asked.append(
            Received(request.method, request.path, dict(request.query), dict(request.headers), await request.read())
        )
        name = "WATCH" if request.query.get("watch") else request.method
        answers = self._answers.get(f"{name} {request.path}")
        if not answers:
            return status(404, "NotFound")
        return await (answers.pop(0) if len(answers) > 1 else answers[0])(request)


def _as_answer(answer: Answer | web.Response | dict[str, Any]) -> Answer:
    if callable(answer):
        return answer

    async def respond(_: web.BaseRequest) -> web.Response:
        if isinstance(answer, web.Response):
            return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
        return web.json_response(answer)

    return respond


def status(code: int, reason: str, **headers: str) -> web.Response:
    """Return a refusal in the form of an API server."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": reason,
    }
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(status=code, text=json.dumps(body), content_type="application/json", headers=named)


def watch(*events: dict[str, Any] | bytes, ends: bool = False) -> Answer:
    """Return a watch that sends these events (bytes unchanged), then ends, breaks off or stays open without data."""

    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for event in events:
            await response.write(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n")
        if not ends:
            await asyncio.sleep(30)
        return response

    return respond


@asynccontextmanager
async def serving(**access: Any) -> AsyncIterator[tuple[Script, Client]]:
    """Run a server and a client of it."""
    script = Script()
    async with (
        listening(script.handle) as port,
        Client(Access(f"http://127.0.0.1:{port}", **access), qps=0) as client,
    ):
        yield script, client
