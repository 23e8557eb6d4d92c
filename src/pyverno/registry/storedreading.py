"""Signatures and attestations as registries store them: behind tags and as referrers, within an allowance of bytes.

This module must never verify a signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from pyverno.errors import HostError, NotFoundError
from pyverno.images.verification.stored import SignatureForm, StoredArtifact, StoredSignature
from pyverno.kube.json import JSONObject
from pyverno.registry.client import MAX_BLOB, MAX_MANIFEST, Descriptor, Manifest, RegistryClient, Repository, layers_of
from pyverno.registry.parallel import read_all

__all__ = ["Allowance", "StoredReading"]

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


class Allowance:
    """The bytes that manifests, lists and blobs may have together: by their declared sizes, before any is read."""

    def __init__(self) -> None:
        self.left = _MAX_BYTES

    def reserve(self, declared: int, most: int = MAX_BLOB) -> int:
        """Return how many bytes a document may have; raises HostError when they are more than what is left."""
        size = declared if 0 < declared <= most else most
        self.charge(size)
        return size

    def charge(self, size: int) -> None:
        """Count bytes that were read without a declared size; raises HostError when they are too many."""
        if size > self.left:
            raise HostError(f"the signatures and attestations have more than {_MAX_BYTES} bytes")
        self.left -= size


class StoredReading(NamedTuple):
    """Reads what a repository stores for an image, until a deadline and within an allowance."""

    client: RegistryClient
    place: Repository
    deadline: float | None
    allowance: Allowance

    async def signatures(self, digest: str, form: SignatureForm, tag_prefix: str = "") -> tuple[StoredSignature, ...]:
        """Return the signatures of an image in one form; those of tags are behind names that begin with a prefix."""
        if form not in _SUFFIXES:
            listed = await self._referrers(digest, _TYPES[form])
            return tuple(await read_all(partial(self._referrer, form, digest, each) for each in listed))
        layers = await self._tagged_layers(f"{tag_prefix}{digest.replace(':', '-', 1)}", form)
        if form is SignatureForm.SIGNATURE_REFERRER:
            layers = [*layers, *await self._referring_layers(digest)]
        if len(layers) > _MAX_SIGNATURES:
            raise HostError(f"the image has more than {_MAX_SIGNATURES} signatures")
        return tuple(await read_all(partial(self._signature, form, each) for each in layers))

    async def artifacts(self, digest: str, artifact_type: str) -> tuple[StoredArtifact, ...]:
        """Return the artifacts of one type that refer to an image."""
        listed = await self._referrers(digest, artifact_type)
        return tuple(await read_all(partial(self._artifact, digest, each) for each in listed))

    async def _referrers(self, digest: str, artifact_type: str) -> Sequence[Descriptor]:
        found = await self.client.referrers(self.place, digest, artifact_type, self.deadline)
        self.allowance.charge(found.size)
        return found.listed

    async def _referring(self, digest: str, listed: Descriptor) -> tuple[Manifest, JSONObject]:
        """Return the manifest of a referrer and its content; raises HostError where its list describes another."""
        size = self.allowance.reserve(listed.size, MAX_MANIFEST)
        manifest = await self.client.manifest(self.place, listed.digest, self.deadline)
        if len(manifest.body) > size:
            raise HostError(f"the manifest {listed.digest} has more than the {size} bytes of its descriptor")
        body = manifest.read()
        subject = body.get("subject")
        if not isinstance(subject, dict) or subject.get("digest") != digest:
            raise HostError(f"the registry lists {listed.digest} as referring to an image that it does not refer to")
        return manifest, body

    async def _tagged_layers(self, tag: str, form: SignatureForm) -> Sequence[Descriptor]:
        """Return the layers behind the tag of an image's signatures, none when there is no such tag."""
        suffix, media_type = _SUFFIXES[form]
        try:
            manifest = await self.client.manifest(self.place, f"{tag}.{suffix}", self.deadline)
        except NotFoundError:
            return []
        self.allowance.charge(len(manifest.body))
        return [each for each in layers_of(manifest.read()) if each.media_type == media_type]

    async def _referring_layers(self, digest: str) -> Sequence[Descriptor]:
        """Return the layers of the manifests in which cosign stores signatures as referrers."""
        found: list[Descriptor] = []
        for each in await self._referrers(digest, _COSIGN):
            _, body = await self._referring(digest, each)
            found.extend(layer for layer in layers_of(body) if layer.media_type == _SIMPLE)
        return found

    async def _referrer(self, form: SignatureForm, digest: str, listed: Descriptor) -> StoredSignature:
        _, body = await self._referring(digest, listed)
        stored = await self._signature(form, _only_layer(body, listed))
        annotations = body.get("annotations")
        if not isinstance(annotations, dict):
            return stored
        texts = {name: value for name, value in annotations.items() if isinstance(value, str)}
        return StoredSignature(form, stored.blob, stored.media_type, stored.digest, texts)

    async def _signature(self, form: SignatureForm, layer: Descriptor) -> StoredSignature:
        size = self.allowance.reserve(layer.size)
        blob = await self.client.blob(self.place, layer.digest, size, self.deadline)
        return StoredSignature(form, blob, layer.media_type, layer.digest, layer.annotations)

    async def _artifact(self, digest: str, listed: Descriptor) -> StoredArtifact:
        manifest, body = await self._referring(digest, listed)
        layer = _only_layer(body, listed)
        kind = manifest.media_type or listed.media_type
        return StoredArtifact(listed.digest, kind, len(manifest.body), layer.digest)


def _only_layer(body: JSONObject, listed: Descriptor) -> Descriptor:
    layers = layers_of(body)
    if len(layers) != 1:
        raise HostError(f"the artifact {listed.digest} must have exactly one layer")
    return layers[0]
