"""Kyverno's x509 library: the fields of a certificate or a certificate request.

It never judges whether a certificate can be trusted.
"""

from __future__ import annotations

from typing import Final

from pyverno.errors import BudgetExceededError, EvaluationError
from pyverno.kube.json import JSON
from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.json_values import with_doubles
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.work import walking

__all__ = ["X509"]

_CERTIFICATE_FIELDS: Final = frozenset(
    {
        "Raw", "RawTBSCertificate", "RawSubjectPublicKeyInfo", "RawSubject", "RawIssuer", "Signature",
        "PublicKeyAlgorithm", "PublicKey", "SerialNumber", "Issuer", "NotBefore", "NotAfter", "KeyUsage",
        "Extensions", "ExtraExtensions", "ExtKeyUsage", "BasicConstraintsValid", "IsCA", "MaxPathLen",
        "MaxPathLenZero", "AuthorityKeyId", "OCSPServer", "IssuingCertificateURL", "DNSNames", "EmailAddresses",
        "IPAddresses", "PermittedDNSDomainsCritical", "PermittedDNSDomains", "ExcludedDNSDomains",
        "PermittedIPRanges", "ExcludedIPRanges", "PermittedEmailAddresses", "ExcludedEmailAddresses",
        "PermittedURIDomains", "ExcludedURIDomains", "CRLDistributionPoints", "PolicyIdentifiers",
    }
)  # fmt: skip
"""Kyverno shows these fields of a certificate; a request is shown with all of its fields."""


@function("x509.decode", "(string) -> dyn", in_context=True, work=walking(per=16))
def decode(evaluation: Evaluation, pem: str) -> JSON:
    """The fields of a certificate or certificate request with an RSA key, under Go's names; numbers are doubles.

    A certificate has no Subject, only RawSubject in base64; a request has both.
    """
    from pyverno.lang.x509.certificate import MAX_PEM  # loads cryptography
    from pyverno.lang.x509.certificate import decode as decode_pem

    if len(pem) > MAX_PEM:
        raise BudgetExceededError(f"x509.decode takes no more than {MAX_PEM} bytes", resource="bytes")
    try:
        fields = decode_pem(pem)
    except EvaluationError as error:
        raise OperandError("the text holds no certificate that can be read", error.message) from None
    if "RawTBSCertificate" in fields:
        fields = {name: value for name, value in fields.items() if name in _CERTIFICATE_FIELDS}
    return with_doubles(fields, evaluation.runtime.budget)


X509: Final = Library("kyverno.x509", (decode,), introduced="1.17", doc="Certificates.")
