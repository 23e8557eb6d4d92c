"""Reads registries: manifests by tag or digest, blobs, and referrers of an image.

Every body is hashed and compared with the requested digest before anything reads it. Bodies of a digest are cached,
tags never: `resolve` calls the registry each time.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Sequence
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote

from pyverno.errors import HostError, NotFoundError
from pyverno.kube.imageref.reference import ImageReference
from pyverno.kube.json import JSON, JSONObject
from pyverno.lazyregex import regex
from pyverno.registry.cache import SingleFlight, SizedCache
from pyverno.registry.credentials import Credential
from pyverno.registry.documents import read_object
from pyverno.registry.revocation import RevocationClient
from pyverno.registry.transport import RegistryAnswer, RegistryCall, Transport
from pyverno.value import dataclass, field

# trust rows: registry-answer

__all__ = ["Descriptor", "Manifest", "ReferrerList", "RegistryClient", "Repository"]

MAX_MANIFEST: Final = 4 * 1024 * 1024
MAX_BLOB: Final = 10 * 1024 * 1024
_MAX_REFERRERS: Final = 50
_MAX_PAGES: Final = 10
_MAX_LIST: Final = 4 * 1024 * 1024
_MAX_ITEMS: Final = 1000
_CACHE_BYTES: Final = 64 * 1024 * 1024
_ENTRY_BYTES: Final = 512
_INDEX: Final = "application/vnd.oci.image.index.v1+json"
_LISTS: Final = (_INDEX, "application/vnd.docker.distribution.manifest.list.v2+json")
_IMAGES: Final = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_MANIFESTS: Final = ", ".join((*_IMAGES, *_LISTS))
T = TypeVar("T")

_DIGEST: Final = regex("sha256:[0-9a-f]{64}")
_NEXT: Final = regex(r'<([^<>]{1,2048})>\s*;[^<>]*\brel="?next"?')


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository of a registry, the credentials to try there, in order, and whether plain HTTP is allowed."""

    registry: str
    path: str
    credentials: tuple[Credential, ...] = ()
    allows_http: bool = False

    @classmethod
    def of(
        cls, reference: ImageReference, credentials: Sequence[Credential] = (), *, allows_http: bool = False
    ) -> Repository:
        """Return the repository of an image; official images of Docker Hub live below `library`."""
        return cls(reference.registry or reference.full_registry, reference.full_path, tuple(credentials), allows_http)

    def __str__(self) -> str:
        return f"{self.registry}/{self.path}"


class Manifest(NamedTuple):
    """A manifest or index: its digest as hashed here, its media type, its bytes."""

    digest: str
    media_type: str
    body: bytes

    @property
    def is_index(self) -> bool:
        """Whether it lists manifests of platforms."""
        return self.media_type in _LISTS

    def read(self) -> JSONObject:
        """Return the document; raises HostError for invalid JSON, and for one that is both an image and an index.

        Such a document has one digest, so that its media type, which is not signed, would choose what it is
        (CVE-2021-41190).
        """
        found = read_object(self.body, f"the manifest {self.digest}")
        foreign, types = (("config", "layers"), _IMAGES) if self.is_index else (("manifests",), _LISTS)
        if any(found.get(name) for name in foreign) or found.get("mediaType") in types:
            kind = self.media_type[:100] or "no media type"
            raise HostError(f"the manifest {self.digest} is ambiguous: its content does not fit `{kind}`")
        return found


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A layer or manifest as another document names it."""

    digest: str
    media_type: str
    size: int
    artifact_type: str = ""
    annotations: dict[str, str] = field(default_factory=dict)


class ReferrerList(NamedTuple):
    """The artifacts that refer to an image, and the bytes of the list that names them."""

    listed: tuple[Descriptor, ...]
    size: int


class RegistryClient:
    """Reads registries; belongs to one event loop."""

    def __init__(self, transport: Transport, cache_bytes: int = _CACHE_BYTES) -> None:
        """Take what sends requests; `cache_bytes` bounds the bodies that are kept."""
        self._transport = transport
        self._bodies: SizedCache[tuple[Repository, str], Manifest] = SizedCache(cache_bytes)
        self._flights: SingleFlight[tuple[Repository, str], Manifest] = SingleFlight()
        self._lists: SingleFlight[tuple[Repository, str], ReferrerList] = SingleFlight()
        self.revocations = RevocationClient(transport)

    async def close(self) -> None:
        """Cancel pending requests and close all connections."""
        await self._flights.close()
        await self._lists.close()
        await self.revocations.close()
        await self._transport.close()

    async def manifest(self, repository: Repository, reference: str, deadline: float | None = None) -> Manifest:
        """Return the manifest of a tag or digest; raises NotFoundError for a missing one, HostError otherwise."""
        kept = self._bodies.get((repository, reference))
        if kept is not None:
            return kept
        asking = self._flights.do((repository, reference), lambda: self._fetch_manifest(repository, reference))
        return await self._within(deadline, repository, asking)

    async def _within(self, deadline: float | None, repository: Repository, asking: Awaitable[T]) -> T:
        """Wait for a request that others may wait for as well: the deadline is that of the caller alone."""
        try:
            async with asyncio.timeout(None if deadline is None else max(deadline - time.monotonic(), 0.0)):
                return await asking
        except TimeoutError:
            raise HostError(f"the registry `{repository.registry}` did not answer before the deadline") from None

    async def _fetch_manifest(self, repository: Repository, reference: str) -> Manifest:
        path = f"/v2/{quote(repository.path)}/manifests/{quote(reference, safe=':')}"
        answer = await self._get(repository, path, MAX_MANIFEST, _MANIFESTS)
        found = _digest(answer.body)
        if _DIGEST.fullmatch(reference) and found != reference:
            raise HostError(f"the registry `{repository.registry}` answers with another manifest than {reference}")
        said = answer.headers.get("docker-content-digest")
        if said is not None and said.startswith("sha256:") and said != found:
            raise HostError(f"the registry `{repository.registry}` names another digest than its answer has")
        kind = answer.headers.get("content-type", "").partition(";")[0].strip()
        return self._keep((repository, found), Manifest(found, kind, answer.body))

    async def blob(
        self, repository: Repository, digest: str, max_bytes: int = MAX_BLOB, deadline: float | None = None
    ) -> bytes:
        """Return a blob; raises NotFoundError, and HostError when its bytes have another digest."""
        if not _DIGEST.fullmatch(digest):
            raise HostError(f"`{digest[:80]}` is no digest of the kind sha256")
        key = (repository, f"blob {digest}")
        kept = self._bodies.get(key)
        if kept is not None:
            return kept.body

        async def fetch() -> Manifest:
            path = f"/v2/{quote(repository.path)}/blobs/{digest}"
            answer = await self._get(repository, path, max_bytes)
            if _digest(answer.body) != digest:
                raise HostError(f"the registry `{repository.registry}` answers with another blob than {digest}")
            return self._keep(key, Manifest(digest, "", answer.body))

        asking = self._flights.do(key, fetch)
        return (await self._within(deadline, repository, asking)).body

    async def referrers(
        self, repository: Repository, digest: str, artifact_type: str = "", deadline: float | None = None
    ) -> ReferrerList:
        """Return what refers to an image, by the API or the fallback tag; raises HostError for too many."""
        key = (repository, f"{digest} {artifact_type}")
        asking = self._lists.do(key, lambda: self._fetch_referrers(repository, digest, artifact_type))
        return await self._within(deadline, repository, asking)

    async def _fetch_referrers(self, repository: Repository, digest: str, artifact_type: str) -> ReferrerList:
        found: list[Descriptor] = []
        size = 0
        query = f"?artifactType={quote(artifact_type, safe='')}" if artifact_type else ""
        path = f"/v2/{quote(repository.path)}/referrers/{digest}{query}"
        for _ in range(_MAX_PAGES):
            try:
                answer = await self._get(repository, path, MAX_MANIFEST, _INDEX)
            except NotFoundError:
                return _of_type(*await self._fallback(repository, digest), artifact_type)
            size += len(answer.body)
            if size > _MAX_LIST:
                raise HostError(f"the list of referrers of {digest} has more than {_MAX_LIST} bytes")
            found.extend(_descriptors(read_object(answer.body, "the list of referrers"), "manifests"))
            following = _NEXT.search(answer.headers.get("link", ""))
            if following is None:
                return _of_type(found, size, artifact_type)
            path = following[1]
            if not path.startswith("/v2/"):
                raise HostError(f"the registry `{repository.registry}` continues its list elsewhere")
        raise HostError(f"the list of referrers of {digest} has more than {_MAX_PAGES} pages")

    async def _fallback(self, repository: Repository, digest: str) -> tuple[Sequence[Descriptor], int]:
        try:
            found = await self.manifest(repository, digest.replace(":", "-", 1))
        except NotFoundError:
            return (), 0
        return _descriptors(found.read(), "manifests"), len(found.body)

    async def _get(self, repository: Repository, path: str, max_bytes: int, accept: str = "") -> RegistryAnswer:
        call = RegistryCall(
            repository.registry,
            repository.path,
            path,
            repository.credentials,
            accept,
            max_bytes,
            repository.allows_http,
        )
        answer = await self._transport.send(call)
        if answer.status == 404:
            name = path.partition("?")[0].rpartition("/")[2]
            raise NotFoundError(f"the registry has no `{name}` in `{repository}`")
        if answer.status != 200:
            raise HostError(f"the registry `{repository.registry}` answers {answer.status} for `{repository.path}`")
        return answer

    def _keep(self, key: tuple[Repository, str], found: Manifest) -> Manifest:
        self._bodies.put(key, found, len(found.body) + _ENTRY_BYTES)
        return found


def layers_of(manifest: JSONObject) -> Sequence[Descriptor]:
    """Return the layers of a manifest; raises HostError for more than 1000, or one that cannot be read."""
    return _descriptors(manifest, "layers")


def _of_type(found: Sequence[Descriptor], size: int, artifact_type: str) -> ReferrerList:
    kept = tuple(each for each in found if not artifact_type or each.artifact_type == artifact_type)
    if len(kept) > _MAX_REFERRERS:
        raise HostError(f"the image has more than {_MAX_REFERRERS} referrers of this type")
    return ReferrerList(kept, size)


def _descriptors(body: JSONObject, key: str) -> Sequence[Descriptor]:
    listed = body.get(key) or []
    if not isinstance(listed, list) or len(listed) > _MAX_ITEMS:
        raise HostError(f"`{key}` of a manifest is no list of at most {_MAX_ITEMS}")
    return [_descriptor(each) for each in listed]


def _descriptor(body: JSON) -> Descriptor:
    if not isinstance(body, dict):
        raise HostError("a manifest names something that is no object")
    digest, kind, size = body.get("digest"), body.get("mediaType"), body.get("size")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest) or not isinstance(kind, str):
        raise HostError("a manifest names something without a digest of the kind sha256")
    annotations = body.get("annotations")
    texts = annotations.items() if isinstance(annotations, dict) else ()
    artifact_type = body.get("artifactType")
    return Descriptor(
        digest,
        kind,
        size if isinstance(size, int) else 0,
        artifact_type if isinstance(artifact_type, str) else "",
        {name: value for name, value in texts if isinstance(value, str)},
    )


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"
