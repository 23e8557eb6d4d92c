"""Registry reads of rules: the digest of a reference, its signatures, and the trust root.

A Host has one `ImageSource`. Adapters fetch bytes; whether a signature holds is decided by `pyverno.images`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from pyverno.engine.imageverification.passes import PassCache
from pyverno.errors import HostError, HostUnavailableError
from pyverno.images.verification.stored import SignatureForm, StoredArtifact, StoredSignature
from pyverno.images.verification.trust import TrustRoot
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["NO_IMAGES", "ImageAccess", "ImageSource", "NoImages", "ResolvedImage", "SignatureQuery", "answer_of"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ImageAccess:
    """With which credentials an image is read.

    `credentials` is `imageRegistryCredentials` of the policy as written; `pull_secrets` are the names of Secrets that
    the resource lists, in its `namespace`.
    """

    credentials: JSONObject | None = None
    pull_secrets: tuple[str, ...] = ()
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedImage:
    """The image that a reference names now: digest, media type and size in bytes of its manifest."""

    digest: str
    media_type: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class SignatureQuery:
    """Selects the signatures that a repository holds for the image of a digest, in one form.

    Names of signature tags begin with `tag_prefix`.
    """

    repository: str
    digest: str
    form: SignatureForm
    access: ImageAccess
    tag_prefix: str = ""


class ImageSource(Protocol):
    """Reads images and their signatures; every method raises HostError subclasses only.

    Methods that take several queries read them in parallel, and return an answer or an error for each, in their order.
    """

    def resolve(self, images: Sequence[tuple[str, ImageAccess]]) -> Sequence[ResolvedImage | HostError]:
        """Return what references (registry, path, tag or digest) name; NotFoundError for a missing image."""
        ...

    def signatures(self, queries: Sequence[SignatureQuery]) -> Sequence[tuple[StoredSignature, ...] | HostError]:
        """Return the signatures of images, empty for none.

        A registry that refuses or fails is an error, never "no signature".
        """
        ...

    def artifacts(
        self, repository: str, digest: str, artifact_type: str, access: ImageAccess
    ) -> tuple[StoredArtifact, ...]:
        """Return the artifacts of one type that refer to the image of a digest."""
        ...

    def artifact_content(self, repository: str, artifact: StoredArtifact, access: ImageAccess) -> bytes:
        """Return the bytes of the layer of an artifact."""
        ...

    def data(self, image: str, access: ImageAccess) -> JSONObject:
        """Return image, resolvedImage, registry, repository, identifier, manifest, manifestList and configData."""
        ...

    def revocation(self, url: str, request: bytes) -> bytes:
        """Return what an OCSP responder answers to a request, or the revocation list at an address for an empty one."""
        ...

    def trust_root(self) -> TrustRoot:
        """Return the authorities and logs that this installation trusts for keyless signatures."""
        ...

    def public_key(self, reference: str) -> str:
        """Return the PEM of a key that a policy refers to (`k8s://namespace/name`)."""
        ...

    @property
    def passes(self) -> PassCache:
        """Digests that satisfied constraints a while ago."""
        ...


class NoImages:
    """An image source that has no registry."""

    def resolve(self, images: Sequence[tuple[str, ImageAccess]]) -> Sequence[ResolvedImage | HostError]:
        """Return a HostUnavailableError for each."""
        return [HostUnavailableError(f"no registry is available to read image `{image}`") for image, _ in images]

    def signatures(self, queries: Sequence[SignatureQuery]) -> Sequence[tuple[StoredSignature, ...] | HostError]:
        """Return a HostUnavailableError for each."""
        return [
            HostUnavailableError(f"no registry is available to read signatures of `{each.repository}`")
            for each in queries
        ]

    def artifacts(
        self, repository: str, digest: str, artifact_type: str, access: ImageAccess
    ) -> tuple[StoredArtifact, ...]:
        """Raise HostUnavailableError."""
        raise HostUnavailableError(f"no registry is available to read attestations of `{repository}`")

    def artifact_content(self, repository: str, artifact: StoredArtifact, access: ImageAccess) -> bytes:
        """Raise HostUnavailableError."""
        raise HostUnavailableError(f"no registry is available to read attestations of `{repository}`")

    def data(self, image: str, access: ImageAccess) -> JSONObject:
        """Raise HostUnavailableError."""
        raise HostUnavailableError(f"no registry is available to read image `{image}`")

    def revocation(self, url: str, request: bytes) -> bytes:
        """Raise HostUnavailableError."""
        raise HostUnavailableError("no network is available to read it")

    def trust_root(self) -> TrustRoot:
        """Raise HostUnavailableError."""
        raise HostUnavailableError("no trusted root is configured for keyless signatures")

    def public_key(self, reference: str) -> str:
        """Raise HostUnavailableError."""
        raise HostUnavailableError(f"no cluster is available to read the key `{reference}`")

    @property
    def passes(self) -> PassCache:
        """A cache that keeps nothing."""
        return PassCache(0)


NO_IMAGES: ImageSource = NoImages()


def answer_of(found: T | HostError) -> T:
    """Return an answer of an image source; raises a recorded error."""
    if isinstance(found, HostError):
        raise found.copied()
    return found
