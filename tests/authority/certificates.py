"""A certificate authority as Fulcio is one: short-lived certificates with identities, and certificate timestamps."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.authority import der

__all__ = ["FULCIO", "Authority", "Leaf", "moment", "public_der"]

FULCIO = "1.3.6.1.4.1.57264.1"
_SCT_LIST = "1.3.6.1.4.1.11129.2.4.2"
_LONG = timedelta(days=3650)


def moment(seconds: int) -> datetime:
    """Return a time from seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC)


def public_der(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the DER of a key's public half."""
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


@dataclass(frozen=True)
class Leaf:
    """A signer: the certificate, its key, and the issuing chain."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: tuple[x509.Certificate, ...] = ()

    @property
    def pem(self) -> str:
        """The certificate as PEM."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def chain_pem(self) -> str:
        """The certificates of the issuers as PEM."""
        return "".join(each.public_bytes(Encoding.PEM).decode() for each in self.chain)


@dataclass
class Authority:
    """A root, an intermediate, and a certificate transparency log, all valid for ten years around `now`."""

    now: int = 1_700_000_000
    log_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        """Make the keys and certificates of the authority."""
        self._root_key = ec.generate_private_key(ec.SECP256R1())
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.root = self._authority("root", self._root_key, None)
        self.intermediate = self._authority("intermediate", self._key, self.root)

    @property
    def chain(self) -> tuple[x509.Certificate, ...]:
        """Intermediate and root."""
        return self.intermediate, self.root

    def issue(
        self,
        subject: x509.GeneralName | None = None,
        issuer: str = "https://accounts.example.com",
        *,
        begins: int | None = None,
        seconds: int = 600,
        extensions: Mapping[int, str] | None = None,
        has_timestamp: bool = True,
        usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CODE_SIGNING,
    ) -> Leaf:
        """Return a signer whose certificate begins at `begins` (default: now) and lasts some seconds.

        `extensions` are further ones of Fulcio by the last number of their identifier.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        start = moment(self.now if begins is None else begins)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self.intermediate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + timedelta(seconds=seconds))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if subject is not None:
            builder = builder.add_extension(x509.SubjectAlternativeName([subject]), critical=True)
        named = {1: issuer, 8: issuer, **(extensions or {})} if issuer else dict(extensions or {})
        for number, text in named.items():
            raw = text.encode() if number < 7 else der.utf8(text)
            builder = builder.add_extension(
                x509.UnrecognizedExtension(x509.ObjectIdentifier(f"{FULCIO}.{number}"), raw), critical=False
            )
        certificate = builder.sign(self._key, hashes.SHA256())
        if has_timestamp:
            stamps = self._timestamp(certificate, int(start.timestamp()) * 1000)
            extension = x509.UnrecognizedExtension(x509.ObjectIdentifier(_SCT_LIST), stamps)
            certificate = builder.add_extension(extension, critical=False).sign(self._key, hashes.SHA256())
        return Leaf(certificate, key, self.chain)

    def _timestamp(self, certificate: x509.Certificate, milliseconds: int) -> bytes:
        """Return the extension that proves that the log knows the certificate (its bytes without this extension)."""
        issuer = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        body = certificate.tbs_certificate_bytes
        head = struct.pack(">BBQH", 0, 0, milliseconds, 1)
        signed = head + hashlib.sha256(issuer).digest() + len(body).to_bytes(3) + body + b"\x00\x00"
        signature = self.log_key.sign(signed, ec.ECDSA(hashes.SHA256()))
        identity = hashlib.sha256(public_der(self.log_key)).digest()
        stamp = b"\x00" + identity + struct.pack(">Q", milliseconds) + b"\x00\x00\x04\x03"
        stamp += len(signature).to_bytes(2) + signature
        listed = len(stamp).to_bytes(2) + stamp
        return der.octets(len(listed).to_bytes(2) + listed)

    def _authority(
        self, name: str, key: ec.EllipticCurvePrivateKey, parent: x509.Certificate | None
    ) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer = self._root_key
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(parent.subject if parent is not None else subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(moment(self.now) - _LONG)
            .not_valid_after(moment(self.now) + _LONG)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        if parent is not None:
            builder = builder.add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
            ).add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
        return builder.sign(signer, hashes.SHA256())


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
