"""Trust roots: certificate authorities, transparency logs and time stamp authorities, with their validity.

A root is read from Sigstore's `trusted_root.json` or put together from PEM texts of a policy. This module must never
fetch one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from pyverno.errors import VerificationError
from pyverno.images.verification.certificates import Certificate, read_certificate
from pyverno.images.verification.chain import VerifiedIssuers
from pyverno.images.verification.keys import PublicKey, read_key
from pyverno.images.verification.strictjson import decode_base64, read_object
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass, field

# trust rows: trust-root

__all__ = ["Authority", "TransparencyLog", "TrustRoot", "read_trust_root"]

_MAX_BYTES: Final = 1_048_576
_MAX_ITEMS: Final = 64
_FOREVER: Final = 1 << 62
_ED25519_NOTE: Final = b"\x01"


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority: its chain from the issuer of leaves up to the root, and when it may be used.

    `known` remembers the issuers that led to its roots.
    """

    chain: tuple[Certificate, ...]
    begins: int = 0
    ends: int = _FOREVER
    name: str = ""
    known: VerifiedIssuers = field(default_factory=VerifiedIssuers, compare=False, repr=False)

    def is_valid_at(self, time: int) -> bool:
        """Return whether the authority was in use at a time (seconds since 1970)."""
        return self.begins <= time <= self.ends


@dataclass(frozen=True, slots=True)
class TransparencyLog:
    """A log and its signing key; `id` is the hex SHA-256 of the key, or the log's own identifier."""

    key: PublicKey
    id: str
    begins: int = 0
    ends: int = _FOREVER

    @classmethod
    def of_key(cls, key: PublicKey) -> TransparencyLog:
        """Return a log that is known by its key alone."""
        return cls(key, key.fingerprint)

    def is_valid_at(self, time: int) -> bool:
        """Return whether the log was in use at a time (seconds since 1970)."""
        return self.begins <= time <= self.ends

    def hints(self, origin: str) -> Sequence[bytes]:
        """Return the key hints by which the log signs checkpoints: from its id, or from its name and key."""
        if not isinstance(self.key.key, Ed25519PublicKey):
            return (bytes.fromhex(self.id)[:4],)
        raw = self.key.key.public_bytes_raw()
        named = hashlib.sha256(origin.encode() + b"\n" + _ED25519_NOTE + raw).digest()
        return (bytes.fromhex(self.id)[:4], named[:4])


@dataclass(frozen=True, slots=True)
class TrustRoot:
    """The authorities, logs and time stamp authorities that a verification trusts; an empty part trusts none."""

    authorities: tuple[Authority, ...] = ()
    logs: tuple[TransparencyLog, ...] = ()
    certificate_logs: tuple[TransparencyLog, ...] = ()
    time_authorities: tuple[Authority, ...] = ()


def read_trust_root(data: bytes) -> TrustRoot:
    """Read a `trusted_root.json`; raises VerificationError."""
    what = "the trusted root"
    if len(data) > _MAX_BYTES:
        raise VerificationError(f"{what} is larger than {_MAX_BYTES} bytes")
    body = read_object(data, what)
    kind = body.get("mediaType")
    if not isinstance(kind, str) or not kind.startswith("application/vnd.dev.sigstore.trustedroot"):
        raise VerificationError(f"{what} has another media type")
    return TrustRoot(
        tuple(_authority(each) for each in _items(body, "certificateAuthorities")),
        tuple(_log(each) for each in _items(body, "tlogs")),
        tuple(_log(each) for each in _items(body, "ctlogs")),
        tuple(_authority(each) for each in _items(body, "timestampAuthorities")),
    )


def _items(body: JSONObject, key: str) -> Iterable[JSONObject]:
    found = body.get(key) or []
    if not isinstance(found, list) or len(found) > _MAX_ITEMS or not all(isinstance(each, dict) for each in found):
        raise VerificationError(f"`{key}` of the trusted root is no list of at most {_MAX_ITEMS} objects")
    return found


def _authority(body: JSONObject) -> Authority:
    chain = body.get("certChain")
    found = chain.get("certificates") if isinstance(chain, dict) else None
    if not isinstance(found, list) or not 0 < len(found) <= _MAX_ITEMS:
        raise VerificationError("an authority of the trusted root has no chain")
    certificates = tuple(_certificate(each) for each in found)
    begins, ends = _period(body.get("validFor"))
    uri = body.get("uri")
    return Authority(certificates, begins, ends, uri if isinstance(uri, str) else "")


def _certificate(body: JSON) -> Certificate:
    raw = body.get("rawBytes") if isinstance(body, dict) else None
    return read_certificate(
        decode_base64(raw, "a certificate of the trusted root"), "a certificate of the trusted root"
    )


def _log(body: JSONObject) -> TransparencyLog:
    what = "a log of the trusted root"
    public = body.get("publicKey")
    log_id = body.get("logId")
    if not isinstance(public, dict):
        raise VerificationError(f"{what} has no key")
    key = read_key(decode_base64(public.get("rawBytes"), what), what)
    identity = log_id.get("keyId") if isinstance(log_id, dict) else None
    begins, ends = _period(public.get("validFor"))
    return TransparencyLog(key, decode_base64(identity, what).hex() if identity else key.fingerprint, begins, ends)


def _period(body: JSON) -> tuple[int, int]:
    if body is None:
        return 0, _FOREVER
    if not isinstance(body, dict):
        raise VerificationError("a validity of the trusted root is no object")
    return _time(body.get("start"), 0), _time(body.get("end"), _FOREVER)


def _time(text: JSON, missing: int) -> int:
    if text is None:
        return missing
    if not isinstance(text, str):
        raise VerificationError("a time of the trusted root is no text")
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise VerificationError("a time of the trusted root cannot be read") from None
    if found.tzinfo is None:
        raise VerificationError("a time of the trusted root has no zone")
    return int(found.timestamp())
