"""Permissions to approve and sign certificates."""

from __future__ import annotations

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kubesandbox.admission.plugins.signers import admit_requestor, check_signers
from kubesandbox.authorization.access import Access, EverythingAllowed
from pyverno.engine.request import Operation
from pyverno.kube.status import StatusError
from tests.support.admissionstage import request

CLIENT = "kubernetes.io/kube-apiserver-client"


class Allows:
    """Allows one verb on one signer."""

    def __init__(self, verb="", name=""):
        self.allowed = (verb, name)

    def authorize(self, attributes):
        return Access((attributes.verb, attributes.name) == self.allowed)


def signing(*organizations, signer=CLIENT, **status):
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    key = ec.generate_private_key(ec.SECP256R1())
    built = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, SHA256())
    text = base64.b64encode(built.public_bytes(Encoding.PEM)).decode()
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "csr"},
        "spec": {"request": text, "signerName": signer},
        "status": status,
    }


@pytest.mark.parametrize(
    ("subresource", "status", "verb", "why"),
    [
        ("approval", {}, "approve", "approve requests"),
        ("status", {"certificate": "AA=="}, "sign", "sign requests"),
        ("status", {"conditions": [{"type": "Failed"}]}, "sign", "sign requests"),
    ],
)
def test_signers_have_permissions_of_their_own(subresource, status, verb, why):
    """The verb is needed on the signer by name, or on all signers of its domain."""
    old = signing()
    attributes = request({**old, "status": status}, old=old, operation=Operation.UPDATE, subresource=subresource)
    with pytest.raises(StatusError) as refused:
        check_signers(attributes, Allows())
    head = 'certificatesigningrequests.certificates.k8s.io "csr" is forbidden: user not permitted to'
    assert f'{head} {why} with signerName "{CLIENT}"' == refused.value.message
    check_signers(attributes, Allows(verb, CLIENT))
    check_signers(attributes, Allows(verb, "kubernetes.io/*"))


def test_requests_name_the_real_user():
    """The server replaces the user that a client writes into the request by the authenticated one."""
    body = signing()
    body["spec"] |= {"username": "root", "groups": ["system:masters"], "uid": "0"}
    spec = admit_requestor(request(body)).object["spec"]
    assert ("jane", ["dev", "system:authenticated"], None) == (spec["username"], spec["groups"], spec.get("uid"))
    assert body == admit_requestor(request(body, old=body, operation=Operation.UPDATE)).object


def test_other_parts_of_a_status_need_no_signer():
    """Only the certificate and the conditions are an answer."""
    old = signing()
    check_signers(request(old, old=old, operation=Operation.UPDATE, subresource="status"), Allows())


def test_system_masters_cannot_be_requested():
    """A client certificate with the group `system:masters` is refused for every user."""
    with pytest.raises(StatusError, match="signer with system:masters group is not allowed"):
        check_signers(request(signing("dev", "system:masters")), EverythingAllowed())
    check_signers(request(signing("dev")), EverythingAllowed())
    check_signers(request(signing("system:masters", signer="example.com/own")), EverythingAllowed())


def test_a_request_that_can_not_be_read_is_refused():
    """The subject of such a request cannot be checked."""
    body = signing()
    body["spec"]["request"] = "AAAA"
    with pytest.raises(StatusError, match="failed to parse CSR"):
        check_signers(request(body), EverythingAllowed())
