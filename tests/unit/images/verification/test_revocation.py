"""Revocation of the certificates of Notary: what decides, and what leaves a certificate undecided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID

from pyverno.errors import HostError
from pyverno.images.verification.certificates import read_certificate, read_certificates
from pyverno.images.verification.notary.envelope import read_notary
from pyverno.images.verification.notary.verify import Level, NotaryAttestor, NotaryTarget, verify_notary
from pyverno.images.verification.revocation import current_until
from pyverno.images.verification.timestamps import verify_timestamp
from pyverno.images.verification.trust import Authority
from tests.authority.notary import JWS, NotarySigner
from tests.authority.revocation import list_at, ocsp_answer, responder_at, revocation_list
from tests.authority.timestamps import TimeAuthority

DIGEST = "sha256:" + "ab" * 32
LIST, OTHER, RESPONDER, SECOND = (f"http://pki.example.com/{name}" for name in ("list", "other", "ocsp", "second"))
NOW = 1_700_000_000
LISTED = NotarySigner(extensions=(list_at(LIST),))
TWICE = NotarySigner(extensions=(list_at(LIST, OTHER),))
ONLINE = NotarySigner(extensions=(responder_at(RESPONDER),))
SPARE = NotarySigner(extensions=(responder_at(RESPONDER, SECOND),))
BOTH = NotarySigner(extensions=(responder_at(RESPONDER), list_at(LIST)))
STRANGER = NotarySigner()
RESPONDING, SERVING = ExtendedKeyUsageOID.OCSP_SIGNING, ExtendedKeyUsageOID.SERVER_AUTH
Answers = Mapping[str, Callable[[], bytes]]


def _scope(**given: bool) -> x509.IssuingDistributionPoint:
    flags = {"only_contains_user_certs": False, "only_contains_ca_certs": False, "indirect_crl": False, **given}
    point = [x509.UniformResourceIdentifier(LIST)]
    return x509.IssuingDistributionPoint(
        full_name=point,
        relative_name=None,
        only_some_reasons=None,
        only_contains_attribute_certs=False,
        **flags,
    )


def _delegate(issuer: NotarySigner = ONLINE, usage: x509.ObjectIdentifier = RESPONDING) -> tuple[x509.Certificate, Any]:
    """Return a responder that an issuer authorized, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    return issuer.issue("responder", key, usage=usage), key


def _problem(signer: NotarySigner, answers: Answers, *, asked: list[str] | None = None, **options: Any) -> str:
    def read(url: str, request: bytes) -> bytes:
        if asked is not None:
            asked.append(url)
        if url not in answers:
            raise HostError("no connection")
        assert bool(request) == (url in (RESPONDER, SECOND))
        return answers[url]()

    store = read_certificates(options.pop("root", signer.root_pem))
    attestor = NotaryAttestor(".certificates", store, **options)
    envelope = read_notary(signer.sign(JWS, DIGEST), JWS)
    return verify_notary(attestor, envelope, NotaryTarget(DIGEST, 7, NOW), read).problem


GOOD: dict[str, tuple[NotarySigner, Answers]] = {
    "not in the list": (LISTED, {LIST: lambda: revocation_list(LISTED, [1, 2])}),
    "a list of certificates of signers": (
        LISTED,
        {LIST: lambda: revocation_list(LISTED, extensions=[(_scope(only_contains_user_certs=True), True)])},
    ),
    "in none of two lists": (
        TWICE,
        {LIST: lambda: revocation_list(TWICE), OTHER: lambda: revocation_list(TWICE, [3])},
    ),
    "the responder knows it": (ONLINE, {RESPONDER: lambda: ocsp_answer(ONLINE, ONLINE.leaf)}),
    "an authorized responder knows it": (
        ONLINE,
        {RESPONDER: lambda: ocsp_answer(ONLINE, ONLINE.leaf, responder=_delegate())},
    ),
    "the second responder knows it": (SPARE, {SECOND: lambda: ocsp_answer(SPARE, SPARE.leaf)}),
    "the list decides where the responder is away": (BOTH, {LIST: lambda: revocation_list(BOTH)}),
}


@pytest.mark.parametrize("case", GOOD)
def test_a_certificate_that_is_not_revoked_passes(case: str) -> None:
    """A responder decides, and lists where none does."""
    signer, answers = GOOD[case]
    assert _problem(signer, answers) == ""


REVOKED: dict[str, tuple[NotarySigner, Answers, str]] = {
    "in the list": (LISTED, {LIST: lambda: revocation_list(LISTED, [LISTED.leaf.serial_number])}, LIST),
    "in the second list": (
        TWICE,
        {
            LIST: lambda: revocation_list(TWICE),
            OTHER: lambda: revocation_list(TWICE, [TWICE.leaf.serial_number]),
        },
        OTHER,
    ),
    "by the responder": (
        ONLINE,
        {RESPONDER: lambda: ocsp_answer(ONLINE, ONLINE.leaf, ocsp.OCSPCertStatus.REVOKED)},
        RESPONDER,
    ),
    "by the responder, and in no list": (
        BOTH,
        {
            RESPONDER: lambda: ocsp_answer(BOTH, BOTH.leaf, ocsp.OCSPCertStatus.REVOKED),
            LIST: lambda: revocation_list(BOTH),
        },
        RESPONDER,
    ),
}


@pytest.mark.parametrize("case", REVOKED)
def test_a_certificate_that_is_revoked_fails(case: str) -> None:
    """The reason names the URL of the revocation list or responder."""
    signer, answers, url = REVOKED[case]
    assert _problem(signer, answers) == f"revocation: certificate 1 is revoked: {url}"


UNDECIDED: dict[str, tuple[NotarySigner, Answers, str]] = {
    "no connection to the list": (LISTED, {}, f"{LIST}: no connection"),
    "no connection to the responder": (ONLINE, {}, f"{RESPONDER}: no connection"),
    "one of two lists is away": (TWICE, {LIST: lambda: revocation_list(TWICE)}, f"{OTHER}: no connection"),
    "no list": (LISTED, {LIST: lambda: b"<html>"}, f"{LIST}: the list cannot be read"),
    "a list of another issuer": (
        LISTED,
        {LIST: lambda: revocation_list(STRANGER)},
        f"{LIST}: the list is not signed by the issuer",
    ),
    "a list that has ended": (
        LISTED,
        {LIST: lambda: revocation_list(LISTED, made=NOW - 10**6)},
        f"{LIST}: the answer is not current",
    ),
    "a list of the future": (
        LISTED,
        {LIST: lambda: revocation_list(LISTED, made=NOW + 10**6)},
        f"{LIST}: the answer is not current",
    ),
    "a list of authorities only": (
        LISTED,
        {LIST: lambda: revocation_list(LISTED, extensions=[(_scope(only_contains_ca_certs=True), True)])},
        f"{LIST}: the list is only a part, or for other certificates",
    ),
    "a list of changes": (
        LISTED,
        {LIST: lambda: revocation_list(LISTED, extensions=[(x509.DeltaCRLIndicator(1), True)])},
        f"{LIST}: the list is only a part, or for other certificates",
    ),
    "a list with an unknown critical extension": (
        LISTED,
        {
            LIST: lambda: revocation_list(
                LISTED, extensions=[(x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3"), b"\x05\x00"), True)]
            )
        },
        f"{LIST}: the list is only a part, or for other certificates",
    ),
    "no answer of OCSP": (ONLINE, {RESPONDER: lambda: b"0"}, f"{RESPONDER}: the answer cannot be read"),
    "a responder that refuses": (
        ONLINE,
        {
            RESPONDER: lambda: ocsp.OCSPResponseBuilder.build_unsuccessful(
                ocsp.OCSPResponseStatus.UNAUTHORIZED
            ).public_bytes(Encoding.DER)
        },
        f"{RESPONDER}: the responder answers unauthorized",
    ),
    "an unknown certificate": (
        ONLINE,
        {RESPONDER: lambda: ocsp_answer(ONLINE, ONLINE.leaf, ocsp.OCSPCertStatus.UNKNOWN)},
        f"{RESPONDER}: the responder does not know the certificate",
    ),
    "the answer for another certificate": (
        ONLINE,
        {RESPONDER: lambda: ocsp_answer(ONLINE, STRANGER.leaf)},
        f"{RESPONDER}: the answer is for another certificate",
    ),
    "an answer that has ended": (
        ONLINE,
        {RESPONDER: lambda: ocsp_answer(ONLINE, ONLINE.leaf, made=NOW - 10**6)},
        f"{RESPONDER}: the answer is not current",
    ),
    "an answer without an end": (
        ONLINE,
        {RESPONDER: lambda: ocsp_answer(ONLINE, ONLINE.leaf, seconds=None)},
        f"{RESPONDER}: the answer is not current",
    ),
    "a responder that signs for servers": (
        ONLINE,
        {RESPONDER: lambda: ocsp_answer(ONLINE, ONLINE.leaf, responder=_delegate(usage=SERVING))},
        f"{RESPONDER}: the answer is not signed by the issuer or for it",
    ),
    "a responder of another issuer": (
        ONLINE,
        {RESPONDER: lambda: ocsp_answer(ONLINE, ONLINE.leaf, responder=_delegate(STRANGER))},
        f"{RESPONDER}: the answer is not signed by the issuer or for it",
    ),
    "an address that is no web address": (
        NotarySigner(extensions=(list_at("ldap://pki.example.com/list"),)),
        {},
        "ldap://pki.example.com/list: only HTTP can be read",
    ),
}


@pytest.mark.parametrize("case", UNDECIDED)
def test_a_certificate_that_may_be_revoked_fails(case: str) -> None:
    """No answer, or one that proves nothing, is never a pass."""
    signer, answers, problem = UNDECIDED[case]
    assert _problem(signer, answers) == f"revocation: certificate 1 may be revoked: {problem}"


def test_no_address_of_a_signer_without_trust_is_read() -> None:
    """A stranger cannot make the verifier open connections (CVE-2026-24117)."""
    asked: list[str] = []
    problem = _problem(LISTED, {}, asked=asked, root=STRANGER.root_pem)
    assert (problem, asked) == ("trust store: no certificate of the chain is in the trust store", [])


def test_a_permissive_level_reads_no_revocation() -> None:
    """Only the strict level demands it."""
    asked: list[str] = []
    assert ("", []) == (_problem(LISTED, {}, asked=asked, level=Level.PERMISSIVE), asked)


def test_certificates_of_time_stamps_may_be_revoked() -> None:
    """A stamp of a revoked authority proves no time (CVE-2024-56138)."""
    signer, stamps = NotarySigner(), TimeAuthority(extensions=(list_at(LIST),))
    envelope = read_notary(signer.sign(JWS, DIGEST, stamps=stamps), JWS)
    authority = Authority((read_certificate(stamps.root.public_bytes(Encoding.DER)),))
    attestor = NotaryAttestor(".certificates", read_certificates(signer.root_pem), (authority,))
    ledger = verify_notary(attestor, envelope, NotaryTarget(DIGEST, 7, NOW))
    problem = f"revocation: certificate 1 may be revoked: {LIST}: nothing here reads revocations"
    assert (False, problem) == (ledger.passes, ledger.problem)


def test_a_certificate_beside_the_one_that_stamped_proves_nothing() -> None:
    """The one that the stamp names as its signer is checked, not the first one that it holds (CVE-2026-39984)."""
    signer, stamps = NotarySigner(), TimeAuthority(extensions=(list_at(LIST),))
    stamps.beside = [stamps.issue(f"other {number}") for number in range(7)]
    authority = Authority((read_certificate(stamps.root.public_bytes(Encoding.DER)),))
    chain = verify_timestamp(stamps.stamp(b"signature", NOW), b"signature", (authority,))[1]
    assert stamps.leaf == chain[0].x509
    envelope = read_notary(signer.sign(JWS, DIGEST, stamps=stamps), JWS)
    attestor = NotaryAttestor(".certificates", read_certificates(signer.root_pem), (authority,))
    problem = f"revocation: certificate 1 may be revoked: {LIST}: nothing here reads revocations"
    assert problem == verify_notary(attestor, envelope, NotaryTarget(DIGEST, 7, NOW)).problem


def test_an_answer_is_kept_until_its_expiry() -> None:
    """Lists and answers of responders have an end; what cannot be read is not kept."""
    assert [NOW - 60 + 86_400, NOW - 60 + 86_400, 0, 0] == [
        current_until(revocation_list(LISTED), b""),
        current_until(ocsp_answer(ONLINE, ONLINE.leaf), b"request"),
        current_until(b"0", b""),
        current_until(b"0", b"request"),
    ]
