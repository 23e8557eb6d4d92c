"""`python -m tests.bench.sink`: a stand-in for an API server that stores nothing, for controllers that write to it.

A POST is answered with the object and a uid, as an API server does; a list is empty; a watch brings the metadata of
every object that is created, and that it is deleted at once. Prints its port and certificate as JSON, and ends with its
input. A line is answered with the number of objects that were created.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Final

import orjson
from aiohttp import web

from pyverno.controllers.runtime.process import loop_factory
from pyverno.kube.json import JSONObject
from pyverno.webhook.tls import ServerTls
from tests.support.webhookserver import make_certificate

__all__: list[str] = []

_LIST: Final = b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}'
_KIND: Final = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}


class _Sink:
    def __init__(self) -> None:
        self.created = 0
        self._watches: dict[str, list[web.StreamResponse]] = {}

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        if request.method == "GET":
            return await self._watch(request) if "watch" in request.query else _json(_LIST)
        body: JSONObject = orjson.loads(await request.read())
        if request.method != "POST":
            return _json(orjson.dumps(body))
        self.created += 1
        name = body["metadata"].get("name") or f"{body['metadata']['generateName']}{self.created}"
        body["metadata"] |= {"name": name, "uid": f"u-{self.created}", "resourceVersion": str(self.created + 1)}
        await self._notify(request.path.rpartition("/")[2], body["metadata"])
        return _json(orjson.dumps(body), 201)

    async def _notify(self, resource: str, metadata: JSONObject) -> None:
        """Notify the watches of a resource; one whose client is gone is dropped, as a write to it would be an error."""
        watches = self._watches.get(resource, [])
        for watch in tuple(watches):
            try:
                for kind in ("ADDED", "DELETED"):
                    event = {"type": kind, "object": {**_KIND, "metadata": metadata}}
                    await watch.write(orjson.dumps(event) + b"\n")
            except ConnectionError:
                watches.remove(watch)

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self._watches.setdefault(request.path.rpartition("/")[2], []).append(response)
        await asyncio.Event().wait()
        return response


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


async def _run() -> None:
    certificate = make_certificate()
    tls, sink = ServerTls(certificate.certificate, certificate.key), _Sink()
    runner = web.ServerRunner(web.Server(sink.respond, access_log=None), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls.listening).start()
    port: int = runner.addresses[0][1]
    print(json.dumps({"port": port, "certificate": certificate.certificate.decode()}), flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        print(json.dumps({"created": sink.created}), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as loop_runner:
        loop_runner.run(_run())
