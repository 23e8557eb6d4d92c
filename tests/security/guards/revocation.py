"""The guards of the revocation of certificates (I7)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["REVOCATION"]

_TEST: Final = "tests/unit/images/verification/test_revocation.py"
_REVOKED: Final = f"{_TEST}::test_a_certificate_that_is_revoked_fails"
_UNDECIDED: Final = f"{_TEST}::test_a_certificate_that_may_be_revoked_fails"
_CLIENT: Final = "tests/unit/registry/test_revocation.py"
_PURE, _NOTARY = "images/verification/revocation.py", "images/verification/notary/verify.py"

_ROWS: Final[tuple[tuple[str, str, str, str, str], ...]] = (
    ("lists revoke", _REVOKED, _PURE, "if entry is not None:", "if False:"),
    ("responders revoke", _REVOKED, _PURE, "if status is ocsp.OCSPCertStatus.REVOKED:", "if False:"),
    (
        "an unknown certificate is undecided",
        _UNDECIDED,
        _PURE,
        "if status is not ocsp.OCSPCertStatus.GOOD:",
        "if False:",
    ),
    ("answers are for one certificate", _UNDECIDED, _PURE, "if not is_same:", "if False:"),
    (
        "issuers authorize responders",
        _UNDECIDED,
        _PURE,
        "return is_valid and usage is not None and ExtendedKeyUsageOID.OCSP_SIGNING in usage",
        "return is_valid",
    ),
    ("issuers issue responders", _UNDECIDED, _PURE, "delegate.x509.verify_directly_issued_by(issuer.x509)", "pass"),
    (
        "issuers sign lists",
        _UNDECIDED,
        _PURE,
        "and found.is_signature_valid(issuer.x509.public_key())  # type: ignore[arg-type]",
        "and True",
    ),
    (
        "answers are current",
        _UNDECIDED,
        _PURE,
        "if begins.timestamp() > now + _SKEW or ends is None or ends.timestamp() < now:",
        "if ends is None:",
    ),
    ("lists are whole", _UNDECIDED, _PURE, "if not is_whole:", "if False:"),
    ("only HTTP is read", _UNDECIDED, _PURE, 'if not url.startswith(("http://", "https://")):', "if False:"),
    (
        "all lists count",
        _REVOKED,
        _PURE,
        "for url in places.lists:\n",
        "for url in places.lists[:1]:\n",
    ),
    (
        "a responder that is away decides nothing",
        _UNDECIDED,
        _PURE,
        "if problem is not None and not places.lists:",
        "if False:",
    ),
    (
        "addresses of strangers are not read",
        f"{_TEST}::test_no_address_of_a_signer_without_trust_is_read",
        _NOTARY,
        "if not (self.is_signed and self.is_trusted):",
        "if False:",
    ),
    (
        "authorities of time stamps may be revoked",
        f"{_TEST}::test_certificates_of_time_stamps_may_be_revoked",
        _NOTARY,
        "if self.stamping:",
        "if False:",
    ),
    (
        "the certificate of a stamp is that of its signer",
        f"{_TEST}::test_a_certificate_beside_the_one_that_stamped_proves_nothing",
        "images/verification/timestamps.py",
        "if (each.x509.issuer, each.x509.serial_number) in named}",
        "if not each.is_self_issued and each.x509.serial_number not in {number for _, number in named}}",
    ),
    (
        "redirects are not followed",
        f"{_CLIENT}::test_a_response_that_is_no_current_list_is_an_error",
        "registry/revocation.py",
        "if answer.status != 200:",
        "if False:",
    ),
    (
        "answers end",
        f"{_CLIENT}::test_an_answer_is_read_once_while_it_is_current",
        "registry/revocation.py",
        "if kept is not None and self._clock() < kept[1]:",
        "if kept is not None:",
    ),
)
"""Name, test, module, text and replacement of each guard."""

REVOCATION: Final = tuple(
    guard("I7", f"revocation: {name}", test, (module, text, other)) for name, test, module, text, other in _ROWS
)
