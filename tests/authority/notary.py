"""A signer as notation is one: a chain of certificates, and signatures in JWS and COSE envelopes."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import cbor2
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.authority import der
from tests.authority.certificates import moment
from tests.authority.timestamps import TimeAuthority

__all__ = ["COSE", "JWS", "NotarySigner"]

JWS = "application/jose+json"
COSE = "application/cose"
_PREFIX = "io.cncf.notary."
_PAYLOAD = "application/vnd.cncf.notary.payload.v1+json"
_COSE_ALGORITHMS = {"ES256": -7, "ES384": -35, "ES512": -36, "PS256": -37, "PS384": -38, "PS512": -39, "RS256": -257}
_SIZES = {"ES256": 32, "ES384": 48, "ES512": 66}
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass
class NotarySigner:
    """A root and a leaf below it; `extensions` are further ones of the leaf, `usage` its extended key usage."""

    now: int = 1_700_000_000
    key: Key = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    begins: int | None = None
    seconds: int = 86_400 * 365
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CODE_SIGNING
    extensions: Sequence[x509.ExtensionType] = ()
    is_root_authority: bool = True
    is_usage_critical: bool = True

    def __post_init__(self) -> None:
        """Make the certificates."""
        self.root_key = ec.generate_private_key(ec.SECP256R1())
        self.root = self.issue("notary root", self.root_key, is_authority=self.is_root_authority)
        self.leaf = self.issue("notary signer", self.key, is_authority=False)

    @property
    def chain(self) -> tuple[x509.Certificate, ...]:
        """Leaf and root."""
        return self.leaf, self.root

    @property
    def root_pem(self) -> str:
        """The root as PEM, for trust stores."""
        return self.root.public_bytes(Encoding.PEM).decode()

    def sign(
        self,
        media_type: str,
        digest: str,
        size: int = 7,
        *,
        target_type: str = "application/vnd.oci.image.manifest.v1+json",
        annotations: Mapping[str, str] | None = None,
        algorithm: str = "",
        expiry: int | None = None,
        critical: Sequence[str] | None = None,
        content_type: str = _PAYLOAD,
        scheme: str = "notary.x509",
        chain: Sequence[x509.Certificate] | None = None,
        stamps: TimeAuthority | None = None,
        stamped_at: int | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Return an envelope about an image."""
        target: dict[str, Any] = {"mediaType": target_type, "digest": digest, "size": size}
        if annotations:
            target["annotations"] = dict(annotations)
        payload = json.dumps({"targetArtifact": target}).encode()
        expiring = {} if expiry is None else {f"{_PREFIX}expiry": expiry}
        times = {f"{_PREFIX}signingTime": self.now, **expiring}
        marked = list(critical) if critical is not None else [f"{_PREFIX}signingScheme", *expiring]
        named = {f"{_PREFIX}signingScheme": scheme, **(headers or {})}
        certificates = [each.public_bytes(Encoding.DER) for each in chain or self.chain]
        algorithm = algorithm or self._algorithm

        def stamp(signature: bytes) -> bytes | None:
            return None if stamps is None else _token(stamps, signature, stamped_at or self.now)

        if media_type == JWS:
            texts = {name: moment(time).isoformat() for name, time in times.items()}
            header = {"alg": algorithm, "cty": content_type, "crit": marked, **named, **texts}
            protected, body = _url(json.dumps(header).encode()), _url(payload)
            signature = self._sign(f"{protected}.{body}".encode(), algorithm)
            unprotected: dict[str, Any] = {"x5c": [base64.b64encode(each).decode() for each in certificates]}
            token = stamp(signature)
            if token is not None:
                unprotected[f"{_PREFIX}timestampSignature"] = base64.b64encode(token).decode()
            found = {"payload": body, "protected": protected, "header": unprotected, "signature": _url(signature)}
            return json.dumps(found).encode()
        tagged = {name: cbor2.CBORTag(1, time) for name, time in times.items()}
        raw = cbor2.dumps({1: _COSE_ALGORITHMS[algorithm], 2: marked, 3: content_type, **named, **tagged})
        signature = self._sign(cbor2.dumps(["Signature1", raw, b"", payload]), algorithm)
        backing: dict[Any, Any] = {33: certificates}
        token = stamp(signature)
        if token is not None:
            backing[f"{_PREFIX}timestampSignature"] = token
        return cbor2.dumps(cbor2.CBORTag(18, [raw, backing, payload, signature]))

    @property
    def _algorithm(self) -> str:
        if isinstance(self.key, rsa.RSAPrivateKey):
            return {2048: "PS256", 3072: "PS384", 4096: "PS512"}[self.key.key_size]
        return {256: "ES256", 384: "ES384", 521: "ES512"}[self.key.curve.key_size]

    def _sign(self, data: bytes, algorithm: str) -> bytes:
        digest = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}[algorithm[2:]]
        if isinstance(self.key, rsa.RSAPrivateKey):
            if algorithm.startswith("RS"):
                return self.key.sign(data, padding.PKCS1v15(), digest)
            return self.key.sign(data, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
        first, second = decode_dss_signature(self.key.sign(data, ec.ECDSA(digest)))
        size = (self.key.curve.key_size + 7) // 8
        return first.to_bytes(size) + second.to_bytes(size)

    def issue(
        self, name: str, key: Key, *, is_authority: bool = False, usage: x509.ObjectIdentifier | None = None
    ) -> x509.Certificate:
        """Return a certificate of the root; `usage` is its extended key usage, that of the leaf by default."""
        is_root = key is self.root_key
        start = moment(self.now) if self.begins is None or is_root else moment(self.begins)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "notary root")]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start - timedelta(days=1))
            .not_valid_after(start + (timedelta(days=3650) if is_root else timedelta(seconds=self.seconds)))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=not is_root,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    key_cert_sign=is_root,
                    crl_sign=is_root,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=is_root or self.is_usage_critical,
            )
        )
        if not is_root:
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage or self.usage]), critical=False)
            for each in self.extensions:
                builder = builder.add_extension(each, critical=False)
        return builder.sign(self.root_key, hashes.SHA256())


def _token(stamps: TimeAuthority, signature: bytes, time: int) -> bytes:
    """Return the token inside the answer of a time stamp authority."""
    answer = stamps.stamp(signature, time)
    granted = der.sequence(der.integer(0))
    return answer[answer.index(granted) + len(granted) :]


def _url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
