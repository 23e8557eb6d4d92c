"""CertificateSigningRequests: approval and signing."""

from __future__ import annotations

import base64
from datetime import timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubesandbox.controllers.certificatesigning import is_self_approved, lifetime_of
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster

REQUESTS = "certificatesigningrequests.certificates.k8s.io"
CLIENT = "kubernetes.io/kube-apiserver-client"


def request(signer: str, name: str = "jane", **spec: object) -> JSONObject:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    pem = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    text = base64.b64encode(pem.public_bytes(serialization.Encoding.PEM)).decode()
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "csr"},
        "spec": {"request": text, "signerName": signer, "usages": ["client auth"], **spec},
    }


async def approve(cluster: Cluster, kind: str = "Approved") -> None:
    body = cluster.get(REQUESTS, "csr", "")
    conditions = [{"type": kind, "status": "True", "reason": "KubectlApprove", "message": "by hand"}]
    status = {**(body.get("status") or {}), "conditions": conditions}
    await cluster.client.update(REQUESTS, {**body, "status": status}, subresource="approval")
    await cluster.settle()


def certificate(cluster: Cluster) -> str:
    return str((cluster.get(REQUESTS, "csr", "").get("status") or {}).get("certificate", ""))


@in_cluster
async def test_an_approved_request_is_signed(cluster: Cluster) -> None:
    """It is signed only after its approval, for the requested name."""
    await cluster.create(REQUESTS, request(CLIENT))
    assert "" == certificate(cluster)
    await approve(cluster)
    found = x509.load_pem_x509_certificate(base64.b64decode(certificate(cluster)))
    assert ["jane"] == [item.value for item in found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]


@in_cluster
async def test_others_are_left_alone(cluster: Cluster) -> None:
    """Denied requests and those of foreign signers are ignored."""
    await cluster.create(REQUESTS, request(CLIENT))
    await approve(cluster, "Denied")
    assert "" == certificate(cluster)
    await cluster.client.delete(REQUESTS, "csr")
    await cluster.create(REQUESTS, request("example.com/mine"))
    await approve(cluster)
    assert "" == certificate(cluster)


def test_only_nodes_approve_themselves() -> None:
    """With the signer that is for them."""
    signer = "kubernetes.io/kube-apiserver-client-kubelet"
    assert is_self_approved({"spec": {"groups": ["system:nodes"], "signerName": signer}})
    assert not is_self_approved({"spec": {"groups": ["system:nodes"], "signerName": CLIENT}})
    assert not is_self_approved({"spec": {"groups": ["devs"], "signerName": signer}})


def test_a_lifetime_has_bounds() -> None:
    """The lifetime is limited to between ten minutes and a year."""
    found = [lifetime_of({"spec": spec}) for spec in ({}, {"expirationSeconds": 1}, {"expirationSeconds": 10**9})]
    assert [timedelta(days=365), timedelta(minutes=10), timedelta(days=365)] == found
