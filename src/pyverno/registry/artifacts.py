"""Policies as OCI artifacts, in the form of Kyverno's command line: a layer of YAML for each policy.

What is read back is text that nothing has compiled yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from pyverno.errors import HostError, NotFoundError
from pyverno.kube.imageref.reference import ImageReference
from pyverno.kube.json import JSONObject, encode
from pyverno.registry.client import RegistryClient, Repository, layers_of
from pyverno.registry.transport import RegistryAnswer, RegistryCall, Transport
from pyverno.value import dataclass

__all__ = ["PolicyLayer", "pull_policies", "push_policies"]

_CONFIG: Final = "application/vnd.cncf.kyverno.config.v1+json"
_LAYER: Final = "application/vnd.cncf.kyverno.policy.layer.v1+yaml"
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_MAX_LAYERS: Final = 1000
_MAX_LAYER: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PolicyLayer:
    """One policy: its document, and what identifies it."""

    kind: str
    name: str
    api_version: str
    body: bytes

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of its layer."""
        return {
            "io.kyverno.image.kind": self.kind,
            "io.kyverno.image.name": self.name,
            "io.kyverno.image.apiVersion": self.api_version,
        }


async def push_policies(
    transport: Transport, repository: Repository, reference: ImageReference, policies: Sequence[PolicyLayer]
) -> str:
    """Write an artifact and return its digest; raises HostError."""
    writer = _Writer(transport, repository)
    layers = [{**await writer.blob(each.body, _LAYER), "annotations": dict(each.annotations)} for each in policies]
    body: JSONObject = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": await writer.blob(b"{}", _CONFIG),
        "layers": layers,
    }
    return await writer.manifest(reference.tag, encode(body).encode())


async def pull_policies(client: RegistryClient, repository: Repository, reference: ImageReference) -> Sequence[bytes]:
    """Return the documents of an artifact; raises HostError, also for an image without policies."""
    try:
        manifest = await client.manifest(repository, reference.digest or reference.tag)
    except NotFoundError:
        raise HostError(f"there is no artifact `{reference}`") from None
    layers = [each for each in layers_of(manifest.read()) if each.media_type == _LAYER]
    if not layers:
        raise HostError(f"`{reference}` holds no policies")
    if len(layers) > _MAX_LAYERS:
        raise HostError(f"`{reference}` holds more than {_MAX_LAYERS} policies")
    return [await client.blob(repository, each.digest, _MAX_LAYER) for each in layers]


class _Writer:
    """Uploads blobs and manifests to one repository."""

    def __init__(self, transport: Transport, repository: Repository) -> None:
        self._transport = transport
        self._repository = repository

    async def blob(self, body: bytes, media_type: str) -> JSONObject:
        """Upload a blob and return its descriptor."""
        digest = _digest(body)
        started = await self._send("POST", f"/v2/{self._repository.path}/blobs/uploads/", b"", (202,))
        place = self._upload_place(started.headers.get("location", ""))
        path = f"{place}{'&' if '?' in place else '?'}digest={digest}"
        await self._send("PUT", path, body, (201,), "application/octet-stream")
        return {"mediaType": media_type, "digest": digest, "size": len(body)}

    async def manifest(self, tag: str, body: bytes) -> str:
        """Upload a manifest under a tag and return its digest."""
        await self._send("PUT", f"/v2/{self._repository.path}/manifests/{tag}", body, (201,), _MANIFEST)
        return _digest(body)

    async def _send(
        self, method: str, path: str, body: bytes, expected: Sequence[int], content_type: str = ""
    ) -> RegistryAnswer:
        repository = self._repository
        call = RegistryCall(
            repository.registry,
            repository.path,
            path,
            repository.credentials,
            allows_http=repository.allows_http,
            method=method,
            body=body,
            content_type=content_type,
            actions="pull,push",
        )
        answer = await self._transport.send(call)
        if answer.status not in expected:
            raise HostError(f"the registry `{repository.registry}` answers {answer.status} to the upload of a policy")
        return answer

    def _upload_place(self, location: str) -> str:
        """Return path and query where a blob goes; raises HostError for a place on another host."""
        parts = urlsplit(location)
        if (parts.netloc and parts.netloc != self._repository.registry) or not parts.path.startswith("/"):
            raise HostError(f"the registry `{self._repository.registry}` sends uploads elsewhere")
        return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"
