"""Signatures read from cosign's layers and from Sigstore bundles into one type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pyverno.errors import VerificationError
from pyverno.images.verification.certificates import Certificate, read_certificate, read_certificates
from pyverno.images.verification.logentry import LogEntry, read_legacy_entry, read_log_entry
from pyverno.images.verification.payloads import (
    Envelope,
    Payload,
    read_envelope,
    read_simple_signing,
    read_statement,
)
from pyverno.images.verification.stored import SignatureForm, StoredSignature
from pyverno.images.verification.strictjson import decode_base64, encode_text, read_object, text_of
from pyverno.images.verification.timestamps import MAX_TIMESTAMPS
from pyverno.kube.json import JSON, JSONObject
from pyverno.lazyregex import regex
from pyverno.value import dataclass, field

__all__ = ["Signature", "read_attestation_layer", "read_bundle", "read_signature_layer", "read_stored"]

_COSIGN: Final = "dev.cosignproject.cosign/signature"
_SIGSTORE: Final = "dev.sigstore.cosign"
_MAX_ENTRIES: Final = 32
_MAX_SHOWN: Final = 64
_BUNDLE: Final = regex(
    r"application/vnd\.dev\.sigstore\.bundle(?:\+json;version=(?P<old>0\.[0-9]+)|\.v(?P<new>0\.[0-9]+)\+json)"
)
_VERSIONS: Final = frozenset({"0.1", "0.2", "0.3"})
_Fields = Mapping[str, "_Fields | None"]
_RAW: Final[_Fields] = {"rawBytes": None}
_PROOF: Final[_Fields] = dict.fromkeys(("logIndex", "rootHash", "treeSize", "hashes")) | {
    "checkpoint": {"envelope": None}
}
_ENTRY: Final[_Fields] = dict.fromkeys(("logIndex", "integratedTime", "canonicalizedBody")) | {
    "logId": {"keyId": None},
    "kindVersion": {"kind": None, "version": None},
    "inclusionPromise": {"signedEntryTimestamp": None},
    "inclusionProof": _PROOF,
}
_FIELDS: Final[_Fields] = {
    "mediaType": None,
    "verificationMaterial": {
        "certificate": _RAW,
        "x509CertificateChain": {"certificates": _RAW},
        "publicKey": {"hint": None},
        "tlogEntries": _ENTRY,
        "timestampVerificationData": {"rfc3161Timestamps": {"signedTimestamp": None}},
    },
    "dsseEnvelope": {"payload": None, "payloadType": None, "signatures": {"sig": None, "keyid": None}},
    "messageSignature": {"messageDigest": {"algorithm": None, "digest": None}, "signature": None},
}
"""The fields of a bundle; those of an object in a list are those of the list."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature: the signed bytes (`signed`), the signature over them, their payload, and its verification material.

    `envelope` is the DSSE envelope as stored, None for simple signing; `annotations` are those that are signed, which
    only simple signing has: anyone with write access to a registry can change those of a layer.
    """

    signed: bytes
    signature: bytes
    payload: Payload
    certificate: Certificate | None = None
    chain: tuple[Certificate, ...] = ()
    log_entries: tuple[LogEntry, ...] = ()
    timestamps: tuple[bytes, ...] = ()
    dsse: Envelope | None = None
    envelope: bytes | None = None
    annotations: Mapping[str, JSON] = field(default_factory=dict)


def read_signature_layer(blob: bytes, annotations: Mapping[str, str]) -> Signature:
    """Read a layer of a `.sig` image: the payload, and the annotations of its descriptor; raises VerificationError."""
    signature = decode_base64(annotations.get(_COSIGN), "the signature")
    if not signature:
        raise VerificationError("the layer has no signature")
    payload = read_simple_signing(blob)
    certificate, chain, entries, timestamps = _material(annotations)
    return Signature(blob, signature, payload, certificate, chain, entries, timestamps, annotations=payload.annotations)


def read_attestation_layer(blob: bytes, annotations: Mapping[str, str]) -> Signature:
    """Read a layer of an `.att` image: an envelope, and the annotations of its descriptor; raises VerificationError."""
    envelope = read_envelope(read_object(blob, "the envelope"))
    certificate, chain, entries, timestamps = _material(annotations)
    return Signature(
        envelope.signed,
        envelope.signature,
        read_statement(envelope),
        certificate,
        chain,
        entries,
        timestamps,
        envelope,
        blob,
    )


def read_bundle(blob: bytes) -> Signature:
    """Read a Sigstore bundle that holds an envelope; raises VerificationError.

    A bundle with a message signature does not state what was signed, and is refused for images.
    """
    what = "the bundle"
    body = read_object(blob, what)
    kind = _BUNDLE.fullmatch(text_of(body, "mediaType", what))
    if kind is None or (kind["old"] or kind["new"]) not in _VERSIONS:
        raise VerificationError(f"{what} is of an unknown version")
    _check_fields(body, _FIELDS)
    stored = body.get("dsseEnvelope")
    if not isinstance(stored, dict):
        raise VerificationError(f"{what} holds no envelope")
    material = body.get("verificationMaterial")
    if not isinstance(material, dict):
        raise VerificationError(f"{what} has no verification material")
    envelope = read_envelope(stored)
    certificate, chain = _bundled_certificates(material)
    entries = _list(material, "tlogEntries", _MAX_ENTRIES)
    return Signature(
        envelope.signed,
        envelope.signature,
        read_statement(envelope),
        certificate,
        chain,
        tuple(read_log_entry(each) for each in entries),
        _bundled_timestamps(material),
        envelope,
    )


def read_stored(stored: StoredSignature) -> Signature:
    """Read a signature of cosign in the form in which it is stored; raises VerificationError."""
    return _FORMS[stored.form](stored)


_FORMS: Final[Mapping[SignatureForm, Callable[[StoredSignature], Signature]]] = {
    SignatureForm.SIGNATURE_TAG: lambda stored: read_signature_layer(stored.blob, stored.annotations),
    SignatureForm.SIGNATURE_REFERRER: lambda stored: read_signature_layer(stored.blob, stored.annotations),
    SignatureForm.ATTESTATION_TAG: lambda stored: read_attestation_layer(stored.blob, stored.annotations),
    SignatureForm.BUNDLE: lambda stored: read_bundle(stored.blob),
}


def _check_fields(value: JSON, known: _Fields) -> None:
    """Raise VerificationError for a field that bundles do not have: it could be one of ours with a typing error."""
    for each in value if isinstance(value, list) else (value,):
        for name, inner in each.items() if isinstance(each, dict) else ():
            if name not in known:
                raise VerificationError(f"the bundle has the unknown field `{name[:_MAX_SHOWN]}`")
            below = known[name]
            if below is not None:
                _check_fields(inner, below)


# ---------------------------------------------------------------------------------------------------------- material

_Material = tuple[Certificate | None, tuple[Certificate, ...], tuple[LogEntry, ...], tuple[bytes, ...]]


def _material(annotations: Mapping[str, str]) -> _Material:
    pem, chain = annotations.get(f"{_SIGSTORE}/certificate"), annotations.get(f"{_SIGSTORE}/chain")
    entry, stamp = annotations.get(f"{_SIGSTORE}/bundle"), annotations.get(f"{_SIGSTORE}/rfc3161timestamp")
    timestamps: tuple[bytes, ...] = ()
    if stamp:
        body = read_object(encode_text(stamp, "the time stamp"), "the time stamp")
        timestamps = (decode_base64(body.get("SignedRFC3161Timestamp"), "the time stamp"),)
    return (
        read_certificate(encode_text(pem, "the certificate")) if pem else None,
        read_certificates(chain) if chain else (),
        (read_legacy_entry(entry),) if entry else (),
        timestamps,
    )


def _bundled_certificates(material: JSONObject) -> tuple[Certificate | None, tuple[Certificate, ...]]:
    single, chain = material.get("certificate"), material.get("x509CertificateChain")
    kinds = [key for key in ("certificate", "x509CertificateChain", "publicKey") if key in material]
    if len(kinds) != 1:
        raise VerificationError("the bundle must name one of a certificate, a chain and a public key")
    if isinstance(single, dict):
        return _certificate(single), ()
    if isinstance(chain, dict):
        found = [_certificate(each) for each in _list(chain, "certificates", _MAX_ENTRIES)]
        if not found:
            raise VerificationError("the chain of the bundle is empty")
        return found[0], tuple(found[1:])
    return None, ()


def _certificate(body: JSONObject) -> Certificate:
    return read_certificate(decode_base64(body.get("rawBytes"), "the certificate of the bundle"))


def _bundled_timestamps(material: JSONObject) -> tuple[bytes, ...]:
    data = material.get("timestampVerificationData")
    if not isinstance(data, dict):
        return ()
    found = [
        decode_base64(each.get("signedTimestamp"), "a time stamp of the bundle")
        for each in _list(data, "rfc3161Timestamps", MAX_TIMESTAMPS)
    ]
    if len(set(found)) != len(found):
        raise VerificationError("the bundle has the same time stamp twice")
    return tuple(found)


def _list(source: JSONObject, key: str, most: int) -> Sequence[JSONObject]:
    found = source.get(key) or []
    if not isinstance(found, list) or len(found) > most or not all(isinstance(each, dict) for each in found):
        raise VerificationError(f"`{key}` of the bundle is no list of at most {most} objects")
    return found
