"""A time stamp authority (RFC 3161)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.authority import der
from tests.authority.certificates import moment

__all__ = ["TimeAuthority"]

_SHA256 = "2.16.840.1.101.3.4.2.1"
_ECDSA_SHA256 = "1.2.840.10045.4.3.2"
_SIGNED_DATA = "1.2.840.113549.1.7.2"
_TST_INFO = "1.2.840.113549.1.9.16.1.4"
_CONTENT_TYPE = "1.2.840.113549.1.9.3"
_MESSAGE_DIGEST = "1.2.840.113549.1.9.4"
_SIGNING_CERTIFICATE = "1.2.840.113549.1.9.16.2.47"
_LONG = timedelta(days=3650)


@dataclass
class TimeAuthority:
    """A root and a certificate that stamps, valid for ten years around `now`; `extensions` are further ones of it.

    Stamps hold the certificates of `beside`, too.
    """

    now: int = 1_700_000_000
    extensions: Sequence[x509.ExtensionType] = ()
    beside: Sequence[x509.Certificate] = ()
    _key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    _root_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        """Make the certificates."""
        self.root = self._certificate("time root", self._root_key, is_authority=True)
        self.leaf = self._certificate("time stamps", self._key, is_authority=False, extensions=self.extensions)

    @property
    def chain(self) -> tuple[x509.Certificate, ...]:
        """Leaf and root."""
        return self.leaf, self.root

    def issue(self, name: str) -> x509.Certificate:
        """Return another certificate that may stamp, without further extensions."""
        return self._certificate(name, self._key, is_authority=False, extensions=())

    def stamp(self, signature: bytes, time: int) -> bytes:
        """Return the time-stamp response that proves that a signature existed at a time."""
        algorithm = der.sequence(der.oid(_SHA256), der.null())
        imprint = der.sequence(algorithm, der.octets(hashlib.sha256(signature).digest()))
        info = der.sequence(
            der.integer(1), der.oid("1.2.3.4"), imprint, der.integer(7), der.generalized_time(moment(time))
        )
        identity = hashlib.sha256(self.leaf.public_bytes(Encoding.DER)).digest()
        attributes = (
            der.sequence(der.oid(_CONTENT_TYPE), der.set_of(der.oid(_TST_INFO))),
            der.sequence(der.oid(_MESSAGE_DIGEST), der.set_of(der.octets(hashlib.sha256(info).digest()))),
            der.sequence(
                der.oid(_SIGNING_CERTIFICATE),
                der.set_of(der.sequence(der.sequence(der.sequence(der.octets(identity))))),
            ),
        )
        signed = self._key.sign(der.set_of(*attributes), ec.ECDSA(hashes.SHA256()))
        issuer = der.sequence(self.leaf.issuer.public_bytes(), der.integer(self.leaf.serial_number))
        signer = der.sequence(
            der.integer(1),
            issuer,
            der.sequence(der.oid(_SHA256)),
            der.context(0, der.set_of(*attributes)[2 if len(b"".join(attributes)) < 0x80 else 3 :]),
            der.sequence(der.oid(_ECDSA_SHA256)),
            der.octets(signed),
        )
        data = der.sequence(
            der.integer(3),
            der.set_of(der.sequence(der.oid(_SHA256))),
            der.sequence(der.oid(_TST_INFO), der.context(0, der.octets(info))),
            der.context(0, b"".join(sorted(each.public_bytes(Encoding.DER) for each in (self.leaf, *self.beside)))),
            der.set_of(signer),
        )
        token = der.sequence(der.oid(_SIGNED_DATA), der.context(0, data))
        return der.sequence(der.sequence(der.integer(0)), token)

    def _certificate(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        *,
        is_authority: bool,
        extensions: Sequence[x509.ExtensionType] = (),
    ) -> x509.Certificate:
        root = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "time root")])
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(root)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(moment(self.now) - _LONG)
            .not_valid_after(moment(self.now) + _LONG)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        if not is_authority:
            builder = builder.add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._root_key.public_key()), critical=False
            ).add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True)
            for each in extensions:
                builder = builder.add_extension(each, critical=False)
        return builder.sign(self._root_key, hashes.SHA256())
