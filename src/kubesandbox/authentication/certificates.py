"""Keys and certificates: the authority of the server, its leaf, its clients, and the kubeconfig of a client.

Keys are ECDSA on P-256, and new unless they are read from PEM. This module must never touch a file.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyverno.errors import PyvernoError
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

__all__ = ["ADMIN_GROUP", "ADMIN_USER", "SERVER_HOSTS", "Authority", "CertificateError", "KeyPair", "kubeconfig"]

ADMIN_USER = "kubernetes-admin"
ADMIN_GROUP = "kubeadm:cluster-admins"
SERVER_HOSTS: tuple[str, ...] = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "::1",
    "10.96.0.1",
)
"""Names and addresses under which clients reach the server."""

_BACKDATED = timedelta(minutes=5)
_YEAR = timedelta(days=365)
_USAGES: dict[str, str] = {"server auth": "SERVER_AUTH", "client auth": "CLIENT_AUTH", "code signing": "CODE_SIGNING"}


class CertificateError(PyvernoError):
    """A certificate, a key or a signing request cannot be read or used."""

    code = "certificate"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates.

    >>> from datetime import UTC
    >>> authority = Authority.make("sandbox-ca", now=datetime(2025, 1, 1, tzinfo=UTC))
    >>> pair = authority.issue("web", hosts=["localhost"], now=datetime(2025, 1, 1, tzinfo=UTC))
    >>> pair.certificate.startswith(b"-----BEGIN CERTIFICATE-----")
    True
    """

    def __init__(self, pair: KeyPair) -> None:
        """Take what `make` made before; raises CertificateError."""
        self.pair = pair
        self._key = _private_key(pair.key)
        self._certificate = _certificate(pair.certificate)

    @classmethod
    def make(cls, name: str, *, now: datetime) -> Authority:
        """Make a new authority that is valid for ten years."""
        from cryptography import x509

        key = _new_key()
        subject = _name(name, ())
        builder = (
            _builder(subject, subject, now, 10 * _YEAR)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(_pair(_signed(builder, key), key))

    @property
    def certificate(self) -> bytes:
        """The certificate that clients must trust, as PEM."""
        return self.pair.certificate

    def issue(
        self,
        name: str,
        *,
        now: datetime,
        organizations: Sequence[str] = (),
        hosts: Iterable[str] = (),
        lifetime: timedelta = _YEAR,
    ) -> KeyPair:
        """Make a key with a certificate: for a server when `hosts` are given, else for a client.

        `name` becomes the common name (the user), `organizations` the organisations (the groups).
        """
        key = _new_key()
        listed = tuple(hosts)
        usages = ("server auth",) if listed else ("client auth",)
        builder = self._leaf(_name(name, organizations), key.public_key(), now, lifetime, usages)
        if listed:
            builder = builder.add_extension(_alternative_names(listed), critical=False)
        return _pair(_signed(builder, self._key), key)

    def sign(self, request: bytes, *, now: datetime, lifetime: timedelta, usages: Sequence[str]) -> bytes:
        """Sign a certificate signing request (PEM) and return the certificate (PEM).

        `usages` are those of a CertificateSigningRequest (`client auth`, `digital signature`). Raises CertificateError.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding

        try:
            wanted = x509.load_pem_x509_csr(request)
        except ValueError as error:
            raise CertificateError(f"the certificate signing request cannot be read: {error}") from None
        if not wanted.is_signature_valid:
            raise CertificateError("the certificate signing request is not signed by its own key")
        builder = self._leaf(wanted.subject, wanted.public_key(), now, lifetime, usages)
        try:
            names = wanted.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        except x509.ExtensionNotFound:
            names = None
        if names is not None:
            builder = builder.add_extension(names.value, critical=False)
        return _signed(builder, self._key).public_bytes(Encoding.PEM)

    def _leaf(
        self, subject: x509.Name, public_key: Any, now: datetime, lifetime: timedelta, usages: Sequence[str]
    ) -> x509.CertificateBuilder:
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        builder = (
            _builder(subject, self._certificate.subject, now, lifetime)
            .public_key(public_key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs=False), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._certificate.public_key()),  # type: ignore[arg-type]  # our authorities are ECDSA
                critical=False,
            )
        )
        extended = [getattr(ExtendedKeyUsageOID, _USAGES[usage]) for usage in usages if usage in _USAGES]
        return builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False) if extended else builder


def kubeconfig(
    server: str, authority: bytes, *, client: KeyPair | None = None, token: str = "", name: str = "pyverno-sandbox"
) -> JSONObject:
    """Return the kubeconfig of a client: server address, trusted authority and the client's credentials.

    >>> document = kubeconfig("https://127.0.0.1:6443", b"PEM", token="secret")
    >>> document["current-context"], document["users"][0]["user"]
    ('pyverno-sandbox', {'token': 'secret'})
    """
    user: JSONObject = {}
    if client is not None:
        user = {"client-certificate-data": _base64(client.certificate), "client-key-data": _base64(client.key)}
    elif token:
        user = {"token": token}
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
        "preferences": {},
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _private_key(pem: bytes) -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"the private key cannot be read: {error}") from None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise CertificateError("the private key is not an ECDSA key")
    return key


def _certificate(pem: bytes) -> x509.Certificate:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError(f"the certificate cannot be read: {error}") from None


def _name(name: str, organizations: Sequence[str]) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative_names(hosts: Sequence[str]) -> x509.SubjectAlternativeName:
    from ipaddress import ip_address

    from cryptography import x509

    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return x509.SubjectAlternativeName(names)


def _builder(subject: x509.Name, issuer: x509.Name, now: datetime, lifetime: timedelta) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + lifetime)
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not signs,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography.hazmat.primitives.hashes import SHA256

    return builder.sign(key, SHA256())


def _pair(certificate: x509.Certificate, key: EllipticCurvePrivateKey) -> KeyPair:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return KeyPair(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
