"""The webhook's certificates: an authority and a leaf in two Secrets, shared by all replicas and renewed in time.

The authority's old certificates stay in its bundle until they expire, so that the API server always trusts what the
replicas serve. Private keys must never be stored anywhere but in the Secret and in memory.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pyverno.cluster.client import Client
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.value import dataclass
from pyverno.webhook.tls import is_usable_pair

__all__ = ["CertificateController", "CertificateSettings", "KeyPair", "make_authority", "make_leaf", "renewed_bundle"]

SECRETS: Final = GVR("", "v1", "secrets")
MANAGED: Final = {"cert.kyverno.io/managed-by": "kyverno"}
_AUTHORITY_NAME: Final = "*.kyverno.svc"
_AUTHORITY_DAYS: Final = 365
_LEAF_DAYS: Final = 150
_TRIES: Final = 5
_MOST_CERTIFICATES: Final = 500
_MOST_OTHERS: Final = 8
_NOT_OURS: Final = "tls is not valid but certificates are not managed by kyverno, we can't renew them"

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class CertificateSettings:
    """Names and times: the service that is called, where the Secrets are, how early certificates are renewed (days).

    `algorithm` is ECDSA (P-256), RSA (2048) or Ed25519. `server` is a host outside of the cluster, if there is one;
    `more_services` are further services of the namespace that the leaf is for.
    """

    service: str = "kyverno-svc"
    namespace: str = "kyverno"
    ca_secret: str = ""
    tls_secret: str = ""
    algorithm: str = "ECDSA"
    renew_before_days: float = 15
    server: str = ""
    manages: bool = True
    more_services: tuple[str, ...] = ()

    @property
    def ca_name(self) -> str:
        """The name of the authority's Secret."""
        return self.ca_secret or f"{self.service}.{self.namespace}.svc.kyverno-tls-ca"

    @property
    def tls_name(self) -> str:
        """The name of the leaf's Secret."""
        return self.tls_secret or f"{self.service}.{self.namespace}.svc.kyverno-tls-pair"

    @property
    def names(self) -> tuple[str, ...]:
        """The DNS names of the leaf."""
        return tuple(
            f"{service}{rest}"
            for service in (self.service, *self.more_services)
            for rest in ("", f".{self.namespace}", f".{self.namespace}.svc")
        )

    @property
    def server_name(self) -> str:
        """The server name that the API server uses: that of the service, or the host outside of the cluster.

        >>> CertificateSettings().server_name
        'kyverno-svc.kyverno.svc'
        >>> CertificateSettings(server="192.0.2.1:9443").server_name
        '192.0.2.1'
        """
        return _host(self.server) if self.server else f"{self.service}.{self.namespace}.svc"

    @property
    def renew_before(self) -> timedelta:
        """The time before its end at which a certificate is renewed."""
        return timedelta(days=self.renew_before_days)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Certificates (PEM, the newest first) and the private key (PEM, PKCS#8) of the newest.

    An unmanaged pair was provided by an administrator and stays their responsibility; an unmanaged
    authority needs no key.
    """

    certificates: bytes
    key: bytes
    is_managed: bool = True

    @property
    def is_alive(self) -> bool:
        """Return whether one of the certificates has not expired."""
        now = datetime.now(UTC)
        return any(each.not_valid_after_utc > now for each in self.parsed())

    def parsed(self) -> list[x509.Certificate]:
        """Return the certificates."""
        return x509.load_pem_x509_certificates(self.certificates)

    def private_key(self) -> PrivateKey:
        """Return the key; raises UnsupportedAlgorithm for other kinds of keys."""
        key = serialization.load_pem_private_key(self.key, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey):
            raise UnsupportedAlgorithm("the private key is neither ECDSA nor RSA nor Ed25519")
        return key


def _new_key(algorithm: str) -> PrivateKey:
    match algorithm.upper():
        case "RSA":
            return rsa.generate_private_key(65537, 2048)
        case "ED25519":
            return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(ec.SECP256R1())


def _pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _digest(key: PrivateKey) -> hashes.SHA256 | None:
    return None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()


def make_authority(algorithm: str, now: datetime, key: PrivateKey | None = None) -> KeyPair:
    """Make a certificate authority for a year, with a new key unless one is given."""
    key = key or _new_key(algorithm)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _AUTHORITY_NAME)])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=isinstance(key, rsa.RSAPrivateKey),
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=_AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, _digest(key))
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def make_leaf(authority: KeyPair, settings: CertificateSettings, now: datetime) -> KeyPair:
    """Make the server's certificate, signed by the newest certificate of the authority; it never outlives that one."""
    issuer, issuer_key = authority.parsed()[0], authority.private_key()
    key = _new_key(settings.algorithm)
    ends = min(now + timedelta(days=_LEAF_DAYS), issuer.not_valid_after_utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, settings.service)]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(list(_alternatives(settings))), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .sign(issuer_key, _digest(issuer_key))
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def _host(server: str) -> str:
    """Return the host of `HOST:PORT`, `[ADDRESS]:PORT` or a host alone.

    >>> [_host(each) for each in ("a.example:443", "[::1]:443", "::1", "192.0.2.1")]
    ['a.example', '::1', '::1', '192.0.2.1']
    """
    if server.startswith("["):
        return server[1:].partition("]")[0]
    return server.partition(":")[0] if server.count(":") == 1 else server


def _alternatives(settings: CertificateSettings) -> Iterable[x509.GeneralName]:
    for name in settings.names:
        yield x509.DNSName(name)
    host = _host(settings.server)
    if host:
        try:
            yield x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            yield x509.DNSName(host)


def renewed_bundle(authority: KeyPair, settings: CertificateSettings, now: datetime) -> KeyPair | None:
    """Return the authority with a new certificate for its key if all its certificates expire soon; None otherwise.

    Valid certificates stay behind the new one, so that leaves which they signed remain trusted.
    """
    certificates = authority.parsed()
    if any(_lasts(certificate, settings, now) for certificate in certificates):
        return None
    fresh = make_authority(settings.algorithm, now, authority.private_key())
    kept = [each for each in certificates if each.not_valid_after_utc > now]
    old = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in kept)
    return KeyPair(fresh.certificates + old, fresh.key)


def is_good_leaf(leaf: KeyPair, authority: KeyPair, settings: CertificateSettings, now: datetime) -> bool:
    """Return whether a leaf is signed by the authority, has its names and key, and is valid for long enough.

    An unmanaged leaf may have any names, and is valid until it expires.
    """
    is_ours = settings.manages and leaf.is_managed
    try:
        certificate = leaf.parsed()[0]
        lasts = _is_valid(certificate, now) and (not is_ours or _lasts(certificate, settings, now))
        if not lasts or certificate.public_key() != leaf.private_key().public_key():
            return False
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        if is_ours and not set(_alternatives(settings)) <= set(names):
            return False  # the API server would reject the name or address
    except (ValueError, IndexError, x509.ExtensionNotFound, UnsupportedAlgorithm):
        return False
    # OpenSSL refuses keys and signatures that the library for certificates reads
    return is_trusted(leaf, authority.certificates, now) and is_usable_pair(leaf.certificates, leaf.key)


def is_trusted(leaf: KeyPair, bundle: bytes, now: datetime) -> bool:
    """Return whether a client with this bundle (PEM) trusts a leaf: a valid certificate in it has signed the leaf."""
    certificate = leaf.parsed()[0]
    return any(_is_valid(each, now) and _signed(certificate, each) for each in _read_bundle(bundle))


def others_of(authority: KeyPair, bundles: Iterable[bytes], now: datetime) -> bytes:
    """Return the valid certificates (PEM) of bundles that are not in an authority, each once, a few at most."""
    found = {each: None for bundle in bundles for each in _read_bundle(bundle) if _is_valid(each, now)}
    others = [each for each in found if each not in authority.parsed()]
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in others[:_MOST_OTHERS])


def _read_bundle(bundle: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(bundle)
    except ValueError:  # another program wrote it, and no client can read it either
        return []


def is_good_authority(authority: KeyPair, now: datetime) -> bool:
    """Return whether the newest certificate may sign leaves, belongs to the key, and has begun to be valid.

    Leaves of another authority would be refused by every client, and be made again and again.
    """
    try:
        certificate = authority.parsed()[0]
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        return (
            constraints.ca
            and certificate.not_valid_before_utc <= now
            and certificate.public_key() == authority.private_key().public_key()
        )
    except (ValueError, IndexError, x509.ExtensionNotFound, UnsupportedAlgorithm):
        return False


def _is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _signed(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _lasts(certificate: x509.Certificate, settings: CertificateSettings, now: datetime) -> bool:
    # a time that is longer than it lives would have it renewed for ever
    half = (certificate.not_valid_after_utc - certificate.not_valid_before_utc) / 2
    return certificate.not_valid_after_utc - min(settings.renew_before, half) > now


class CertificateController:
    """Creates and renews the two Secrets; safe to run in several replicas, of which the first one wins."""

    def __init__(self, client: Client, settings: CertificateSettings) -> None:
        """Take the client and the settings of certificates."""
        self._client = client
        self._settings = settings

    async def reconcile(
        self, now: datetime | None = None, *, publish: Callable[[KeyPair], Awaitable[None]] | None = None
    ) -> tuple[KeyPair, KeyPair]:
        """Create or renew the certificates as needed; return authority and leaf.

        `publish` is called with the authority before a leaf of it is written to the Secret. Raises HostError when an
        unmanaged Secret would have to be renewed, or a Secret cannot be written.
        """
        moment = now or datetime.now(UTC)
        for _ in range(_TRIES):
            try:
                authority = await self._authority(moment)
                if publish is not None:
                    await publish(authority)
                return authority, await self._leaf(authority, moment)
            except StatusError as error:
                if error.status != 409:  # another replica was first: read again
                    raise HostError(error.message) from None
        raise HostError("another client keeps changing the certificates")

    async def _authority(self, now: datetime) -> KeyPair:
        settings = self._settings
        secret, pair = await self._read(settings.ca_name, is_authority=True)
        if pair is not None and pair.is_alive and not (settings.manages and pair.is_managed):
            return pair
        if pair is not None and pair.is_managed and not is_good_authority(pair, now):
            pair = None
        fresh = make_authority(settings.algorithm, now) if pair is None else renewed_bundle(pair, settings, now)
        if fresh is None and pair is not None:
            return pair
        return await self._write(settings.ca_name, secret, fresh or make_authority(settings.algorithm, now))

    async def _leaf(self, authority: KeyPair, now: datetime) -> KeyPair:
        settings = self._settings
        secret, pair = await self._read(settings.tls_name)
        if pair is not None and is_good_leaf(pair, authority, settings, now):
            return pair
        if not authority.key or not is_good_authority(authority, now):
            raise HostError(_NOT_OURS)
        return await self._write(settings.tls_name, secret, make_leaf(authority, settings, now))

    async def _read(self, name: str, *, is_authority: bool = False) -> tuple[JSONObject | None, KeyPair | None]:
        try:
            secret = await self._client.get(SECRETS, name, self._settings.namespace)
        except StatusError as error:
            if error.status == 404:
                return None, None
            raise
        return secret, read_pair(secret, is_authority=is_authority)

    async def _write(self, name: str, secret: JSONObject | None, pair: KeyPair) -> KeyPair:
        namespace = self._settings.namespace
        data = {
            "tls.crt": base64.b64encode(pair.certificates).decode(),
            "tls.key": base64.b64encode(pair.key).decode(),
        }
        if not self._settings.manages or (secret is not None and not _is_managed(secret)):
            raise HostError(_NOT_OURS)
        if secret is None:
            metadata = {"name": name, "namespace": namespace, "labels": MANAGED}
            body = {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/tls",
                "metadata": metadata,
                "data": data,
            }
            await self._client.create(SECRETS, body, namespace)
            return pair
        await self._client.update(SECRETS, {**secret, "data": data}, namespace)
        return pair


def _is_managed(secret: JSONObject) -> bool:
    labels = secret.get("metadata", {}).get("labels") or {}
    return MANAGED.items() <= labels.items()


def read_pair(secret: JSONObject, *, is_authority: bool = False) -> KeyPair | None:
    """Return the key pair of a Secret of type kubernetes.io/tls; None when it is unusable."""
    data = secret.get("data") or {}
    try:
        read = base64.b64decode(data.get("tls.crt") or data.get("rootCA.crt") or "", validate=True)
        certificates = x509.load_pem_x509_certificates(read)
        if len(certificates) > _MOST_CERTIFICATES:
            return None
        # text between them, such as a key, is not for the bundle that everybody can read
        plain = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)
        pair = KeyPair(plain, base64.b64decode(data.get("tls.key") or "", validate=True), _is_managed(secret))
        if pair.key or pair.is_managed or not is_authority:
            pair.private_key()
    except (ValueError, TypeError, binascii.Error, UnsupportedAlgorithm):
        return None
    return pair
