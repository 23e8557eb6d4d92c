"""An image registry in one process, for tools that push and pull images, sign them and verify their signatures.

It serves the distribution API with referrers or without, over plain HTTP, and keeps everything in memory. Tests give it
users and faults.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import BasicAuth, web
from aiohttp.abc import AbstractResolver, ResolveResult

from pyverno.connector import Connector

__all__ = ["BUNDLE", "INDEX", "MANIFEST", "Fault", "Layer", "Registry", "digest_of"]

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
_MAX_UPLOAD = 1024**3
_EMPTY = "application/vnd.oci.empty.v1+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"

Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
"""Answers a request in the place of the registry, or leaves it alone."""


@dataclass(frozen=True)
class Layer:
    """One layer of a signature image: its blob, and the annotations of its descriptor."""

    blob: bytes
    annotations: dict[str, str]


def digest_of(body: bytes) -> str:
    """Return the digest of a body."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@dataclass
class Registry:
    """Images and what refers to them; use `start` and `stop`, or as an async context."""

    supports_referrers: bool = True
    users: dict[str, str] = field(default_factory=dict)
    uses_tokens: bool = True
    fault: Fault | None = None
    manifests: dict[tuple[str, str], tuple[str, bytes]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    authorizations: list[tuple[str, str]] = field(default_factory=list)
    host: str = ""
    port: int = 0
    uploads: dict[str, bytes] = field(default_factory=dict)

    async def __aenter__(self) -> Registry:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        await self.stop()

    async def start(self) -> None:
        """Listen on `port` of this machine, a free one for 0; `host` is the address afterwards."""
        app = web.Application(client_max_size=_MAX_UPLOAD)
        app.router.add_get("/token", self._token)
        app.router.add_get("/v2/{tail:.*}", self._get)
        app.router.add_post("/v2/{tail:.*}", self._write)
        app.router.add_put("/v2/{tail:.*}", self._write)
        app.router.add_patch("/v2/{tail:.*}", self._write)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        port = self._runner.addresses[0][1]
        self.host = f"127.0.0.1:{port}"

    async def stop(self) -> None:
        """Close all connections."""
        await self._runner.cleanup()

    def connector(self, tls: ssl.SSLContext | bool = True) -> Connector:
        """Return what connects to this registry, whatever the host; call it on a loop."""
        return Connector(resolver=_ToOne(int(self.host.rpartition(":")[2])), use_dns_cache=False, ssl=tls)

    # -------------------------------------------------------------------------------------------------------- content

    def push(self, repository: str, tag: str, config: Any = None, layers: Sequence[bytes] = (b"layer",)) -> str:
        """Store an image and return its digest."""
        settings = json.dumps(config if config is not None else {"architecture": "amd64", "os": "linux"}).encode()
        body = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.describe("application/vnd.oci.image.config.v1+json", settings),
            "layers": [self.describe("application/vnd.oci.image.layer.v1.tar", each) for each in layers],
        }
        return self.put_manifest(repository, tag, MANIFEST, body)

    def push_layers(self, repository: str, tag: str, layers: Sequence[Layer], media_type: str) -> str:
        """Store an image whose layers are signatures (`.sig`) or attestations (`.att`)."""
        body = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.describe("application/vnd.oci.image.config.v1+json", b"{}"),
            "layers": [{**self.describe(media_type, each.blob), "annotations": each.annotations} for each in layers],
        }
        return self.put_manifest(repository, tag, MANIFEST, body)

    def attach(
        self,
        repository: str,
        subject: str,
        blob: bytes,
        artifact_type: str = BUNDLE,
        *,
        annotations: dict[str, str] | None = None,
        media_type: str = "",
    ) -> str:
        """Store a blob that refers to an image: a Sigstore bundle, a Notary signature, anything."""
        body = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": artifact_type,
            "config": self.describe(_EMPTY, b"{}"),
            "layers": [self.describe(media_type or artifact_type, blob)],
            "subject": {"mediaType": MANIFEST, "digest": subject, "size": 1},
            "annotations": annotations or {},
        }
        digest = self.put_manifest(repository, "", MANIFEST, body)
        if not self.supports_referrers:
            self._write_fallback(repository, subject)
        return digest

    def put_manifest(self, repository: str, tag: str, media_type: str, body: Any) -> str:
        """Store a document under its digest, and under a tag when there is one."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        digest = digest_of(raw)
        for reference in (digest, tag) if tag else (digest,):
            self.manifests[repository, reference] = (media_type, raw)
        return digest

    def describe(self, media_type: str, blob: bytes) -> dict[str, Any]:
        """Store a blob and return its descriptor."""
        digest = digest_of(blob)
        self.blobs[digest] = blob
        return {"mediaType": media_type, "digest": digest, "size": len(blob)}

    def _referring(self, repository: str, subject: str) -> list[dict[str, Any]]:
        found = []
        for (owner, reference), (media_type, raw) in self.manifests.items():
            body = json.loads(raw)
            if owner != repository or ":" not in reference or body.get("subject", {}).get("digest") != subject:
                continue
            artifact_type = body.get("artifactType") or body["config"]["mediaType"]
            found.append(
                {
                    "mediaType": media_type,
                    "digest": reference,
                    "size": len(raw),
                    "artifactType": artifact_type,
                    "annotations": body.get("annotations", {}),
                }
            )
        return found

    def _write_fallback(self, repository: str, subject: str) -> None:
        listed = [
            {key: value for key, value in each.items() if key != "annotations"}
            for each in self._referring(repository, subject)
        ]
        body = {"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}
        self.put_manifest(repository, subject.replace(":", "-"), INDEX, body)

    # ------------------------------------------------------------------------------------------------------- answers

    async def _token(self, request: web.Request) -> web.StreamResponse:
        self.requests["token"] += 1
        given = request.headers.get("Authorization", "")
        self.authorizations.append((request.path, given))
        if not self._knows(given):
            return web.json_response({"errors": [{"code": "UNAUTHORIZED"}]}, status=401)
        return web.json_response({"token": "good", "expires_in": 300})

    def _knows(self, header: str) -> bool:
        if not header.startswith("Basic "):
            return False
        given = BasicAuth.decode(header)
        return bool(self.users.get(given.login) == given.password)

    def _refused(self, request: web.Request, repository: str, actions: str) -> web.StreamResponse | None:
        given = request.headers.get("Authorization", "")
        self.authorizations.append((request.path, given))
        if not self.users or (given == "Bearer good" if self.uses_tokens else self._knows(given)):
            return None
        scope = f"repository:{repository}:{actions}"
        realm = f'Bearer realm="http://{self.host}/token",service="test",scope="{scope}"'
        challenge = realm if self.uses_tokens else 'Basic realm="test"'
        return web.json_response({}, status=401, headers={"WWW-Authenticate": challenge})

    async def _write(self, request: web.Request) -> web.StreamResponse:
        tail = request.match_info["tail"]
        repository = tail.partition("/manifests/" if "/manifests/" in tail else "/blobs/uploads/")[0]
        refused = self._refused(request, repository, "pull,push")
        if refused is not None:
            return refused
        body = await request.read()
        if "/manifests/" in tail:
            headers = _subject_header(body)
            if headers is None:
                return web.json_response({"errors": [{"code": "MANIFEST_INVALID"}]}, status=400)
            stored = self.put_manifest(repository, tail.rpartition("/")[2], request.content_type, body)
            if not self.supports_referrers:
                headers = {}  # the header would keep a client from writing the fallback tag
            return web.Response(status=201, headers={"Docker-Content-Digest": stored, **headers})
        digest = request.query.get("digest", "")
        if not digest:  # an upload begins or continues
            name = secrets.token_hex(8) if request.method == "POST" else tail.rpartition("/")[2]
            self.uploads[name] = self.uploads.get(name, b"") + body
            found = {"Location": f"/v2/{repository}/blobs/uploads/{name}?state=x"}
            return web.Response(status=202, headers={**found, "Range": f"0-{max(len(self.uploads[name]) - 1, 0)}"})
        body = self.uploads.pop(tail.rpartition("/")[2], b"") + body
        if digest_of(body) != digest:
            return web.json_response({"errors": [{"code": "DIGEST_INVALID"}]}, status=400)
        self.blobs[digest] = body
        return web.Response(status=201, headers={"Docker-Content-Digest": digest})

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if not request.match_info["tail"]:
            return self._refused(request, "", "pull") or web.json_response({})
        repository, _, rest = request.match_info["tail"].rpartition("/")
        repository, _, kind = repository.rpartition("/")
        self.requests[kind] += 1
        if self.fault is not None:
            answer = await self.fault(request)
            if answer is not None:
                return answer
        refused = self._refused(request, repository, "pull")
        if refused is not None:
            return refused
        if kind == "manifests" and (repository, rest) in self.manifests:
            media_type, raw = self.manifests[repository, rest]
            headers = {"Docker-Content-Digest": digest_of(raw)}
            return web.Response(body=raw, content_type=media_type, headers=headers)
        if kind == "blobs" and rest in self.blobs:
            return web.Response(body=self.blobs[rest], content_type="application/octet-stream")
        if kind == "referrers" and self.supports_referrers:
            body = {"schemaVersion": 2, "mediaType": INDEX, "manifests": self._referring(repository, rest)}
            return web.Response(body=json.dumps(body).encode(), content_type=INDEX)
        return web.json_response({"errors": [{"code": "MANIFEST_UNKNOWN"}]}, status=404)


def _subject_header(body: bytes) -> dict[str, str] | None:
    """Return the `OCI-Subject` header of a registry with referrers; None for a body that is no manifest."""
    try:
        found = json.loads(body)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    subject = found.get("subject")
    return {"OCI-Subject": str(subject.get("digest"))} if isinstance(subject, dict) else {}


@dataclass
class _ToOne(AbstractResolver):
    """Every host is at one port of this machine."""

    port: int

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the address, whatever the host."""
        found = ResolveResult(
            hostname=host,
            host="127.0.0.1",
            port=self.port,
            family=socket.AF_INET,
            proto=0,
            flags=socket.AI_NUMERICHOST,
        )
        return [found]

    async def close(self) -> None:
        """Do nothing."""
