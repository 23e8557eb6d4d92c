"""A webhook server on a free port with its own certificate, and a client."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pyverno.engine.host import NO_HOST, Host
from pyverno.engine.request import User
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS, KindTable
from pyverno.offline.library import compile_policies
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.policies import Policies
from pyverno.webhook.server import Limits, Special, WebhookServer
from pyverno.webhook.tls import ServerTls

__all__ = ["Certificate", "MemoryWorld", "Recorded", "SettableHealth", "make_certificate", "make_server", "review_body"]


@dataclass(frozen=True, slots=True)
class Certificate:
    """A self-signed certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def client_context(self) -> ssl.SSLContext:
        """Return a client context that trusts this certificate only."""
        return ssl.create_default_context(cadata=self.certificate.decode())


def make_certificate(name: str = "localhost") -> Certificate:
    """Create a certificate for localhost; the name distinguishes certificates."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


@dataclass
class MemoryWorld:
    """The webhook's view of a cluster, held in plain fields."""

    policies: Policies = field(default_factory=Policies)
    configuration: Configuration = field(default_factory=Configuration)
    kinds: KindTable = BUILTIN_KINDS
    own_namespace: str = "kyverno"
    protects_managed: bool = False
    namespaces: Mapping[str, JSONObject] = field(default_factory=dict)
    roles: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)

    def namespace(self, name: str) -> JSONObject | None:
        """Return a given namespace, or one without labels if none were given at all."""
        return self.namespaces.get(name) if self.namespaces else {"metadata": {"name": name}}

    def roles_of(self, user: User, namespace: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the roles for a user name."""
        return self.roles.get(user.username, ((), ()))


class SettableHealth:
    """A health object that tests can set to a problem."""

    def __init__(self) -> None:
        self.trouble = ""

    def problem(self) -> str:
        """Return the problem."""
        return self.trouble


class Recorded:
    """Records the server's notifications."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, AdmissionOutcome]] = []
        self.failures: list[tuple[str, BaseException]] = []

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Record an answer."""
        self.answers.append((path, outcome))

    def failed(self, path: str, error: BaseException) -> None:
        """Record a failure."""
        self.failures.append((path, error))


def make_server(
    certificate: Certificate,
    *policies: JSONObject,
    cluster: MemoryWorld | None = None,
    host: Host = NO_HOST,
    observer: Recorded | None = None,
    health: SettableHealth | None = None,
    special: Mapping[str, Special] | None = None,
    limits: Limits | None = None,
) -> WebhookServer:
    """Create a server with these policies."""
    cluster = cluster or MemoryWorld()
    if policies:
        cluster.policies = Policies(compile_policies(policies))
    return WebhookServer(
        cluster=cluster,
        host=host,
        tls=ServerTls(certificate.certificate, certificate.key),
        health=health or SettableHealth(),
        observer=observer or Recorded(),
        special=special,
        limits=limits,
    )


def review_body(resource: JSONObject, **request: Any) -> JSONObject:
    """Return an AdmissionReview for the creation of an object."""
    group, _, version = str(resource["apiVersion"]).rpartition("/")
    metadata = resource.get("metadata", {})
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "uid-1",
            "operation": "CREATE",
            "kind": {"group": group, "version": version, "kind": resource["kind"]},
            "resource": {"group": group, "version": version, "resource": f"{str(resource['kind']).lower()}s"},
            "name": metadata.get("name", ""),
            "namespace": metadata.get("namespace", ""),
            "userInfo": {"username": "alice", "groups": ["devs"]},
            "object": resource,
            "oldObject": None,
            **request,
        },
    }
