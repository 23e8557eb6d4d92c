"""A small HTTPS client for a sandbox, as an administrator or another user."""

from __future__ import annotations

import http.client
import json
import ssl
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson


@dataclass(frozen=True)
class Answer:
    """A response of the sandbox."""

    status: int
    headers: dict[str, str]
    data: bytes
    warnings: tuple[str, ...] = ()

    @property
    def body(self) -> Any:
        """The answer as JSON."""
        return orjson.loads(self.data)

    @property
    def message(self) -> str:
        """The text of a Status."""
        return str(self.body["message"])


class Client:
    """One connection, which is made anew when it is lost."""

    def __init__(self, kubeconfig: str, *, token: str = "", is_anonymous: bool = False) -> None:
        document = json.loads(Path(kubeconfig).read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        self.host = urlsplit(cluster["server"]).netloc
        self.token = token
        certificate = b64decode(cluster["certificate-authority-data"]).decode()
        self.context = ssl.create_default_context(cadata=certificate)
        if not token and not is_anonymous:
            with tempfile.NamedTemporaryFile() as file:
                file.write(b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"]))
                file.flush()
                self.context.load_cert_chain(file.name)
        self.connection = self._connected()

    def _connected(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.host, context=self.context, timeout=300)

    def close(self) -> None:
        """Let the connection go."""
        self.connection.close()

    def send(
        self, method: str, path: str, body: object = None, kind: str = "application/json", **headers: str
    ) -> Answer:
        """Send one request and read its answer; a body that is no bytes is written as JSON."""
        data = body if isinstance(body, bytes | None) else orjson.dumps(body)
        sent = {"Content-Type": kind, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body=data, headers=sent)
        # where the server ends the connection the answer holds its socket, also when it cannot be read to its end
        with self.connection.getresponse() as response:
            found = response.getheaders()
            return Answer(
                response.status,
                dict(found),
                response.read(),
                tuple(value for name, value in found if name.lower() == "warning"),
            )

    def get(self, path: str, **headers: str) -> Answer:
        """Read."""
        return self.send("GET", path, **headers)

    def post(self, path: str, body: object, **headers: str) -> Answer:
        """Create."""
        return self.send("POST", path, body, **headers)

    def merge(self, path: str, body: object) -> Answer:
        """Send a merge patch."""
        return self.send("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str, body: object = None) -> Answer:
        """Delete."""
        return self.send("DELETE", path, body)

    def watch(self, path: str, **headers: str) -> Iterator[Any]:
        """Yield the events of a watch; closing the iterator closes the connection."""
        with closing(self._connected()) as connection:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            with connection.getresponse() as response:
                while line := response.readline():
                    yield orjson.loads(line)
