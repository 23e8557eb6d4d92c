"""Signed payloads: that of cosign's simple signing, and in-toto statements in DSSE envelopes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyverno.errors import VerificationError
from pyverno.images.verification.strictjson import decode_base64, read_object, text_of
from pyverno.kube.json import JSON, JSONObject
from pyverno.lazyregex import regex
from pyverno.value import dataclass, field

__all__ = [
    "IMAGE_SIGNATURE",
    "REFERENCE",
    "Envelope",
    "Payload",
    "predicate_type_of",
    "read_envelope",
    "read_simple_signing",
    "read_statement",
]

REFERENCE: Final = "critical.identity.docker-reference"
"""The annotation by which a policy can demand the name under which an image was signed."""

IMAGE_SIGNATURE: Final = "https://sigstore.dev/cosign/sign/v1"
"""The predicate type of a statement that signs an image, rather than attesting something of it."""

_SIMPLE: Final = "cosign container image signature"
_IN_TOTO: Final = "application/vnd.in-toto+json"
_STATEMENTS: Final = ("https://in-toto.io/Statement/v0.1", "https://in-toto.io/Statement/v1")
_MAX_SUBJECTS: Final = 1024
_HEX: Final = regex("[0-9a-f]{64}")
_CUSTOM: Final = "https://cosign.sigstore.dev/attestation/v1"
_SHORT: Final[Mapping[str, str]] = {
    "custom": _CUSTOM,
    "slsaprovenance": "https://slsa.dev/provenance/v0.2",
    "slsaprovenance02": "https://slsa.dev/provenance/v0.2",
    "slsaprovenance1": "https://slsa.dev/provenance/v1",
    "spdx": "https://spdx.dev/Document",
    "spdxjson": "https://spdx.dev/Document",
    "cyclonedx": "https://cyclonedx.org/bom",
    "link": "https://in-toto.io/Link/v1",
    "vuln": "https://cosign.sigstore.dev/attestation/vuln/v1",
    "openvex": "https://openvex.dev/ns",
}


def predicate_type_of(name: str) -> str:
    """Return the URI of one of cosign's short names; other texts are URIs already.

    >>> predicate_type_of("slsaprovenance1")
    'https://slsa.dev/provenance/v1'
    """
    return _SHORT.get(name, name)


@dataclass(frozen=True, slots=True)
class Payload:
    """The statement of a signature: the digests (`sha256:…`) of its subjects, its predicate type, and the whole body.

    `annotations` are those of simple signing, with the name that was signed as `REFERENCE`.
    """

    digests: tuple[str, ...]
    predicate_type: str
    body: JSONObject
    annotations: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A DSSE envelope: the payload, its type, and the one signature over both."""

    payload: bytes
    payload_type: str
    signature: bytes

    @property
    def signed(self) -> bytes:
        """The bytes that are signed (pre-authentication encoding).

        >>> Envelope(b"{}", "text", b"").signed
        b'DSSEv1 4 text 2 {}'
        """
        kind = self.payload_type.encode()
        return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(self.payload), self.payload)


def read_simple_signing(data: bytes) -> Payload:
    """Read the payload of a simple signing; raises VerificationError."""
    what = "the signed payload"
    body = read_object(data, what)
    critical = _object(body, "critical", what)
    kind = text_of(critical, "type", what)
    if kind != _SIMPLE:
        raise VerificationError(f"{what} is of another type than `{_SIMPLE}`")
    digest = text_of(_object(critical, "image", what), "docker-manifest-digest", what)
    identity = critical.get("identity")
    optional = body.get("optional")
    if optional is not None and not isinstance(optional, dict):
        raise VerificationError(f"{what} has annotations that are no object")
    # set last: an annotation of this name must not replace it
    named = {REFERENCE: identity.get("docker-reference") if isinstance(identity, dict) else None}
    return Payload((digest,), IMAGE_SIGNATURE, body, {**(optional or {}), **named})


def read_envelope(body: JSONObject) -> Envelope:
    """Read a DSSE envelope with exactly one signature; raises VerificationError."""
    what = "the envelope"
    signatures = body.get("signatures")
    if not isinstance(signatures, list) or len(signatures) != 1 or not isinstance(signatures[0], dict):
        raise VerificationError(f"{what} must have exactly one signature")
    return Envelope(
        decode_base64(body.get("payload"), "the payload of the envelope"),
        text_of(body, "payloadType", what),
        decode_base64(signatures[0].get("sig"), "the signature of the envelope"),
    )


def read_statement(envelope: Envelope) -> Payload:
    """Read the in-toto statement of an envelope; raises VerificationError."""
    what = "the statement"
    if envelope.payload_type != _IN_TOTO:
        raise VerificationError(f"the envelope holds no in-toto statement (`{_IN_TOTO}`)")
    body = read_object(envelope.payload, what)
    if body.get("_type") not in _STATEMENTS:
        raise VerificationError(f"{what} is of no known version")
    subjects = body.get("subject")
    if not isinstance(subjects, list) or not 0 < len(subjects) <= _MAX_SUBJECTS:
        raise VerificationError(f"{what} must have 1 to {_MAX_SUBJECTS} subjects")
    return Payload(tuple(_digests(subjects)), text_of(body, "predicateType", what), body)


def _digests(subjects: list[JSON]) -> list[str]:
    found = []
    for subject in subjects:
        digest = subject.get("digest") if isinstance(subject, dict) else None
        value = digest.get("sha256") if isinstance(digest, dict) else None
        if isinstance(value, str) and _HEX.fullmatch(value):
            found.append(f"sha256:{value}")
    return found


def _object(source: JSONObject, key: str, what: str) -> JSONObject:
    found = source.get(key)
    if not isinstance(found, dict):
        raise VerificationError(f"{what} has no object `{key}`")
    return found
