"""Images and their signatures as rules ask for them, read from registries.

`RegistryImages` belongs to the event loop of its client; `BlockingImages` is the form that a Host shows to
rules. This module must never verify a signature.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from pyverno.engine.imagesource import ImageAccess, ResolvedImage, SignatureQuery
from pyverno.engine.imageverification.passes import PassCache
from pyverno.errors import DocumentError, HostError, HostUnavailableError, NotFoundError, ValueSyntaxError
from pyverno.images.verification.stored import SignatureForm, StoredArtifact, StoredSignature
from pyverno.images.verification.trust import TrustRoot
from pyverno.kube.imageref import ImageReference, parse_reference
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.registry.client import MAX_BLOB, Descriptor, Manifest, RegistryClient, Repository, layers_of
from pyverno.registry.credentials import CredentialSource, credentials_for, read_pull_secret
from pyverno.registry.parallel import read_all, read_each
from pyverno.registry.providers.chain import Providers, providers_of

__all__ = ["BlockingImages", "Credentials", "RegistryImages", "SecretCredentials"]

_MAX_SIGNATURES: Final = 100
_MAX_BYTES: Final = 32 * 1024 * 1024
"""The most bytes of all signatures and attestations that are read together."""

_BUNDLE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
_COSIGN: Final = "application/vnd.dev.cosign.artifact.sig.v1+json"
_NOTARY: Final = "application/vnd.cncf.notary.signature"
_SIMPLE: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
_DSSE: Final = "application/vnd.dsse.envelope.v1+json"
_SUFFIXES: Final = {
    SignatureForm.SIGNATURE_TAG: ("sig", _SIMPLE),
    SignatureForm.SIGNATURE_REFERRER: ("sig", _SIMPLE),
    SignatureForm.ATTESTATION_TAG: ("att", _DSSE),
}
_TYPES: Final = {SignatureForm.BUNDLE: _BUNDLE, SignatureForm.NOTARY: _NOTARY}

T = TypeVar("T")


class Credentials(Protocol):
    """Finds the credentials that an access means."""

    async def sources(self, access: ImageAccess, registry: str) -> Sequence[CredentialSource]:
        """Return configurations in the order in which they are tried; raises HostError for what cannot be read.

        `registry` is the host that the credentials are for.
        """
        ...


class SecretCredentials:
    """Credentials out of Secrets: those that a policy names, then those of the resource, else the default ones.

    A resource may name Secrets of its namespace only: a name with a slash is refused, because it would read another
    namespace.
    """

    def __init__(
        self,
        read_secret: Callable[[str, str], Awaitable[JSONObject]],
        own_namespace: str,
        defaults: Callable[[], Awaitable[Sequence[CredentialSource]]] | None = None,
        providers: Providers | None = None,
        default_providers: Sequence[str] = (),
    ) -> None:
        """Take a function that reads a Secret by namespace and name, and the default credentials.

        `providers` are the logins that policies may name; `default_providers` are those of images without credentials.
        """
        self._read_secret = read_secret
        self._own_namespace = own_namespace
        self._defaults = defaults
        self._providers = providers or Providers({})
        self._default_providers = tuple(default_providers)

    async def sources(self, access: ImageAccess, registry: str) -> Sequence[CredentialSource]:
        """Return the credentials of the policy, then those of the resource; without either, the default ones."""
        found = [await self._secret(namespace, name) for namespace, name in self._name_secrets(access)]
        found.extend(await self._providers.sources(providers_of(access), registry))
        if not access.credentials and not access.pull_secrets and self._defaults is not None:
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
            # Kyverno: a Secret that does not exist is as if it had not been named
            return CredentialSource(f"Secret {namespace}/{name} (not found)", ())
        except ValueSyntaxError as error:
            raise HostError(error.message) from None


class _Allowance:
    """The bytes that blobs may have together: reserved by their declared sizes, before any of them is read."""

    def __init__(self) -> None:
        self._left = _MAX_BYTES

    def reserve(self, declared: int) -> int:
        """Return how many bytes a blob may have; raises HostError when they are more than what is left."""
        size = declared if 0 < declared <= MAX_BLOB else MAX_BLOB
        if size > self._left:
            raise HostError(f"the signatures and attestations have more than {_MAX_BYTES} bytes")
        self._left -= size
        return size


class _Reading(NamedTuple):
    """Where signatures of a form are read, until when, and how many bytes."""

    place: Repository
    form: SignatureForm
    deadline: float | None
    allowance: _Allowance


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
        """Return what a reference names at the moment."""
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
        allowance: _Allowance | None = None,
    ) -> tuple[StoredSignature, ...]:
        """Return the signatures of an image in one form, read in parallel within an allowance of bytes."""
        _, place = await self._place(f"{repository}@{digest}", access)
        reading = _Reading(place, form, deadline, allowance or _Allowance())
        if form in _SUFFIXES:
            layers = await self._read_tagged(place, f"{tag_prefix}{digest.replace(':', '-', 1)}", form, deadline)
            if form is SignatureForm.SIGNATURE_REFERRER:
                layers = [*layers, *await self._referring_layers(place, digest, deadline)]
            if len(layers) > _MAX_SIGNATURES:
                raise HostError(f"the image has more than {_MAX_SIGNATURES} signatures")
            return tuple(await read_all(partial(self._read_stored, reading, each) for each in layers))
        listed = await self._client.referrers(place, digest, _TYPES[form], deadline)
        return tuple(await read_all(partial(self._referrer, reading, digest, each) for each in listed))

    async def resolve_each(
        self, images: Sequence[tuple[str, ImageAccess]], deadline: float | None = None
    ) -> Sequence[ResolvedImage | HostError]:
        """Return what each reference names, or its error."""
        return await read_each(partial(self.resolve, image, access, deadline) for image, access in images)

    async def signatures_each(
        self, queries: Sequence[SignatureQuery], deadline: float | None = None
    ) -> Sequence[tuple[StoredSignature, ...] | HostError]:
        """Return the signatures of each query, or its error; all of them share one allowance of bytes."""
        allowance = _Allowance()
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
        listed = await self._client.referrers(place, digest, artifact_type, deadline)
        return tuple(await read_all(partial(self._artifact, place, digest, each, deadline) for each in listed))

    async def _artifact(
        self, place: Repository, digest: str, listed: Descriptor, deadline: float | None
    ) -> StoredArtifact:
        manifest = await self._client.manifest(place, listed.digest, deadline)
        layer = _only_layer(_referring(manifest.read(), listed, digest), listed)
        kind = manifest.media_type or listed.media_type
        return StoredArtifact(listed.digest, kind, len(manifest.body), layer.digest, layer.media_type)

    async def artifact_content(
        self, repository: str, artifact: StoredArtifact, access: ImageAccess, deadline: float | None = None
    ) -> bytes:
        """Return the bytes of the layer of an artifact."""
        _, place = await self._place(f"{repository}@{artifact.digest}", access)
        return await self._client.blob(place, artifact.layer, deadline=deadline)

    async def revocation(self, url: str, request: bytes, deadline: float | None = None) -> bytes:
        """Return the answer of an OCSP responder, or the revocation list at an address for an empty request."""
        return await self._client.revocations.read(url, request, deadline)

    async def _read_tagged(
        self, place: Repository, tag: str, form: SignatureForm, deadline: float | None
    ) -> Sequence[Descriptor]:
        """Return the layers behind the tag of an image's signatures, none when there is no such tag."""
        suffix, media_type = _SUFFIXES[form]
        try:
            manifest = await self._client.manifest(place, f"{tag}.{suffix}", deadline)
        except NotFoundError:
            return []
        return [each for each in layers_of(manifest.read()) if each.media_type == media_type]

    async def _referring_layers(self, place: Repository, digest: str, deadline: float | None) -> Sequence[Descriptor]:
        """Return the layers of the manifests in which cosign stores signatures as referrers."""
        found: list[Descriptor] = []
        for each in await self._client.referrers(place, digest, _COSIGN, deadline):
            body = _referring((await self._client.manifest(place, each.digest, deadline)).read(), each, digest)
            found.extend(layer for layer in layers_of(body) if layer.media_type == _SIMPLE)
        return found

    async def _referrer(self, reading: _Reading, digest: str, listed: Descriptor) -> StoredSignature:
        manifest = await self._client.manifest(reading.place, listed.digest, reading.deadline)
        body = _referring(manifest.read(), listed, digest)
        stored = await self._read_stored(reading, _only_layer(body, listed))
        annotations = body.get("annotations")
        if not isinstance(annotations, dict):
            return stored
        texts = {name: value for name, value in annotations.items() if isinstance(value, str)}
        return StoredSignature(reading.form, stored.blob, stored.media_type, stored.digest, texts)

    async def _read_stored(self, reading: _Reading, layer: Descriptor) -> StoredSignature:
        size = reading.allowance.reserve(layer.size)
        blob = await self._client.blob(reading.place, layer.digest, size, reading.deadline)
        return StoredSignature(reading.form, blob, layer.media_type, layer.digest, layer.annotations)

    async def data(self, image: str, access: ImageAccess, deadline: float | None = None) -> JSONObject:
        """Return an image as policies see its data: reference, digest, manifest, configuration."""
        reference, repository = await self._place(image, access)
        top = await self._client.manifest(repository, reference.digest or reference.tag, deadline)
        manifest = await self._platform(repository, top, deadline) if top.is_index else top
        body = manifest.read()
        config = body.get("config")
        digest = config.get("digest") if isinstance(config, dict) else None
        if not isinstance(digest, str):
            raise HostError(f"image `{image}` has no configuration")
        raw = await self._client.blob(repository, digest, deadline=deadline)
        # Kyverno: Docker Hub has the name of its index, and official images are below `library`
        registry = "index.docker.io" if reference.registry == "docker.io" else reference.registry
        return {
            "image": image,
            "resolvedImage": f"{registry}/{repository.path}@{top.digest}",
            "registry": registry,
            "repository": repository.path,
            "identifier": reference.digest or reference.tag,
            "manifest": body,
            "manifestList": top.read() if top.is_index else None,
            "configData": _json(raw, image),
        }

    async def _platform(self, repository: Repository, index: Manifest, deadline: float | None) -> Manifest:
        """Return the manifest for linux on amd64, as Kyverno does, else the first."""
        listed = [each for each in index.read().get("manifests") or () if isinstance(each, dict)]
        usual = [each for each in listed if _is_usual(each.get("platform"))]
        digest = (usual or listed)[0].get("digest") if listed else None
        if not isinstance(digest, str) or not digest.startswith("sha256:"):
            raise HostError(f"the index {index.digest} lists no manifest")
        return await self._client.manifest(repository, digest, deadline)

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
        """Take what runs a coroutine on the loop and waits for it, and where trust roots and keys come from.

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
        """Return what each reference names at the moment, or its error."""
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
        """Return the authorities and logs that this installation trusts."""
        if self._trust_root is None:
            raise HostUnavailableError("no trusted root is configured for keyless signatures")
        return self._trust_root()

    def public_key(self, reference: str) -> str:
        """Return the PEM of a key that a policy refers to."""
        if self._public_key is None:
            raise HostUnavailableError(f"no cluster is available to read the key `{reference}`")
        return self._public_key(reference)


def _referring(body: JSONObject, listed: Descriptor, digest: str) -> JSONObject:
    """Return the manifest of a referrer; raises HostError when it refers to another object than its list."""
    subject = body.get("subject")
    if not isinstance(subject, dict) or subject.get("digest") != digest:
        raise HostError(f"the registry lists {listed.digest} as referring to an image that it does not refer to")
    return body


def _format_list(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _only_layer(body: JSONObject, listed: Descriptor) -> Descriptor:
    layers = layers_of(body)
    if len(layers) != 1:
        raise HostError(f"the artifact {listed.digest} must have exactly one layer")
    return layers[0]


def _allows_http(access: ImageAccess) -> bool:
    return (access.credentials or {}).get("allowInsecureRegistry") is True


def _is_usual(platform: JSON) -> bool:
    return isinstance(platform, dict) and platform.get("os") == "linux" and platform.get("architecture") == "amd64"


def _json(raw: bytes, image: str) -> JSON:
    try:
        return decode(raw)
    except DocumentError:
        raise HostError(f"the configuration of image `{image}` is no JSON") from None
