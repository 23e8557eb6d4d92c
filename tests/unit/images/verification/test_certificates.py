"""Chains of certificates: what signers offer is searched in few steps, however it is made."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from pyverno.errors import VerificationError
from pyverno.images.verification.certificates import Certificate, check_chain, read_certificate
from tests.authority.certificates import moment

NOW = 1_700_000_000
DAY = 86_400
KEYS = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("root", "leaf", "a", "b")}


def _certificate(
    subject: str, issuer: str, key: str, issuer_key: str, *, is_authority: bool = True, ends: int = NOW + DAY
) -> Certificate:
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (subject, issuer)]
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(KEYS[issuer_key].public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(names[0])
        .issuer_name(names[1])
        .public_key(KEYS[key].public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment(NOW - DAY))
        .not_valid_after(moment(ends))
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(KEYS[key].public_key()), critical=False)
        .add_extension(identifier, critical=False)
    )
    if not is_authority:
        email = x509.SubjectAlternativeName([x509.RFC822Name("dev@example.com")])
        builder = builder.add_extension(email, critical=True)
    return read_certificate(builder.sign(KEYS[issuer_key], hashes.SHA256()).public_bytes(Encoding.DER))


ROOT = _certificate("root", "root", "root", "root")
BETWEEN = _certificate("a", "root", "a", "root")
LEAF = _certificate("leaf", "a", "leaf", "a", is_authority=False)


def _problem(offered: Sequence[Certificate]) -> str:
    try:
        check_chain(LEAF, offered, [ROOT], NOW)
    except VerificationError as error:
        return error.message
    return ""


def test_a_chain_leads_through_what_is_offered() -> None:
    """The twin of the limits: the same certificate twice is one, and ten that nothing needs do no harm."""
    others = [_certificate(f"other {number}", "root", "b", "root") for number in range(9)]
    chain = check_chain(LEAF, [BETWEEN, *others, BETWEEN], [ROOT], NOW)
    assert (LEAF, BETWEEN, ROOT) == chain


def test_an_authority_between_that_has_expired_leads_nowhere() -> None:
    """The certificate of the signer is still valid, that of its issuer is not."""
    expired = _certificate("a", "root", "a", "root", ends=NOW - 1)
    found = [_problem([expired]), _problem([expired, BETWEEN]), _problem([BETWEEN])]
    text = "the certificate does not lead to a trusted authority at 2023-11-14T22:13:20Z"
    assert found == [text, "two intermediate certificates have the same subject and key", ""]


def test_more_than_ten_intermediate_certificates_are_an_error() -> None:
    """Whoever signs chooses how many there are (f1a96376)."""
    others = [_certificate(f"other {number}", "root", "b", "root") for number in range(10)]
    assert "there are more than 10 intermediate certificates" == _problem([BETWEEN, *others])


@pytest.mark.parametrize(
    "offered",
    [
        [_certificate("a", "a", "a", "a") for _ in range(3)],
        [_certificate("a", "b", "a", "b"), _certificate("b", "a", "b", "a"), _certificate("b", "a", "b", "a")],
    ],
    ids=["one name", "a circle"],
)
def test_certificates_that_issue_each_other_in_many_ways_are_an_error(offered: Sequence[Certificate]) -> None:
    """Each search step would multiply with the next: ten certificates would keep a thread for hours (f1a96376)."""
    assert "two intermediate certificates have the same subject and key" == _problem(offered)
