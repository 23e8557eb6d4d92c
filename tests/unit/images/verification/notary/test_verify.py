"""Notary signatures against trust stores: both envelopes, and every way in which one can be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from pyverno.errors import VerificationError
from pyverno.images.verification.attestors import wildcard
from pyverno.images.verification.certificates import read_certificate, read_certificates
from pyverno.images.verification.notary.envelope import read_notary
from pyverno.images.verification.notary.verify import Level, NotaryAttestor, NotaryTarget, verify_notary
from pyverno.images.verification.trust import Authority
from tests.authority.notary import COSE, JWS, NotarySigner
from tests.authority.timestamps import TimeAuthority

DIGEST = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32
TYPE = "application/vnd.oci.image.manifest.v1+json"
NOW = 1_700_000_000
SIGNER = NotarySigner()
FOREIGN = NotarySigner()
STAMPS = TimeAuthority()
FORMS = (JWS, COSE)
CRL = x509.CRLDistributionPoints(
    [x509.DistributionPoint([x509.UniformResourceIdentifier("http://crl.example.com/a")], None, None, None)]
)


def _attestor(signer: NotarySigner = SIGNER, **options: Any) -> NotaryAttestor:
    return NotaryAttestor(".certificates", read_certificates(signer.root_pem), **options)


def _stamped(**options: Any) -> NotaryAttestor:
    root = read_certificate(STAMPS.root.public_bytes(Encoding.DER))
    return _attestor(time_authorities=(Authority((root,)),), **options)


def _problem(attestor: NotaryAttestor, form: str, envelope: bytes, *, now: int = NOW, size: int = 7) -> str:
    ledger = verify_notary(attestor, read_notary(envelope, form), NotaryTarget(DIGEST, size, now, TYPE))
    assert ledger.passes == (ledger.problem == "")
    return ledger.problem


# --------------------------------------------------------------------------------------------------------------- good


@pytest.mark.parametrize("form", FORMS)
def test_a_signature_below_a_trusted_root_passes(form: str) -> None:
    """Every constraint is met when a certificate of the chain is in the trust store."""
    assert _problem(_attestor(), form, SIGNER.sign(form, DIGEST)) == ""


KEYS: dict[str, Callable[[], Any]] = {
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "RSA 2048": lambda: rsa.generate_private_key(65537, 2048),
    "RSA 3072": lambda: rsa.generate_private_key(65537, 3072),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("key", KEYS)
def test_every_kind_of_key_signs_with_its_own_algorithm(form: str, key: str) -> None:
    """The size of the key fixes the digest, and RSA signs with PSS."""
    signer = NotarySigner(key=KEYS[key]())
    assert _problem(_attestor(signer), form, signer.sign(form, DIGEST)) == ""


@pytest.mark.parametrize("form", FORMS)
def test_a_leaf_in_the_trust_store_is_trusted(form: str) -> None:
    """Any certificate of the chain may be the one that is trusted."""
    store = (read_certificate(SIGNER.leaf.public_bytes(Encoding.DER)),)
    assert _problem(NotaryAttestor(".certificates", store), form, SIGNER.sign(form, DIGEST)) == ""


@pytest.mark.parametrize("form", FORMS)
def test_a_time_stamp_proves_that_an_ended_certificate_was_valid(form: str) -> None:
    """The certificate has expired since, and the time stamp proves that the signature is older."""
    signer = NotarySigner(seconds=600)
    envelope = signer.sign(form, DIGEST, stamps=STAMPS, stamped_at=NOW + 60 - 86_400)
    root = read_certificate(STAMPS.root.public_bytes(Encoding.DER))
    attestor = _attestor(signer, time_authorities=(Authority((root,)),))
    assert [
        _problem(attestor, form, envelope, now=NOW + 10**6),
        _problem(_attestor(signer), form, envelope, now=NOW + 10**6),
    ] == ["", "certificate: certificate 1 of the chain was not valid when the signature was made"]


@pytest.mark.parametrize("form", FORMS)
def test_signed_metadata_can_be_demanded(form: str) -> None:
    """Annotations of the signed descriptor are compared, and a missing one is no match."""
    attestor = _attestor(metadata={"build": wildcard("1*")})
    assert [
        _problem(attestor, form, SIGNER.sign(form, DIGEST, annotations={"build": "12"})),
        _problem(attestor, form, SIGNER.sign(form, DIGEST, annotations={"build": "2"})),
        _problem(attestor, form, SIGNER.sign(form, DIGEST)),
    ] == [
        "",
        "annotation build: the signature says `2` where `1*` is demanded",
        "annotation build: the signature has no such annotation",
    ]


# -------------------------------------------------------------------------------------------------------------- wrong

RSA = NotarySigner(key=rsa.generate_private_key(65537, 2048))
SCHEME, EXPIRY = "io.cncf.notary.signingScheme", "io.cncf.notary.expiry"
WRONG: dict[str, tuple[Callable[[str], bytes], str]] = {
    "a foreign root": (
        lambda form: FOREIGN.sign(form, DIGEST),
        "trust store: no certificate of the chain is in the trust store",
    ),
    "a trusted root that did not issue": (
        lambda form: FOREIGN.sign(form, DIGEST, chain=(FOREIGN.leaf, SIGNER.root)),
        "certificate chain: certificate 1 of the chain is not issued by the next certificate",
    ),
    "a chain without its root": (
        lambda form: SIGNER.sign(form, DIGEST, chain=(SIGNER.leaf,)),
        "certificate chain: certificate 1 of the chain is not issued by the root",
    ),
    "the certificate of another signer": (
        lambda form: FOREIGN.sign(form, DIGEST, chain=SIGNER.chain),
        "signature: the signature was not made by the key of its certificate",
    ),
    "another image": (lambda form: SIGNER.sign(form, OTHER), "digest: the signature is for another image"),
    "another size": (
        lambda form: SIGNER.sign(form, DIGEST, 8),
        "digest: the signature is for an image of another size",
    ),
    "another media type": (
        lambda form: SIGNER.sign(form, DIGEST, target_type="text/plain"),
        "digest: the signature is for an image of another media type",
    ),
    "another type of payload": (
        lambda form: SIGNER.sign(form, DIGEST, content_type="text/plain"),
        "type: the payload is of type `text/plain`",
    ),
    "the scheme of signing authorities": (
        lambda form: SIGNER.sign(form, DIGEST, scheme="notary.x509.signingAuthority"),
        "type: the signing scheme `notary.x509.signingAuthority` is not trusted",
    ),
    "an unknown critical header": (
        lambda form: SIGNER.sign(form, DIGEST, critical=[SCHEME, "plugin"], headers={"plugin": "x"}),
        "critical headers: `plugin` is critical and unknown",
    ),
    "an expiry that is not critical": (
        lambda form: SIGNER.sign(form, DIGEST, critical=[SCHEME], expiry=NOW + 60),
        f"critical headers: `{EXPIRY}` is not marked as critical",
    ),
    "two signing times": (
        lambda form: SIGNER.sign(form, DIGEST, headers={"io.cncf.notary.authenticSigningTime": "x"}),
        "critical headers: the header does not hold exactly the signing time of its scheme",
    ),
    "an expired signature": (
        lambda form: SIGNER.sign(form, DIGEST, expiry=NOW - 1),
        "expiry: the signature has expired",
    ),
    "RSA with the older padding": (
        lambda form: RSA.sign(form, DIGEST, algorithm="RS256"),
        "signature: the signature uses `{RS256}`, the key of its certificate demands `PS256`",
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", WRONG)
def test_the_error_of_a_wrong_signature_names_the_fault(case: str, form: str) -> None:
    """Each way of being wrong breaks its own constraint (CVE-2024-23332)."""
    make, expected = WRONG[case]
    attestor = _attestor(RSA if case.startswith("RSA") else SIGNER)
    found = _problem(attestor, form, make(form))
    assert found == expected.replace("{RS256}", "RS256" if form == JWS else "-257")


SIGNERS: dict[str, tuple[NotarySigner, str]] = {
    "not yet valid": (
        NotarySigner(begins=NOW + 10**6),
        "certificate: certificate 1 of the chain was not valid when the signature was made",
    ),
    "ended": (
        NotarySigner(begins=NOW - 10**6, seconds=60),
        "certificate: certificate 1 of the chain was not valid when the signature was made",
    ),
    "for servers": (
        NotarySigner(usage=ExtendedKeyUsageOID.SERVER_AUTH),
        "certificate usage: the certificate is not for signing code",
    ),
    "key usage not critical": (
        NotarySigner(is_usage_critical=False),
        "certificate usage: the key usage of the certificate is not critical, or not for digital signatures",
    ),
    "an issuer that is no authority": (
        NotarySigner(is_root_authority=False),
        "certificate chain: certificate 2 of the chain is no authority",
    ),
    "a key that is not allowed": (
        NotarySigner(key=rsa.generate_private_key(65537, 2560)),
        "certificate usage: the certificate has a key that Notary does not allow",
    ),
    "revocation elsewhere": (
        NotarySigner(extensions=(CRL,)),
        "revocation: certificate 1 may be revoked: http://crl.example.com/a: nothing here reads revocations",
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", SIGNERS)
def test_the_error_of_a_wrong_certificate_names_the_fault(case: str, form: str) -> None:
    """Certificates are held to their period, their usage and their place in the chain."""
    signer, expected = SIGNERS[case]
    algorithm = "PS256" if case.startswith("a key") else ""
    assert _problem(_attestor(signer), form, signer.sign(form, DIGEST, algorithm=algorithm)) == expected


@pytest.mark.parametrize("form", FORMS)
def test_a_demanded_time_stamp_must_be_there_and_be_of_this_signature(form: str) -> None:
    """Neither a missing stamp nor one of an unknown authority nor one over other bytes proves a time."""
    other = TimeAuthority()
    foreign = "time stamp: the time stamp is not one of this authority over this signature"
    assert [
        _problem(_stamped(), form, SIGNER.sign(form, DIGEST)),
        _problem(_stamped(), form, SIGNER.sign(form, DIGEST, stamps=other)),
        _problem(_stamped(), form, SIGNER.sign(form, DIGEST, stamps=STAMPS)),
    ] == ["time stamp: the signature has no time stamp", foreign, ""]


def test_levels_demand_less_but_never_skip_integrity() -> None:
    """A permissive level overlooks the expiry, an audit one the trust store, and neither a foreign signature."""
    expired, foreign = SIGNER.sign(JWS, DIGEST, expiry=NOW - 1), FOREIGN.sign(JWS, DIGEST)
    stolen = FOREIGN.sign(JWS, DIGEST, chain=SIGNER.chain)
    assert [
        _problem(_attestor(level=Level.PERMISSIVE), JWS, expired),
        _problem(_attestor(level=Level.AUDIT), JWS, foreign),
        _problem(_attestor(level=Level.AUDIT), JWS, stolen),
    ] == ["", "", "signature: the signature was not made by the key of its certificate"]


# --------------------------------------------------------------------------------------------------------- unreadable


def _jws(change: Callable[[dict[str, Any]], object]) -> bytes:
    body = json.loads(SIGNER.sign(JWS, DIGEST))
    change(body)
    return json.dumps(body).encode()


BROKEN: dict[str, tuple[str, bytes, str]] = {
    "unknown type": ("text/plain", b"{}", "the envelope has the unknown media type `text/plain`"),
    "no JSON": (JWS, b"{", "the envelope is not valid JSON"),
    "a key twice": (JWS, b'{"payload":"","payload":""}', "the envelope has the key `payload` twice"),
    "padded": (
        JWS,
        _jws(lambda body: body.update(protected=body["protected"] + "=")),
        "the protected header is no base64url",
    ),
    "no chain": (JWS, _jws(lambda body: body["header"].update(x5c=[])), "the envelope must have 1 to 10 certificates"),
    "no envelope": (COSE, b"\x80", "the envelope is no COSE_Sign1"),
    "cut off": (COSE, SIGNER.sign(COSE, DIGEST)[:-1], "the envelope is no valid CBOR"),
    "more bytes": (COSE, SIGNER.sign(COSE, DIGEST) + b"\x00", "the envelope is followed by other bytes"),
    "deep": (COSE, b"\x81" * 100, "the envelope is nested too deeply or holds too many values"),
    "key twice in CBOR": (COSE, b"\xa2\x01\x01\x01\x02", "the envelope has the key `1` twice"),
    "critical not listed": (
        JWS,
        SIGNER.sign(JWS, DIGEST, critical=[]),
        "the protected header lists no critical attributes",
    ),
    "expiry without a zone": (
        COSE,
        SIGNER.sign(COSE, DIGEST, headers={EXPIRY: "soon"}),
        "the expiry is no time",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_an_envelope_that_cannot_be_read_is_an_error(case: str) -> None:
    """The message names the mistake in the document."""
    form, envelope, expected = BROKEN[case]
    with pytest.raises(VerificationError) as caught:
        read_notary(envelope, form)
    assert caught.value.message == expected
