"""Envelopes of Notary signatures, JWS and COSE, read into the same value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from pyverno.errors import VerificationError
from pyverno.images.verification.certificates import Certificate, read_certificate
from pyverno.images.verification.notary.cbor import Tagged, encode_bytes, read_cbor
from pyverno.images.verification.strictjson import decode_base64, read_object, text_of
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass, field

__all__ = ["COSE", "JWS", "NotarySignature", "read_notary"]

JWS: Final = "application/jose+json"
COSE: Final = "application/cose"

PREFIX: Final = "io.cncf.notary."
SCHEME: Final = f"{PREFIX}signingScheme"
EXPIRY: Final = f"{PREFIX}expiry"
SIGNING_TIME: Final = f"{PREFIX}signingTime"
AUTHENTIC_TIME: Final = f"{PREFIX}authenticSigningTime"
_STAMP: Final = f"{PREFIX}timestampSignature"
_MAX_CHAIN: Final = 10
_MAX_ENVELOPE: Final = 10 * 1024 * 1024
_SIGN1: Final = 18
_EPOCH: Final = 1
_ALGORITHM, _CRITICAL, _CONTENT_TYPE, _CHAIN = 1, 2, 3, 33
_COSE_ALGORITHMS: Final = {-7: "ES256", -35: "ES384", -36: "ES512", -37: "PS256", -38: "PS384", -39: "PS512"}


@dataclass(frozen=True, slots=True)
class NotarySignature:
    """The signed bytes, the signature, and the content of its protected header; `critical` as the header lists it.

    `headers` are the names of all protected attributes; `expiry` is in seconds since 1970.
    """

    signed: bytes
    signature: bytes
    algorithm: str
    content_type: str
    payload: bytes
    chain: tuple[Certificate, ...]
    scheme: str
    critical: tuple[str, ...]
    headers: frozenset[str]
    expiry: int | None = None
    timestamp: bytes | None = field(default=None)


def read_notary(blob: bytes, media_type: str) -> NotarySignature:
    """Read an envelope by the media type of its layer; raises VerificationError."""
    if len(blob) > _MAX_ENVELOPE:
        raise VerificationError(f"the envelope is larger than {_MAX_ENVELOPE} bytes")
    if media_type == JWS:
        return _read_jws(blob)
    if media_type == COSE:
        return _read_cose(blob)
    raise VerificationError(f"the envelope has the unknown media type `{media_type[:80]}`")


# --------------------------------------------------------------------------------------------------------------- JWS


def _read_jws(blob: bytes) -> NotarySignature:
    what = "the envelope"
    body = read_object(blob, what)
    payload, protected = text_of(body, "payload", what), text_of(body, "protected", what)
    header = read_object(_url_base64(protected, "the protected header"), "the protected header")
    unprotected = body.get("header")
    if not isinstance(unprotected, dict):
        raise VerificationError(f"{what} has no object `header`")
    stamp = unprotected.get(_STAMP)
    expiry = header.get(EXPIRY)
    return NotarySignature(
        signed=f"{protected}.{payload}".encode("ascii"),
        signature=_url_base64(text_of(body, "signature", what), "the signature"),
        algorithm=text_of(header, "alg", "the protected header"),
        content_type=text_of(header, "cty", "the protected header"),
        payload=_url_base64(payload, "the payload"),
        chain=_certificates([decode_base64(each, "a certificate") for each in _list(unprotected.get("x5c"))]),
        scheme=text_of(header, SCHEME, "the protected header"),
        critical=_critical(header.get("crit")),
        headers=frozenset(header) - {"alg", "cty", "crit"},
        expiry=None if expiry is None else _seconds(expiry),
        timestamp=None if stamp is None else decode_base64(stamp, "the time stamp"),
    )


def _url_base64(text: str, what: str) -> bytes:
    """Decode unpadded base64url. The signature covers the encoded text, so only the canonical encoding is accepted."""
    if any(each in text for each in "+/=") or not text.isascii():
        raise VerificationError(f"{what} is no base64url")
    return decode_base64(text, what)


def _seconds(text: object) -> int:
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise VerificationError("the expiry is no time")
    return int(found.timestamp())


# -------------------------------------------------------------------------------------------------------------- COSE


def _read_cose(blob: bytes) -> NotarySignature:
    what = "the envelope"
    found = read_cbor(blob, what)
    parts = found.value if isinstance(found, Tagged) and found.tag == _SIGN1 else None
    if not isinstance(parts, list) or len(parts) != 4:
        raise VerificationError(f"{what} is no COSE_Sign1")
    protected, unprotected, payload, signature = parts
    if not (isinstance(protected, bytes) and isinstance(payload, bytes) and isinstance(signature, bytes)):
        raise VerificationError(f"{what} is no COSE_Sign1")
    header = read_cbor(protected, "the protected header")
    if not isinstance(header, dict) or not isinstance(unprotected, dict):
        raise VerificationError(f"{what} has no headers")
    algorithm, content_type, scheme = header.get(_ALGORITHM), header.get(_CONTENT_TYPE), header.get(SCHEME)
    if not isinstance(content_type, str) or not isinstance(scheme, str):
        raise VerificationError("the protected header lacks the content type or the signing scheme")
    stamp = unprotected.get(_STAMP)
    if stamp is not None and not isinstance(stamp, bytes):
        raise VerificationError("the time stamp is no byte string")
    return NotarySignature(
        # the array ["Signature1", protected, no external data, payload]
        signed=b"\x84\x6aSignature1" + encode_bytes(protected) + b"\x40" + encode_bytes(payload),
        signature=signature,
        algorithm=_COSE_ALGORITHMS.get(algorithm, str(algorithm)[:32]) if isinstance(algorithm, int) else "",
        content_type=content_type,
        payload=payload,
        chain=_certificates(_chain(unprotected)),
        scheme=scheme,
        critical=_critical(header.get(_CRITICAL)),
        headers=frozenset(str(each) for each in header) - {str(_ALGORITHM), str(_CRITICAL), str(_CONTENT_TYPE)},
        expiry=_tagged_seconds(header[EXPIRY]) if EXPIRY in header else None,
        timestamp=stamp,
    )


def _chain(unprotected: Mapping[object, object]) -> Sequence[bytes]:
    found = unprotected.get(_CHAIN)
    listed = [found] if isinstance(found, bytes) else _list(found)
    return [each if isinstance(each, bytes) else b"" for each in listed]


def _tagged_seconds(value: object) -> int:
    seconds = value.value if isinstance(value, Tagged) and value.tag == _EPOCH else None
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        raise VerificationError("the expiry is no time")
    return seconds


# -------------------------------------------------------------------------------------------------------------- both


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _certificates(listed: Sequence[bytes]) -> tuple[Certificate, ...]:
    if not 0 < len(listed) <= _MAX_CHAIN:
        raise VerificationError(f"the envelope must have 1 to {_MAX_CHAIN} certificates")
    return tuple(read_certificate(each, "a certificate of the envelope") for each in listed)


def _critical(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(each, int | str) for each in value):
        raise VerificationError("the protected header lists no critical attributes")
    found = tuple(str(each) for each in value)
    if len(set(found)) != len(found):
        raise VerificationError("the protected header lists a critical attribute twice")
    return found


def target_of(signature: NotarySignature) -> JSONObject:
    """Return the descriptor that a signature is for; raises VerificationError."""
    body = read_object(signature.payload, "the payload")
    found = body.get("targetArtifact")
    if not isinstance(found, dict):
        raise VerificationError("the payload has no object `targetArtifact`")
    return found
