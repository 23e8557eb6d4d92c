"""Chains of certificates: what signers offer is searched in few steps, however it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pyverno.errors import VerificationError
from pyverno.images.verification.certificates import Certificate, read_certificate
from pyverno.images.verification.chain import VerifiedIssuers, check_chain
from tests.authority.certificates import moment
from tests.authority.signing import SigningServices

NOW = 1_700_000_000
DAY = 86_400
KEYS = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("root", "leaf", "a", "b")}


def _certificate(
    subject: str,
    issuer: str,
    key: str,
    issuer_key: str,
    *,
    is_authority: bool = True,
    ends: int = NOW + DAY,
    allows: str = "",
    host: str = "",
    size: int = 0,
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
        name = x509.DNSName(host) if host else x509.RFC822Name("dev@example.com")
        builder = builder.add_extension(x509.SubjectAlternativeName([name]), critical=True)
    if size:
        other = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), bytes(size))
        builder = builder.add_extension(other, critical=False)
    if allows:
        builder = builder.add_extension(x509.NameConstraints([x509.DNSName(allows)], None), critical=True)
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
    """The certificate of the signer is still valid, that of its issuer is not (CVE-2026-24122)."""
    expired = _certificate("a", "root", "a", "root", ends=NOW - 1)
    found = [_problem([expired]), _problem([expired, BETWEEN]), _problem([BETWEEN])]
    text = "the certificate does not lead to a trusted authority at 2023-11-14T22:13:20Z"
    assert found == [text, "two intermediate certificates have the same subject and key", ""]


def test_more_than_ten_intermediate_certificates_are_an_error() -> None:
    """The signer chooses their number, so it needs a limit (f1a96376)."""
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


# --------------------------------------------------------------------------------------------------------- remembered


LONG = NOW + 10 * DAY
OTHER_ROOT = _certificate("root", "root", "b", "b")
LONG_BETWEEN = _certificate("a", "root", "a", "root", ends=LONG)
LONG_ROOT = _certificate("root", "root", "root", "root", ends=LONG)
LEADS_NOWHERE = "the certificate does not lead to a trusted authority at "


def _leaf(key: str = "a", **options: Any) -> Certificate:
    return _certificate("second", "a", "b", key, is_authority=False, **options)


def _found(leaf: Certificate, offered: Sequence[Certificate], root: Certificate, time: int, known: Any) -> str:
    try:
        chain = check_chain(leaf, offered, [root], time, known=known)
    except VerificationError as error:
        return error.message
    return " < ".join(each.x509.subject.rfc4514_string() for each in chain)


@dataclass(frozen=True)
class Second:
    """A signer that comes after another one, and what is found of it."""

    found: str
    leaf: Certificate
    offered: Certificate = BETWEEN
    roots: tuple[Certificate, Certificate] = (ROOT, ROOT)
    time: int = NOW
    first: Certificate = LEAF


SAME = _leaf(ends=LONG)
RESTRICTED = _certificate("root", "root", "root", "root", allows="example.com")
SECOND = {
    "another signer": Second("CN=second < CN=a < CN=root", _leaf()),
    "a forged signer": Second(LEADS_NOWHERE, _leaf("b")),
    "a signer that is too late": Second("the certificate was not valid at ", _leaf(), time=LONG),
    "an expired root": Second(LEADS_NOWHERE, _leaf(ends=LONG), LONG_BETWEEN, time=NOW + 2 * DAY),
    "an expired issuer": Second(LEADS_NOWHERE, _leaf(ends=LONG), BETWEEN, (LONG_ROOT, LONG_ROOT), NOW + 2 * DAY),
    "another root of the same name": Second(LEADS_NOWHERE, _leaf(), roots=(ROOT, OTHER_ROOT)),
    "the same signer": Second("CN=second < CN=a < CN=root", SAME, first=SAME),
    "the same signer below an expired issuer": Second(
        LEADS_NOWHERE, SAME, BETWEEN, (LONG_ROOT, LONG_ROOT), NOW + 2 * DAY, first=SAME
    ),
    "the same signer below another root": Second(LEADS_NOWHERE, SAME, roots=(ROOT, OTHER_ROOT), first=SAME),
    "a name that the root does not allow": Second(
        LEADS_NOWHERE, _leaf(host="evil.org"), roots=(RESTRICTED, RESTRICTED), first=_leaf(host="a.example.com")
    ),
}


@pytest.mark.parametrize("case", SECOND)
def test_issuers_that_are_remembered_prove_no_more_than_before(case: str) -> None:
    """The second signer below the same issuers is judged as if it were the first."""
    second, known = SECOND[case], VerifiedIssuers()
    first = _found(second.first, [second.offered], second.roots[0], NOW, known)
    found = [_found(second.leaf, [second.offered], second.roots[1], second.time, each) for each in (known, None)]
    assert (True, True, found[1]) == (" < CN=a < " in first, found[0].startswith(second.found), found[0])


def test_a_usage_is_compared_again() -> None:
    """An authority that may certify signers of code may not certify others."""
    services = SigningServices()
    between, root = (read_certificate(each.public_bytes(Encoding.DER)) for each in services.authority.chain)
    leaves = [read_certificate(services.authority.issue().certificate.public_bytes(Encoding.DER)) for _ in range(2)]
    known = VerifiedIssuers()
    check_chain(leaves[0], [between], [root], services.now, known=known)
    with pytest.raises(VerificationError, match="is not for certificates of this usage"):
        check_chain(leaves[1], [between], [root], services.now, ExtendedKeyUsageOID.TIME_STAMPING, known=known)


def test_few_issuers_are_remembered() -> None:
    """Signers choose what they offer: neither many nor large certificates are kept."""
    known = VerifiedIssuers()
    others = [_certificate("other", "root", "b", "root") for _ in range(33)]
    offered = [(BETWEEN, each) for each in (*others, _certificate("other", "root", "b", "root", size=20_000))]
    for each in offered:
        check_chain(LEAF, each, [ROOT], NOW, known=known)
    kept = [known.find(((ROOT,), each), NOW) is not None for each in (offered[0], offered[-2], offered[-1])]
    assert kept == [False, True, False]


def test_few_chains_are_remembered() -> None:
    """Signers choose their certificates: neither many nor large ones are kept."""
    known, key = VerifiedIssuers(), ((ROOT,), (BETWEEN,))
    leaves = [_leaf(ends=LONG + number) for number in range(65)]
    for each in (*leaves, large := _leaf(size=20_000)):
        check_chain(each, [BETWEEN], [ROOT], NOW, known=known)
    kept = [known.chain_of(each, key, NOW) != () for each in (leaves[0], leaves[-1], large)]
    assert kept == [False, True, False]


def test_a_name_like_the_form_of_its_text_is_a_name() -> None:
    """Names are compared as they are encoded; their text is only shown, and never parsed (CVE-2023-25656)."""
    names = ("=#" * 32, "#04024869", "CN=root", "a,CN=a+", "\\" * 64)
    leaves = [_certificate(each, "a", "leaf", "a", is_authority=False) for each in names]
    assert leaves == [check_chain(each, [BETWEEN], [ROOT], NOW)[0] for each in leaves]
    foreign = _certificate("CN=root", "CN=root", "b", "b")
    with pytest.raises(VerificationError, match="does not lead to a trusted authority"):
        check_chain(_certificate("x", "CN=root", "leaf", "b", is_authority=False), [foreign], [ROOT], NOW)


def test_a_name_that_is_a_string_of_bits_is_an_error_of_ours() -> None:
    """The parser of certificates raises a TypeError for it."""
    data = LEAF.der.replace(b"\x0c\x04leaf", b"\x03\x04\x00eaf")
    with pytest.raises(VerificationError, match="the certificate cannot be read"):
        read_certificate(data)
