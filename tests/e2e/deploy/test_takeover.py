"""The admission controller, with the chart's roles, takes over a cluster in which Kyverno's controllers ran."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kubesandbox import Sandbox
from tests.deploy.charts import CHARTS
from tests.e2e.deploy.test_lifecycle import HOOKS, account_kubeconfig, controller, names, until
from tests.e2e.sandbox.client import Client
from tests.support.ports import free_port

helm = pytest.importorskip("helm_python", reason="helm-python-sdk has no build for this platform")
SECRETS = "/api/v1/namespaces/kyverno/secrets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kyverno/leases"
POLICIES = "/apis/kyverno.io/v1/clusterpolicies"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SERVICE = "kyverno-svc.kyverno.svc"
CLEANUP = "kyverno-cleanup-validating-webhook-cfg"
NOW = datetime.now(UTC).replace(microsecond=0)


def secret(name: str, certificate: x509.Certificate, key: rsa.RSAPrivateKey) -> dict[str, Any]:
    """Return a Secret as Kyverno writes it: an RSA key in its traditional form."""
    written = {
        "tls.crt": certificate.public_bytes(Encoding.PEM),
        "tls.key": key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()),
    }
    return {
        "metadata": {"name": name, "labels": {"cert.kyverno.io/managed-by": "kyverno"}},
        "type": "kubernetes.io/tls",
        "data": {key: base64.b64encode(data).decode() for key, data in written.items()},
    }


def secrets() -> list[dict[str, Any]]:
    """Return the authority and the certificate of the webhook, valid for a year and for 150 days as Kyverno's."""
    authority_key, key = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "*.kyverno.svc")])

    def signed(public: rsa.RSAPublicKey, days: int, *extensions: x509.ExtensionType, name: str) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number())
        builder = builder.not_valid_before(NOW - timedelta(hours=1)).not_valid_after(NOW + timedelta(days=days))
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(authority_key, hashes.SHA256())

    flags = {"content_commitment": False, "data_encipherment": False, "key_agreement": False, "crl_sign": False}
    usage = x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=True,
        encipher_only=False,
        decipher_only=False,
        **flags,
    )
    hosts = [x509.DNSName(name) for name in ("kyverno-svc", "kyverno-svc.kyverno", SERVICE)]
    authority = signed(
        authority_key.public_key(), 365, x509.BasicConstraints(ca=True, path_length=None), usage, name="*.kyverno.svc"
    )
    server = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH])
    leaf = signed(key.public_key(), 150, x509.SubjectAlternativeName(hosts), server, name="kyverno-svc")
    return [
        secret(f"{SERVICE}.kyverno-tls-ca", authority, authority_key),
        secret(f"{SERVICE}.kyverno-tls-pair", leaf, key),
    ]


def test_what_kyverno_leaves_is_used_and_not_replaced(tmp_path: Path) -> None:
    """Certificates stay, the lease changes hands, webhooks point to the new Service, stored policies are enforced."""
    port = free_port()
    lease = {"holderIdentity": "kyverno-admission-controller-7497bcf9c8-7t9j4", "leaseDurationSeconds": 15}
    lease |= dict.fromkeys(
        ("acquireTime", "renewTime"), (NOW - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    )
    pattern = {"metadata": {"labels": {"team": "?*"}}}
    rule = {
        "name": "team",
        "skipBackgroundRequests": True,
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "namespaces": ["default"]}}]},
        "validate": {"allowExistingViolations": True, "failureAction": "Enforce", "message": "no", "pattern": pattern},
    }
    policy = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "team"},
        "spec": {"admission": True, "background": True, "emitWarning": False, "rules": [rule]},
    }
    with (
        Sandbox(services={("kyverno", "kyverno-svc"): ("127.0.0.1", port)}, namespaces=("kyverno",)) as sandbox,
        helm.Config(kubeconfig_path=sandbox.kubeconfig, namespace="kyverno") as releases,
    ):
        client = Client(sandbox.kubeconfig)
        releases.install(str(CHARTS / "pyverno"), "kyverno", {"mode": "split"}, wait="watcher", timeout=300)
        left = secrets()
        webhook = {
            "name": "kyverno-cleanup-controller.kyverno.svc",
            "clientConfig": {
                "caBundle": left[0]["data"]["tls.crt"],
                "service": {"namespace": "kyverno", "name": "kyverno-cleanup-controller", "path": "/validate"},
            },
            "rules": [
                {
                    "apiGroups": ["kyverno.io"],
                    "apiVersions": ["v2"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["cleanuppolicies"],
                }
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        labels = {"webhook.kyverno.io/managed-by": "kyverno"}
        objects = [
            *((SECRETS, each) for each in left),
            (LEASES, {"metadata": {"name": "kyverno"}, "spec": lease}),
            (HOOKS[0], {"metadata": {"name": CLEANUP, "labels": labels}, "webhooks": [webhook]}),
            (POLICIES, policy),
        ]
        assert [201] * 5 == [client.post(path, each).status for path, each in objects]
        before = {name: client.get(f"{SECRETS}/{name}").body for name in names(client, SECRETS)}
        uid = client.get(f"{HOOKS[0]}/{CLEANUP}").body["metadata"]["uid"]
        process = controller(account_kubeconfig(sandbox, client, "kyverno-admission-controller", tmp_path / "a"), port)
        try:
            until(
                "the policy is enforced",
                lambda: client.post(f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "a"}}).status == 400,
            )
            until(
                "the webhook of cleanup policies is ours",
                lambda: (
                    client.get(f"{HOOKS[0]}/{CLEANUP}").body["webhooks"][0]["clientConfig"]["service"]["name"]
                    == "kyverno-svc"
                ),
            )
            found = client.get(f"{HOOKS[0]}/{CLEANUP}").body
            bundle = found["webhooks"][0]["clientConfig"]["caBundle"]
            assert (uid, left[0]["data"]["tls.crt"]) == (found["metadata"]["uid"], bundle)
            assert before == {name: client.get(f"{SECRETS}/{name}").body for name in before}
            assert "first" == client.get(f"{LEASES}/kyverno").body["spec"]["holderIdentity"]
        finally:
            process.kill()
            process.wait()
            client.close()
