"""Stored artifacts of an image, as unparsed bytes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pyverno.value import dataclass, field

__all__ = ["SignatureForm", "StoredArtifact", "StoredSignature"]


class SignatureForm(StrEnum):
    """The forms in which registries store signatures."""

    SIGNATURE_TAG = "signature tag"
    SIGNATURE_REFERRER = "signature tag or referrer"
    ATTESTATION_TAG = "attestation tag"
    BUNDLE = "Sigstore bundle"
    NOTARY = "Notary signature"


@dataclass(frozen=True, slots=True)
class StoredSignature:
    """One stored signature: its bytes, their media type and digest, and the annotations of the descriptor."""

    form: SignatureForm
    blob: bytes
    media_type: str
    digest: str
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """An artifact that refers to an image: its descriptor, and the digest of its only layer."""

    digest: str
    media_type: str
    size: int
    layer: str
