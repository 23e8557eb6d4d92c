"""A signer as cosign is one: layers of simple signings and attestations, Sigstore bundles, and the trust root."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kubesandbox.imageregistry import Layer
from tests.authority.certificates import Authority, Leaf, public_der
from tests.authority.log import Log, b64
from tests.authority.timestamps import TimeAuthority

__all__ = ["IMAGE_SIGNATURE", "Layer", "Signer", "SigningServices"]

IMAGE_SIGNATURE = "https://sigstore.dev/cosign/sign/v1"
_IN_TOTO = "application/vnd.in-toto+json"


@dataclass
class SigningServices:
    """An authority, a log and a time stamp authority that trust roots and signers share."""

    now: int = 1_700_000_000
    log: Log = field(default_factory=Log)

    def __post_init__(self) -> None:
        """Make the authorities."""
        self.authority = Authority(self.now)
        self.time_authority = TimeAuthority(self.now)

    def keyless(self, subject: str = "dev@example.com", **options: Any) -> Signer:
        """Return a signer with a short-lived certificate; `options` are those of `Authority.issue`."""
        kind = x509.UniformResourceIdentifier if "://" in subject else x509.RFC822Name
        leaf = self.authority.issue(kind(subject) if subject else None, **options)
        return Signer(leaf.key, self, leaf)

    def keyed(self, key: ec.EllipticCurvePrivateKey | None = None) -> Signer:
        """Return a signer with a key."""
        return Signer(key or ec.generate_private_key(ec.SECP256R1()), self)

    def trusted_root(self) -> bytes:
        """Return the trust root as Sigstore writes it."""
        valid = {"start": datetime.fromtimestamp(self.now - 10**8, UTC).isoformat().replace("+00:00", "Z")}

        def log(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
            identity = hashes.Hash(hashes.SHA256())
            identity.update(public_der(key))
            return {
                "baseUrl": "https://log.example.com",
                "hashAlgorithm": "SHA2_256",
                "publicKey": {
                    "rawBytes": b64(public_der(key)),
                    "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                    "validFor": valid,
                },
                "logId": {"keyId": b64(identity.finalize())},
            }

        def authority(chain: Sequence[x509.Certificate]) -> dict[str, Any]:
            return {
                "subject": {"organization": "example", "commonName": "example"},
                "uri": "https://authority.example.com",
                "certChain": {"certificates": [{"rawBytes": b64(each.public_bytes(Encoding.DER))} for each in chain]},
                "validFor": valid,
            }

        body = {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(self.log.key)],
            "certificateAuthorities": [authority(self.authority.chain)],
            "ctlogs": [log(self.authority.log_key)],
            "timestampAuthorities": [authority(self.time_authority.chain)],
        }
        return json.dumps(body).encode()


@dataclass
class Signer:
    """Signs with a key, and with a certificate for it when there is one."""

    key: ec.EllipticCurvePrivateKey
    services: SigningServices
    leaf: Leaf | None = None

    @property
    def public_pem(self) -> str:
        """The public key as PEM."""
        return self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def sign_layer(
        self,
        digest: str,
        annotations: Mapping[str, str] | None = None,
        *,
        reference: str = "registry.example.com/app",
        is_logged: bool = True,
        is_stamped: bool = False,
        time: int | None = None,
    ) -> Layer:
        """Return a layer of a `.sig` image about an image's digest."""
        payload = {
            "critical": {
                "identity": {"docker-reference": reference},
                "image": {"docker-manifest-digest": digest},
                "type": "cosign container image signature",
            },
            "optional": dict(annotations) if annotations else None,
        }
        blob = json.dumps(payload).encode()
        signature = self.sign(blob)
        found = {"dev.cosignproject.cosign/signature": b64(signature), **self._certificates()}
        moment = self._time(time)
        if is_logged:
            entry = self.services.log.hashed_record(blob, signature, self._signer_pem, moment)
            found["dev.sigstore.cosign/bundle"] = entry.legacy
        if is_stamped:
            stamp = self.services.time_authority.stamp(signature, moment)
            found["dev.sigstore.cosign/rfc3161timestamp"] = json.dumps({"SignedRFC3161Timestamp": b64(stamp)})
        return Layer(blob, found)

    def attest_layer(
        self, digest: str, predicate: Any, predicate_type: str, *, is_logged: bool = True, time: int | None = None
    ) -> Layer:
        """Return a layer of an `.att` image."""
        payload, signature, envelope = self._envelope(digest, predicate, predicate_type)
        blob = json.dumps(envelope).encode()
        found = {
            "dev.cosignproject.cosign/signature": "",
            "predicateType": predicate_type,
            **self._certificates(),
        }
        if is_logged:
            entry = self.services.log.envelope(blob, payload, signature, self._signer_pem, self._time(time))
            found["dev.sigstore.cosign/bundle"] = entry.legacy
        return Layer(blob, found)

    def bundle(
        self,
        digest: str,
        predicate: Any = None,
        predicate_type: str = IMAGE_SIGNATURE,
        *,
        is_logged: bool = True,
        is_stamped: bool = False,
        time: int | None = None,
    ) -> dict[str, Any]:
        """Return a Sigstore bundle: a signature of the image, or an attestation of it."""
        payload, signature, envelope = self._envelope(digest, predicate or {}, predicate_type)
        material: dict[str, Any] = {}
        if self.leaf is None:
            material["publicKey"] = {"hint": b64(public_der(self.key)[:32])}
        else:
            material["certificate"] = {"rawBytes": b64(self.leaf.certificate.public_bytes(Encoding.DER))}
        moment = self._time(time)
        if is_logged:
            blob = json.dumps(envelope).encode()
            material["tlogEntries"] = [
                self.services.log.envelope(blob, payload, signature, self._signer_pem, moment).bundled
            ]
        if is_stamped:
            stamp = self.services.time_authority.stamp(signature, moment)
            material["timestampVerificationData"] = {"rfc3161Timestamps": [{"signedTimestamp": b64(stamp)}]}
        return {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": material,
            "dsseEnvelope": envelope,
        }

    def sign(self, data: bytes) -> bytes:
        """Sign bytes."""
        return self.key.sign(data, ec.ECDSA(hashes.SHA256()))

    @property
    def _signer_pem(self) -> str:
        return self.leaf.pem if self.leaf is not None else self.public_pem

    def _time(self, time: int | None) -> int:
        return self.services.now + 60 if time is None else time

    def _certificates(self) -> dict[str, str]:
        if self.leaf is None:
            return {}
        return {"dev.sigstore.cosign/certificate": self.leaf.pem, "dev.sigstore.cosign/chain": self.leaf.chain_pem}

    def _envelope(self, digest: str, predicate: Any, predicate_type: str) -> tuple[bytes, bytes, dict[str, Any]]:
        statement = {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": "app", "digest": {"sha256": digest.removeprefix("sha256:")}}],
            "predicateType": predicate_type,
            "predicate": predicate,
        }
        payload = json.dumps(statement).encode()
        signature = self.sign(b"DSSEv1 %d %b %d %b" % (len(_IN_TOTO), _IN_TOTO.encode(), len(payload), payload))
        envelope = {"payload": b64(payload), "payloadType": _IN_TOTO, "signatures": [{"sig": b64(signature)}]}
        return payload, signature, envelope
