"""Signatures against attestors: every form, and every way in which one can be wrong."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pyverno.errors import VerificationError
from pyverno.images.verification.attestors import (
    Attestor,
    AttestorSet,
    Identity,
    constraints_of,
    exact,
    expression,
    extension_identifier,
    wildcard,
)
from pyverno.images.verification.keys import read_key
from pyverno.images.verification.ledger import Ledger, State
from pyverno.images.verification.merkle import read_checkpoint
from pyverno.images.verification.payloads import IMAGE_SIGNATURE, REFERENCE
from pyverno.images.verification.signature import (
    Signature,
    read_attestation_layer,
    read_bundle,
    read_signature_layer,
)
from pyverno.images.verification.trust import TransparencyLog, TrustRoot, read_trust_root
from pyverno.images.verification.verify import Expected, verify, verify_set
from pyverno.value import fields, replace
from tests.authority.signing import Signer, SigningServices

DIGEST = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32
PREDICATE = "https://example.com/scan"
ISSUER = "https://accounts.example.com"
SERVICES = SigningServices()
FOREIGN = SigningServices()
ROOT = read_trust_root(SERVICES.trusted_root())
DEVELOPER = SERVICES.keyless("dev@example.com")
KEYED = SERVICES.keyed()


def _keyless(root: TrustRoot = ROOT, subject: str = "dev@example.com", **options: Any) -> Attestor:
    return Attestor(
        ".attestors[0].entries[0].keyless",
        authorities=root.authorities,
        identities=(Identity((exact(subject),), (exact(ISSUER),)),),
        logs=root.logs,
        certificate_logs=root.certificate_logs,
        time_authorities=root.time_authorities,
        **options,
    )


def _key(signer: Signer = KEYED, **options: Any) -> Attestor:
    return Attestor(".keys", key=read_key(signer.public_pem.encode()), logs=ROOT.logs, **options)


def _expected(digest: str = DIGEST, predicate_type: str = IMAGE_SIGNATURE, now: int = SERVICES.now + 10**6) -> Expected:
    return Expected(digest, predicate_type, now)


def _layer(signer: Signer, digest: str = DIGEST, **options: Any) -> Signature:
    layer = signer.sign_layer(digest, **options)
    return read_signature_layer(layer.blob, layer.annotations)


def _bundle(signer: Signer, digest: str = DIGEST, **options: Any) -> Signature:
    return read_bundle(json.dumps(signer.bundle(digest, **options)).encode())


FORMS: dict[str, Callable[..., Signature]] = {"layer": _layer, "bundle": _bundle}


def _problem(attestor: Attestor, signature: Signature, expected: Expected | None = None) -> str:
    return verify(attestor, signature, expected or _expected()).ledger.problem


# --------------------------------------------------------------------------------------------------------------- good


@pytest.mark.parametrize("form", FORMS)
def test_a_keyless_signature_passes(form: str) -> None:
    """Every constraint is met when the signer, the log and the time are those demanded."""
    finding = verify(_keyless(), FORMS[form](DEVELOPER), _expected())
    assert ("", True) == (finding.ledger.problem, finding.ledger.passes)


@pytest.mark.parametrize("form", FORMS)
def test_a_signature_with_a_key_passes(form: str) -> None:
    """A key needs no certificate; the log has the signature."""
    assert _problem(_key(), FORMS[form](KEYED)) == ""


def test_the_signed_name_can_be_demanded() -> None:
    """Simple signing signs the name of the image; by default it does not count, as mirrors have other names."""
    attestor = _key(annotations={REFERENCE: wildcard("registry.example.com/*")})
    assert _problem(attestor, _layer(KEYED, reference="registry.example.com/app")) == ""


def test_a_time_stamp_proves_the_time_where_no_log_does() -> None:
    """The certificate expired long ago, and the time stamp proves that the signature is older."""
    signature = _bundle(DEVELOPER, is_logged=False, is_stamped=True)
    assert _problem(_keyless(log_required=False, timestamp_required=True), signature) == ""


def test_an_attestation_passes_for_its_own_type_only() -> None:
    """A statement counts for the predicate type that the policy names (CVE-2022-35929, CVE-2022-35930)."""
    layer = KEYED.attest_layer(DIGEST, {"ok": True}, PREDICATE)
    signature = read_attestation_layer(layer.blob, layer.annotations)
    assert ["", "type: the signature is for `https://example.com/scan`"] == [
        _problem(_key(), signature, _expected(predicate_type=PREDICATE)),
        _problem(_key(), signature, _expected(predicate_type="https://example.com/other")),
    ]


# -------------------------------------------------------------------------------------------------------------- wrong


def _foreign_entry(signer: Signer) -> Signature:
    signature, other = _layer(signer), _layer(signer, OTHER)
    return replace(signature, log_entries=other.log_entries)


WRONG: dict[str, tuple[Attestor, Signature, Expected, str]] = {
    "another digest": (
        _keyless(),
        _bundle(DEVELOPER, OTHER),
        _expected(),
        "digest: the signature is for another image",
    ),
    "only an attestation": (
        _keyless(),
        _bundle(DEVELOPER, predicate_type=PREDICATE),
        _expected(),
        "type: the signature is for `https://example.com/scan`",
    ),
    "another key": (
        _key(SERVICES.keyed()),
        _layer(KEYED),
        _expected(),
        "signature: the signature was not made by this key",
    ),
    "another subject": (
        _keyless(subject="boss@example.com"),
        _bundle(DEVELOPER),
        _expected(),
        f"identity: signed by `dev@example.com` of `{ISSUER}`",
    ),
    "no subject": (
        _keyless(),
        _bundle(SERVICES.keyless("")),
        _expected(),
        f"identity: signed by `no subject` of `{ISSUER}`",
    ),
    "another issuer": (
        _keyless(),
        _bundle(SERVICES.keyless(issuer="https://evil.example.com")),
        _expected(),
        "identity: signed by `dev@example.com` of `https://evil.example.com`",
    ),
    "two issuers": (
        _keyless(),
        _bundle(SERVICES.keyless(extensions={8: "https://evil.example.com"})),
        _expected(),
        "identity: the certificate names two issuers",
    ),
    "another authority": (
        _keyless(),
        _bundle(FOREIGN.keyless()),
        _expected(),
        "transparency log: the entry is of a log that is not trusted",
    ),
    "signed after the certificate ended": (
        _keyless(),
        _bundle(DEVELOPER, time=SERVICES.now + 601),
        _expected(),
        "certificate chain: the certificate was not valid at 2023-11-14T22:23:21Z",
    ),
    "signed before the certificate began": (
        _keyless(),
        _bundle(DEVELOPER, time=SERVICES.now - 1),
        _expected(),
        "certificate chain: the certificate was not valid at 2023-11-14T22:13:19Z",
    ),
    "no proof of the time": (
        _keyless(log_required=False),
        _bundle(DEVELOPER, is_logged=False),
        _expected(),
        "certificate chain: the certificate was not valid at 2023-11-26T12:00:00Z",
    ),
    "no log entry": (
        _key(),
        _layer(KEYED, is_logged=False),
        _expected(),
        "transparency log: the signature has no log entry",
    ),
    "the log entry of another signature": (
        _key(),
        _foreign_entry(KEYED),
        _expected(),
        "transparency log: the log entry is for other bytes",
    ),
    "no certificate timestamp": (
        _keyless(),
        _bundle(SERVICES.keyless(has_timestamp=False)),
        _expected(),
        "certificate log: the certificate has no certificate timestamp",
    ),
    "an unknown certificate log": (
        replace(_keyless(), certificate_logs=()),
        _bundle(DEVELOPER),
        _expected(),
        "certificate log: the log of the certificate timestamp is not trusted",
    ),
    "no time stamp": (
        _keyless(timestamp_required=True),
        _bundle(DEVELOPER),
        _expected(),
        "time stamp: the signature has no time stamp",
    ),
    "the time stamp of another authority": (
        replace(
            _keyless(timestamp_required=True),
            time_authorities=read_trust_root(FOREIGN.trusted_root()).time_authorities,
        ),
        _bundle(DEVELOPER, is_stamped=True),
        _expected(),
        "time stamp: the time stamp is not one of this authority over this signature",
    ),
    "a key where a certificate is demanded": (
        _keyless(),
        _bundle(KEYED),
        _expected(),
        "signature: the signature has no certificate",
    ),
    "a missing annotation": (
        _key(annotations={"team": exact("a")}),
        _layer(KEYED),
        _expected(),
        "annotation team: the signature has no such annotation",
    ),
    "another annotation": (
        _key(annotations={"team": wildcard("a*")}),
        _layer(KEYED, annotations={"team": "b"}),
        _expected(),
        "annotation team: the signature says `b` where `a*` is demanded",
    ),
    "another name": (
        _key(annotations={REFERENCE: wildcard("registry.example.com/*")}),
        _layer(KEYED, reference="registry.example.org/app", annotations={REFERENCE: "registry.example.com/app"}),
        _expected(),
        f"annotation {REFERENCE}: the signature says `registry.example.org/app` where `registry.example.com/*` "
        "is demanded",
    ),
    "no name in a bundle": (
        _key(annotations={REFERENCE: wildcard("*")}),
        _bundle(KEYED),
        _expected(),
        f"annotation {REFERENCE}: the signature has no such annotation",
    ),
    "a missing extension": (
        _keyless(extensions={"githubWorkflowRef": exact("refs/heads/main")}),
        _bundle(DEVELOPER),
        _expected(),
        "extension githubWorkflowRef: the certificate has no such extension",
    ),
    "another extension": (
        _keyless(extensions={"githubWorkflowRef": exact("refs/heads/main")}),
        _bundle(SERVICES.keyless(extensions={6: "refs/heads/evil"})),
        _expected(),
        "extension githubWorkflowRef: the certificate says `refs/heads/evil` where `refs/heads/main` is demanded",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_signature_fails_with_its_reason(case: str) -> None:
    """Each constraint that does not hold fails alone, and its reason names the value found.

    CVE-2022-23649, CVE-2026-22703, CVE-2024-51746, CVE-2022-36056, CVE-2026-54787.
    """
    attestor, signature, expected, problem = WRONG[case]
    assert problem == _problem(attestor, signature, expected)


def test_a_log_entry_needs_the_signature_of_the_log() -> None:
    """A promise that the log did not make proves nothing, and neither does a proof under a foreign checkpoint.

    CVE-2022-23649, CVE-2022-36056.
    """
    signature = _bundle(KEYED)
    (entry,) = signature.log_entries
    assert entry.proof is not None
    forged = (
        replace(entry, promise=KEYED.sign(b"promise")),
        replace(entry, promise=b"", proof=replace(entry.proof, root=b"0" * 32)),
        replace(entry, promise=b"", proof=replace(entry.proof, index=0)),
        replace(entry, promise=b"", proof=None),
        replace(entry, integrated_time=entry.integrated_time + 1),
    )
    assert [False] * len(forged) == [
        verify(_key(), replace(signature, log_entries=(each,)), _expected()).ledger.passes for each in forged
    ]


def test_a_proof_without_a_promise_proves_no_time() -> None:
    """The time beside an entry is signed only in the promise."""
    signature = _bundle(DEVELOPER)
    (entry,) = signature.log_entries
    bare = replace(signature, log_entries=(replace(entry, promise=b""),))
    assert "certificate chain: the certificate was not valid at 2023-11-26T12:00:00Z" == _problem(_keyless(), bare)


_HEAD, _SIGNED = "log.example.com\n2\nAAAA\n", "\u2014 log.example.com AAAAAAAA\n"


@pytest.mark.parametrize(
    "note",
    [
        f"{_HEAD}\n{_SIGNED[:-1]}",
        f"{_HEAD}\n{_SIGNED}\n",
        f"{_HEAD}\n{_SIGNED}\n{_SIGNED}",
        f"{_HEAD}\n",
        f"{_HEAD}\n{_SIGNED}".replace("log.example.com A", "log.example com A"),
        f"{_HEAD}\n{_SIGNED}".replace("\u2014 ", "\u2014  "),
    ],
)
def test_a_checkpoint_is_a_signed_note_to_the_letter(note: str) -> None:
    """Text, one blank line, and lines of signatures that each end; names of signers have no spaces."""
    assert 1 == len(read_checkpoint(f"{_HEAD}\n{_SIGNED}").signatures)
    with pytest.raises(VerificationError):
        read_checkpoint(note)


def test_a_checkpoint_has_one_signature_of_a_log() -> None:
    """Further lines with its hint cost no verification: 64 of them in 32 entries of 100 signatures took seconds."""
    signature = _bundle(KEYED)
    (entry,) = signature.log_entries
    assert entry.proof is not None
    note = entry.proof.checkpoint
    head, _, line = note.partition("\n\n")
    name, _, encoded = line.strip().rpartition(" ")
    signed = base64.b64decode(encoded)
    forged = f"{name} {base64.b64encode(signed[:4] + signed[4:][::-1]).decode()}\n"

    def problem(checkpoint: str) -> str:
        proof = replace(entry.proof, checkpoint=checkpoint)  # type: ignore[type-var]
        return _problem(_key(), replace(signature, log_entries=(replace(entry, promise=b"", proof=proof),)))

    assert ["", "transparency log: the checkpoint is not signed by the log"] == [
        problem(f"{note}{forged}"),
        problem(f"{head}\n\n{forged}{line}"),
    ]


# ------------------------------------------------------------------------------------------------------------- ledger


def test_every_field_of_an_attestor_has_a_row_in_the_table_of_constraints() -> None:
    """A field that is added to Attestor cannot be forgotten (CVE-2026-48815)."""
    full = _keyless(
        timestamp_required=True, annotations={"a": exact("1")}, extensions={"githubWorkflowSha": exact("2")}
    )
    assert [
        *("digest", "type", "signature", "time stamp", "transparency log", "certificate chain", "certificate usage"),
        *("certificate log", "identity", "extension githubWorkflowSha", "annotation a"),
    ] == list(constraints_of(full))


def test_an_open_constraint_never_passes() -> None:
    """A constraint that no check settles keeps the ledger from passing (CVE-2026-48815)."""
    ledger = Ledger(["digest", "a new field"])
    ledger.meet("digest")
    assert (False, "a new field: was not checked") == (ledger.passes, ledger.problem)


def test_a_broken_constraint_stays_broken() -> None:
    """A later check cannot meet a constraint that has failed."""
    ledger = Ledger(["digest"])
    ledger.fail("digest", "it differs")
    ledger.meet("digest")
    assert [State.BROKEN] == [entry.state for entry in ledger.entries]


def test_an_empty_ledger_does_not_pass() -> None:
    """Without demanded constraints, verification fails."""
    assert not Ledger(()).passes


def test_an_attestor_identifies_its_signer_in_one_way() -> None:
    """A policy whose attestor has no signer, or two, is ambiguous and therefore refused."""
    key = read_key(KEYED.public_pem.encode())
    for wrong in ({}, {"key": key, "authorities": ROOT.authorities}):
        with pytest.raises(VerificationError, match="must have exactly one of"):
            Attestor(".keys", **wrong)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------------------- counting


def _set(*entries: Attestor | AttestorSet, count: int) -> AttestorSet:
    return AttestorSet(".attestors[0]", entries, count)


def test_a_set_passes_when_enough_entries_have_signed() -> None:
    """Two of three signed, and two are demanded; then three are."""
    signers = [SERVICES.keyed() for _ in range(3)]
    signatures = [_layer(signer) for signer in signers[:2]]
    entries = [_key(signer) for signer in signers]
    found = [verify_set(_set(*entries, count=count), signatures, _expected()) for count in (1, 2, 3)]
    assert [(True, 1), (True, 2), (False, 2)] == [(each.passes, each.verified) for each in found]


def test_the_same_key_counts_once() -> None:
    """Two entries with one key are one signer (CVE-2026-49834)."""
    found = verify_set(_set(_key(), _key(), count=2), [_layer(KEYED), _layer(KEYED)], _expected())
    assert (False, 1) == (found.passes, found.verified)


def test_an_entry_of_a_log_counts_once() -> None:
    """A threshold counts signers: the same entries and stamps twice in one signature add nothing (CVE-2026-49834)."""
    one = _layer(KEYED, is_stamped=True)
    twice = replace(one, log_entries=one.log_entries * 2, timestamps=one.timestamps * 2)
    found = verify_set(_set(_key(), _key(SERVICES.keyed()), count=2), [twice], _expected())
    assert (False, 1) == (found.passes, found.verified)


def test_a_nested_set_counts_as_one_entry() -> None:
    """The inner set has its own threshold."""
    other = SERVICES.keyed()
    inner = AttestorSet(".inner", (_key(), _key(other)), 1)
    assert verify_set(_set(inner, _key(other), count=2), [_layer(KEYED), _layer(other)], _expected()).passes


@pytest.mark.parametrize("count", [0, -1, 2])
def test_a_threshold_of_zero_or_out_of_reach_is_refused(count: int) -> None:
    """Zero would pass without a signature."""
    with pytest.raises(VerificationError, match="of 1 attestors"):
        _set(_key(), count=count)


def test_the_deadline_is_looked_at_before_every_signature() -> None:
    """A hundred signatures of one attestor must not outlast a review; what follows a good one is not verified."""
    stranger = _layer(SERVICES.keyed())

    def looks(*signatures: Signature) -> int:
        found: list[None] = []
        verify_set(_set(_key(), count=1), signatures, _expected(), lambda: found.append(None))
        return len(found)

    assert [1, 4, 2] == [looks(), looks(stranger, stranger, stranger), looks(_layer(KEYED), stranger, stranger)]


def test_no_signatures_is_a_failure() -> None:
    """An empty list is not a success."""
    found = verify_set(_set(_key(), count=1), [], _expected())
    assert (False, (".keys: no signatures found",)) == (found.passes, found.problems)


# ------------------------------------------------------------------------------------------------------------ reading


def _with(body: dict[str, Any], *path: str | int, value: Any) -> bytes:
    place: Any = body
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(body).encode()


_ENTRY = ("verificationMaterial", "tlogEntries", 0)
UNREADABLE: Sequence[tuple[str, bytes]] = (
    ("the bundle is not valid JSON", b"{"),
    ("the bundle is not a JSON object", b"[]"),
    ("the bundle has the key `mediaType` twice", b'{"mediaType": "a", "mediaType": "b"}'),
    ("the bundle is not valid JSON", b"[" * 100_000),
    ("the bundle is of an unknown version", _with(KEYED.bundle(DIGEST), "mediaType", value="application/json")),
    ("the bundle holds no envelope", _with(KEYED.bundle(DIGEST), "dsseEnvelope", value=None)),
    (
        "the envelope must have exactly one signature",
        _with(KEYED.bundle(DIGEST), "dsseEnvelope", "signatures", value=[]),
    ),
    (
        "the payload of the envelope is not base64",
        _with(KEYED.bundle(DIGEST), "dsseEnvelope", "payload", value="a b c"),
    ),
    (
        "the envelope holds no in-toto statement (`application/vnd.in-toto+json`)",
        _with(KEYED.bundle(DIGEST), "dsseEnvelope", "payloadType", value="text/plain"),
    ),
    (
        "the bundle must name one of a certificate, a chain and a public key",
        _with(KEYED.bundle(DIGEST), "verificationMaterial", "certificate", value={}),
    ),
    (
        "`tlogEntries` of the bundle is no list of at most 32 objects",
        _with(KEYED.bundle(DIGEST), "verificationMaterial", "tlogEntries", value=[{}] * 33),
    ),
    (
        "the bundle has the unknown field `tlogEntrys`",
        _with(KEYED.bundle(DIGEST), "verificationMaterial", "tlogEntrys", value=[]),
    ),
    (
        "the bundle has the unknown field `signedEntry`",
        _with(KEYED.bundle(DIGEST), *_ENTRY, "inclusionPromise", "signedEntry", value=""),
    ),
    (
        "the statement must have 1 to 1024 subjects",
        _with(
            KEYED.bundle(DIGEST),
            "dsseEnvelope",
            "payload",
            value=base64.b64encode(b'{"_type": "https://in-toto.io/Statement/v1", "subject": []}').decode(),
        ),
    ),
)


@pytest.mark.parametrize(("message", "blob"), UNREADABLE)
def test_a_bundle_that_cannot_be_read_is_refused(message: str, blob: bytes) -> None:
    """A bundle that deviates from the format is an error, never a signature with parts missing.

    CVE-2026-39395, CVE-2024-45395.
    """
    with pytest.raises(VerificationError) as caught:
        read_bundle(blob)
    assert message == caught.value.message


def test_texts_are_compared_as_they_were_written() -> None:
    """Exact text to the letter, wildcards of ours, expressions anywhere in the text."""
    assert [True, False, True, True] == [
        exact("a").matches("a"),
        exact("a*").matches("ab"),
        wildcard("a*").matches("ab"),
        expression("^a.c$").matches("abc"),
    ]


def test_an_unknown_extension_is_an_error() -> None:
    """A name that no certificate has would be a constraint that is never checked."""
    with pytest.raises(VerificationError, match="unknown certificate extension `color`"):
        extension_identifier("color")


def test_a_log_out_of_use_does_not_count() -> None:
    """A log is trusted only within the period that the trust root states (CVE-2026-54787)."""
    (log,) = ROOT.logs
    ended = TransparencyLog(log.key, log.id, log.begins, SERVICES.now)
    attestor = replace(_key(), logs=(ended,))
    assert "transparency log: the log was not in use when the entry was made" == _problem(attestor, _layer(KEYED))


def test_a_log_out_of_use_does_not_count_without_a_time_either() -> None:
    """An entry without a promise proves no time: the log must be in use now, or when the signature was stamped."""
    (log,) = ROOT.logs
    ended = TransparencyLog(log.key, log.id, log.begins, SERVICES.now)
    signature = _bundle(KEYED, is_stamped=True)
    (entry,) = signature.log_entries
    bare = replace(signature, log_entries=(replace(entry, promise=b""),))
    retired = replace(_key(), logs=(ended,))
    used = replace(_key(), logs=(replace(ended, ends=SERVICES.now + 100),))
    stamped = replace(used, time_authorities=ROOT.time_authorities)
    assert [
        "",
        "transparency log: the log was not in use when the entry was made",
        "transparency log: the log was not in use when the entry was made",
        "",
    ] == [
        _problem(_key(), bare),
        _problem(retired, bare),
        _problem(used, bare),
        _problem(stamped, bare),
    ]


def test_attestors_are_values() -> None:
    """Attestors of equal fields are equal, so that a cache can be keyed by them."""
    assert (_key(), len(fields(_key()))) == (_key(), 17)
