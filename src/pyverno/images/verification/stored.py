"""What a registry holds about an image, as bytes that nothing has read yet."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pyverno.value import dataclass, field

__all__ = ["SignatureForm", "StoredSignature"]


class SignatureForm(StrEnum):
    """Where and how a signature is stored."""

    SIGNATURE_TAG = "signature tag"
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
