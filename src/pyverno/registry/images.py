"""Images and their signatures, read from registries for rules.

`RegistryImages` belongs to the event loop of its client; `BlockingImages` is the form that a Host shows to
rules. This module must never verify a signature.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from pyverno.engine.broker import CONFINED
from pyverno.engine.imagesource import ImageAccess, ResolvedImage, SignatureQuery
from pyverno.engine.imageverification.passes import PassCache
from pyverno.errors import HostError, HostUnavailableError, NotFoundError, ValueSyntaxError
from pyverno.images.verification.stored import SignatureForm, StoredArtifact, StoredSignature
from pyverno.images.verification.trust import TrustRoot
from pyverno.kube.imageref.hosts import is_docker_hub
from pyverno.kube.imageref.reference import ImageReference, parse_reference
from pyverno.kube.json import JSON, JSONObject
from pyverno.registry.client import (
    RegistryClient,
    Repository,
)
from pyverno.registry.credentials import CredentialSource, credentials_for, read_pull_secret
from pyverno.registry.documents import MAX_CONFIGURATION, read_document
from pyverno.registry.parallel import read_each
from pyverno.registry.providers.chain import Providers, providers_of
from pyverno.registry.storedreading import Allowance, StoredReading

__all__ = ["BlockingImages", "Credentials", "RegistryImages", "SecretCredentials"]

T = TypeVar("T")


class Credentials(Protocol):
    """Finds the credentials that an access means."""

    async def sources(self, access: ImageAccess, registry: str) -> Sequence[CredentialSource]:
        """Return configurations in the order of their use; raises HostError for an unreadable one.

        `registry` is the host that the credentials are for.
        """
        ...


class SecretCredentials:
    """Credentials from Secrets: those that a policy names, then those of the resource, else the default ones.

    Policies of a namespace do not use the default ones: they would read what only the installation may pull. A resource
    may name Secrets of its namespace only: a name with a slash is refused, because it would read another namespace.
    """

    def __init__(
        self,
        read_secret: Callable[[str, str], Awaitable[JSONObject]],
        own_namespace: str,
        defaults: Callable[[], Awaitable[Sequence[CredentialSource]]] | None = None,
        providers: Providers | None = None,
        default_providers: Sequence[str] = (),
        *,
        lends: bool = False,
    ) -> None:
        """Take a function that reads a Secret by namespace and name, and the default credentials.

        `providers` are the logins that policies may name; `default_providers` are those of images without credentials.
        Policies of a namespace use default credentials only if the installation `lends` them.
        """
        self._lends = lends
        self._read_secret = read_secret
        self._own_namespace = own_namespace
        self._defaults = defaults
        self._providers = providers or Providers({})
        self._default_providers = tuple(default_providers)

    async def sources(self, access: ImageAccess, registry: str) -> Sequence[CredentialSource]:
        """Return the credentials of the policy, then those of the resource; without either, the default ones."""
        found = [await self._secret(namespace, name) for namespace, name in self._name_secrets(access)]
        found.extend(await self._providers.sources(providers_of(access), registry))
        named = {key for key in access.credentials or () if key != CONFINED}
        is_lent = self._lends or not (access.credentials or {}).get(CONFINED)  # guard: default credentials are not lent
        if is_lent and not named and not access.pull_secrets and self._defaults is not None:
            found.extend(await self._defaults())
            found.extend(await self._providers.sources(self._default_providers, registry))
        return found

    def _name_secrets(self, access: ImageAccess) -> Sequence[tuple[str, str]]:
        named: list[tuple[str, str]] = []
        listed = (access.credentials or {}).get("secrets") or ()
        for name in listed if isinstance(listed, list) else ():
            namespace, slash, rest = str(name).partition("/")
            named.append((namespace, rest) if slash else (self._own_namespace, str(name)))
        for name in access.pull_secrets:
            if "/" in name:
                raise HostError(f"the resource names the pull secret `{name[:80]}`, which is no name")
            named.append((access.namespace, name))
        return named

    async def _secret(self, namespace: str, name: str) -> CredentialSource:
        try:
            return read_pull_secret(await self._read_secret(namespace, name))
        except NotFoundError:
            # Kyverno ignores the name of a Secret that does not exist
            return CredentialSource(f"Secret {namespace}/{name} (not found)", ())
        except ValueSyntaxError as error:
            raise HostError(error.message) from None


class RegistryImages:
    """Reads images of registries with the credentials of an access."""

    def __init__(self, client: RegistryClient, credentials: Credentials) -> None:
        """Take the client and what finds credentials."""
        self._client = client
        self._credentials = credentials

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def resolve(self, image: str, access: ImageAccess, deadline: float | None = None) -> ResolvedImage:
        """Resolve a reference to the image that it names now."""
        reference, repository = await self._place(image, access)
        found = await self._client.manifest(repository, reference.digest or reference.tag, deadline)
        return ResolvedImage(found.digest, found.media_type, len(found.body))

    async def signatures(
        self,
        repository: str,
        digest: str,
        form: SignatureForm,
        access: ImageAccess,
        *,
        tag_prefix: str = "",
        deadline: float | None = None,
        allowance: Allowance | None = None,
    ) -> tuple[StoredSignature, ...]:
        """Return the signatures of an image in one form, read in parallel within an allowance of bytes."""
        _, place = await self._place(f"{repository}@{digest}", access)
        reading = StoredReading(self._client, place, deadline, allowance or Allowance())
        return await reading.signatures(digest, form, tag_prefix)

    async def resolve_each(
        self, images: Sequence[tuple[str, ImageAccess]], deadline: float | None = None
    ) -> Sequence[ResolvedImage | HostError]:
        """Resolve each reference to its image, or to its error."""
        return await read_each(partial(self.resolve, image, access, deadline) for image, access in images)

    async def signatures_each(
        self, queries: Sequence[SignatureQuery], deadline: float | None = None
    ) -> Sequence[tuple[StoredSignature, ...] | HostError]:
        """Return the signatures of each query, or its error; all of them share one allowance of bytes."""
        allowance = Allowance()
        return await read_each(
            partial(
                self.signatures,
                each.repository,
                each.digest,
                each.form,
                each.access,
                tag_prefix=each.tag_prefix,
                deadline=deadline,
                allowance=allowance,
            )
            for each in queries
        )

    async def artifacts(
        self,
        repository: str,
        digest: str,
        artifact_type: str,
        access: ImageAccess,
        deadline: float | None = None,
    ) -> tuple[StoredArtifact, ...]:
        """Return the artifacts of one type that refer to an image."""
        _, place = await self._place(f"{repository}@{digest}", access)
        return await StoredReading(self._client, place, deadline, Allowance()).artifacts(digest, artifact_type)

    async def artifact_content(
        self, repository: str, artifact: StoredArtifact, access: ImageAccess, deadline: float | None = None
    ) -> bytes:
        """Return the bytes of the layer of an artifact."""
        _, place = await self._place(f"{repository}@{artifact.digest}", access)
        return await self._client.blob(place, artifact.layer, deadline=deadline)

    async def revocation(self, url: str, request: bytes, deadline: float | None = None) -> bytes:
        """Return the response of an OCSP responder, or the revocation list for an empty request."""
        return await self._client.revocations.read(url, request, deadline)

    async def data(self, image: str, access: ImageAccess, deadline: float | None = None) -> JSONObject:
        """Return an image as policies see its data: reference, digest, manifest, configuration."""
        reference, repository = await self._place(image, access)
        top = await self._client.manifest(repository, reference.digest or reference.tag, deadline)
        listed = top.read() if top.is_index else None
        body = top.read() if listed is None else await self._platform(repository, top.digest, listed, deadline)
        config = body.get("config")
        digest = config.get("digest") if isinstance(config, dict) else None
        if not isinstance(digest, str):
            raise HostError(f"image `{image}` has no configuration")
        raw = await self._client.blob(repository, digest, MAX_CONFIGURATION, deadline)
        # Kyverno: Docker Hub has the name of its index, and official images are below `library`
        registry = "index.docker.io" if is_docker_hub(reference.registry) else reference.registry
        return {
            "image": image,
            "resolvedImage": f"{registry}/{repository.path}@{top.digest}",
            "registry": registry,
            "repository": repository.path,
            "identifier": reference.digest or reference.tag,
            "manifest": body,
            "manifestList": listed,
            "configData": read_document(raw, f"the configuration of image `{image}`"),
        }

    async def _platform(
        self, repository: Repository, name: str, index: JSONObject, deadline: float | None
    ) -> JSONObject:
        """Return the manifest for linux on amd64, as Kyverno does, else the first of an index."""
        listed = [each for each in index.get("manifests") or () if isinstance(each, dict)]
        usual = [each for each in listed if _is_usual(each.get("platform"))]
        digest = (usual or listed)[0].get("digest") if listed else None
        if not isinstance(digest, str) or not digest.startswith("sha256:"):
            raise HostError(f"the index {name} lists no manifest")
        return (await self._client.manifest(repository, digest, deadline)).read()

    async def _place(self, image: str, access: ImageAccess) -> tuple[ImageReference, Repository]:
        try:
            reference = parse_reference(image)
        except ValueSyntaxError as error:
            raise HostError(error.message) from None
        sources = await self._credentials.sources(access, reference.registry)
        credentials = credentials_for(reference.registry, reference.path, sources)
        return reference, Repository.of(reference, credentials, allows_http=_allows_http(access))


class BlockingImages:
    """The image source of a Host (`engine.imagesource.ImageSource`): calls from other threads than the loop's."""

    def __init__(
        self,
        images: RegistryImages,
        ask: Callable[[Coroutine[Any, Any, Any], str], Any],
        *,
        trust_root: Callable[[], TrustRoot] | None = None,
        public_key: Callable[[str], str] | None = None,
        deadline: float | None = None,
        passes: PassCache | None = None,
    ) -> None:
        """Take the function that runs a coroutine on the loop, and the sources of trust roots and keys.

        `passes` is the cache of verifications, which outlives one request.
        """
        self._images = images
        self._ask = ask
        self._trust_root = trust_root
        self._public_key = public_key
        self._deadline = deadline
        self._passes = PassCache() if passes is None else passes

    @property
    def passes(self) -> PassCache:
        """Digests that satisfied constraints a while ago."""
        return self._passes

    def resolve(self, images: Sequence[tuple[str, ImageAccess]]) -> Sequence[ResolvedImage | HostError]:
        """Resolve each reference to the image that it names now, or to its error."""
        what = f"image {_format_list(image for image, _ in images)}"
        found: Sequence[ResolvedImage | HostError] = self._ask(self._images.resolve_each(images, self._deadline), what)
        return found

    def signatures(self, queries: Sequence[SignatureQuery]) -> Sequence[tuple[StoredSignature, ...] | HostError]:
        """Return the signatures of each query, or its error."""
        asking = self._images.signatures_each(queries, self._deadline)
        what = f"signatures of {_format_list(each.repository for each in queries)}"
        found: Sequence[tuple[StoredSignature, ...] | HostError] = self._ask(asking, what)
        return found

    def artifacts(
        self, repository: str, digest: str, artifact_type: str, access: ImageAccess
    ) -> tuple[StoredArtifact, ...]:
        """Return the artifacts of one type that refer to an image."""
        asking = self._images.artifacts(repository, digest, artifact_type, access, self._deadline)
        found: tuple[StoredArtifact, ...] = self._ask(asking, f"attestations of {repository}")
        return found

    def artifact_content(self, repository: str, artifact: StoredArtifact, access: ImageAccess) -> bytes:
        """Return the bytes of the layer of an artifact."""
        asking = self._images.artifact_content(repository, artifact, access, self._deadline)
        found: bytes = self._ask(asking, f"attestations of {repository}")
        return found

    def revocation(self, url: str, request: bytes) -> bytes:
        """Return the answer of an OCSP responder, or a revocation list."""
        found: bytes = self._ask(self._images.revocation(url, request, self._deadline), "revocation of certificates")
        return found

    def data(self, image: str, access: ImageAccess) -> JSONObject:
        """Return an image as policies see its data."""
        found: JSONObject = self._ask(self._images.data(image, access, self._deadline), f"image {image}")
        return found

    def trust_root(self) -> TrustRoot:
        """Return the trust root of this installation: authorities and logs."""
        if self._trust_root is None:
            raise HostUnavailableError("no trusted root is configured for keyless signatures")
        return self._trust_root()

    def public_key(self, reference: str) -> str:
        """Return the PEM of a key that a policy refers to."""
        if self._public_key is None:
            raise HostUnavailableError(f"no cluster is available to read the key `{reference}`")
        return self._public_key(reference)


def _format_list(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _allows_http(access: ImageAccess) -> bool:
    return (access.credentials or {}).get("allowInsecureRegistry") is True


def _is_usual(platform: JSON) -> bool:
    return isinstance(platform, dict) and platform.get("os") == "linux" and platform.get("architecture") == "amd64"
