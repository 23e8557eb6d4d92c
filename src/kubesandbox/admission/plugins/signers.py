"""Certificate signing requests: requester, permissions to approve and sign, and no request for system:masters.

Permission is the verb `approve` or `sign` on the signer.
"""

from __future__ import annotations

import base64
import binascii

from kubesandbox.admission.policies.requests import refused
from kubesandbox.attributes import Attributes
from kubesandbox.authorization.access import MASTERS, AccessAttributes, Authorizer
from kubesandbox.parsing.requests import go_quote
from pyverno.engine.request import Operation
from pyverno.kube.json import JSONObject, equal

__all__ = ["admit_requestor", "check_signers"]

_REQUESTS = "certificatesigningrequests.certificates.k8s.io"
_REQUESTOR = ("username", "uid", "groups", "extra")
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


def admit_requestor(attributes: Attributes) -> Attributes:
    """Return the request with its sender as the user: approvers rely on it, so no client may set it."""
    if attributes.type.key != _REQUESTS or attributes.operation is not Operation.CREATE or attributes.object is None:
        return attributes
    user = attributes.user.to_json()
    spec = {key: value for key, value in (attributes.object.get("spec") or {}).items() if key not in _REQUESTOR}
    return attributes.with_object({**attributes.object, "spec": {**spec, **user}})


def check_signers(attributes: Attributes, authorizer: Authorizer) -> None:
    """Raise 403 for an approval or a signature without permission, and for a request for the masters' group."""
    if attributes.type.key != _REQUESTS or attributes.object is None:
        return
    if not attributes.subresource:
        _check_subject(attributes)
    elif attributes.operation is Operation.UPDATE and attributes.old is not None:
        signer = str((attributes.old.get("spec") or {}).get("signerName") or "")
        is_signature = attributes.subresource == "status" and _is_answered(attributes.object, attributes.old)
        if attributes.subresource == "approval" and not _may(attributes, authorizer, "approve", signer):
            raise refused(attributes, f"user not permitted to approve requests with signerName {go_quote(signer)}")
        if is_signature and not _may(attributes, authorizer, "sign", signer):
            raise refused(attributes, f"user not permitted to sign requests with signerName {go_quote(signer)}")


def _is_answered(new: JSONObject, old: JSONObject) -> bool:
    """Return whether an update changes the certificate or the conditions in the status."""
    after, before = ((body.get("status") or {}) for body in (new, old))
    return any(not equal(after.get(key), before.get(key)) for key in ("certificate", "conditions"))


def _may(attributes: Attributes, authorizer: Authorizer, verb: str, signer: str) -> bool:
    """Return whether the user may do this for a signer by name, or for all signers of its domain."""
    domain, _, _ = signer.partition("/")
    return any(
        authorizer.authorize(
            AccessAttributes(
                attributes.user, verb, group="certificates.k8s.io", version="*", resource="signers", name=name
            )
        ).allowed
        for name in (signer, f"{domain}/*")
    )


def _check_subject(attributes: Attributes) -> None:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    spec: JSONObject = (attributes.object or {}).get("spec") or {}
    if spec.get("signerName") != _CLIENT_SIGNER:
        return
    try:
        wanted = x509.load_pem_x509_csr(base64.b64decode(spec.get("request") or ""))
    except (ValueError, TypeError, binascii.Error):
        raise refused(attributes, "failed to parse CSR: PEM block type must be CERTIFICATE REQUEST") from None
    groups = [attribute.value for attribute in wanted.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    if MASTERS in groups:
        raise refused(attributes, f"use of {_CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
