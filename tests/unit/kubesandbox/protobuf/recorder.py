"""A server that answers kubectl with as little as it needs, and keeps what it was sent.

Everything that is created is answered with what was sent, read as JSON.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import ClassVar

import orjson

from kubesandbox.discovery import groups as discovery
from kubesandbox.protobuf import MEDIA_TYPE, decode
from kubesandbox.types.resources import builtin_table
from pyverno.kube.json import JSON
from pyverno.kube.status import StatusError, path_not_found

TABLE = builtin_table("1.35")


class _Answers(BaseHTTPRequestHandler):
    """One connection."""

    bodies: ClassVar[list[tuple[str, str, bytes]]] = []

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        parts = path.strip("/").split("/")
        found: JSON = None
        if path in ("/api", "/apis"):
            found = discovery.aggregated(TABLE, core=path == "/api")
            self._answer(200, found, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
            return
        if path == "/version":
            found = discovery.version_info("1.35")
        elif parts[0] == "api" and len(parts) == 2:
            found = discovery.resource_list(TABLE, "", parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            found = discovery.resource_list(TABLE, parts[1], parts[2])
        elif parts[-2:-1] == ["deployments"]:
            found = DEPLOYMENT
        elif parts[-2:-1] == ["services"] or parts[-2:-1] == ["pods"]:
            found = {**DEPLOYMENT, "kind": "Pod", "apiVersion": "v1"}
        if found is None:
            self._answer(404, path_not_found().to_json())
        else:
            self._answer(200, found)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.headers.get("Content-Type", "")
        self.bodies.append((self.path, kind, data))
        try:
            self._answer(201, decode(data) if kind == MEDIA_TYPE else orjson.loads(data))
        except StatusError as error:
            self._answer(error.status, error.to_json())

    do_PUT = do_DELETE = do_POST  # noqa: N815

    def _answer(self, status: int, body: JSON, media_type: str = "application/json") -> None:
        data = orjson.dumps(body)
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


DEPLOYMENT: JSON = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]},
        },
    },
}


class Recorder:
    """The server while it runs; `bodies` are path, content type and body of what was sent."""

    def __enter__(self) -> Recorder:
        answers = type("Answers", (_Answers,), {"bodies": []})
        self.bodies: list[tuple[str, str, bytes]] = answers.bodies
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), answers)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The address of the recorder."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"
