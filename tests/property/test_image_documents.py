"""Mutated signatures, bundles, envelopes, certificates, trust roots and answers of registries.

Every reader either reads or raises an error of ours, and a mutated signature passes only where what is signed and the
signer stayed the same.
"""

from __future__ import annotations

import json
import os
import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.utils import CryptographyDeprecationWarning

from pyverno.errors import PyvernoError
from pyverno.images.verification.attestors import Attestor, Identity, exact
from pyverno.images.verification.certificates import (
    check_code_signing,
    extensions_of,
    issuer_of,
    read_certificate,
    read_certificates,
    subjects_of,
)
from pyverno.images.verification.keys import read_key
from pyverno.images.verification.notary.envelope import read_notary
from pyverno.images.verification.notary.verify import NotaryAttestor, NotaryTarget, verify_notary
from pyverno.images.verification.payloads import IMAGE_SIGNATURE
from pyverno.images.verification.signature import Signature, read_attestation_layer, read_bundle, read_signature_layer
from pyverno.images.verification.timestamps import check_timestamp
from pyverno.images.verification.trust import read_trust_root
from pyverno.images.verification.verify import Expected, verify
from pyverno.registry.challenge import parse_challenges
from pyverno.registry.client import Manifest, layers_of
from pyverno.registry.credentials import read_docker_config
from tests.authority.notary import COSE, JWS, NotarySigner
from tests.authority.signing import SigningServices

NIGHTLY = bool(os.environ.get("PYVERNO_NIGHTLY"))
ROUNDS = 1_000_000 if NIGHTLY else 10_000
DIGEST = "sha256:" + "ab" * 32
SERVICES = SigningServices()
ROOT = read_trust_root(SERVICES.trusted_root())
KEYED, STRANGER = SERVICES.keyed(), SERVICES.keyed()
DEVELOPER = SERVICES.keyless()
NOTARY, FOREIGN = NotarySigner(), NotarySigner()
EXPECTED = Expected(DIGEST, IMAGE_SIGNATURE, SERVICES.now + 10**6)
KEYLESS = Attestor(
    ".keyless",
    authorities=ROOT.authorities,
    identities=(Identity((exact("dev@example.com"),), (exact("https://accounts.example.com"),)),),
    logs=ROOT.logs,
    certificate_logs=ROOT.certificate_logs,
    time_authorities=ROOT.time_authorities,
)


def _key(pem: str) -> Attestor:
    return Attestor(".keys", key=read_key(pem.encode()), logs=ROOT.logs)


Document = tuple[bytes, Callable[[bytes], object]]


def _layer(data: bytes) -> Signature:
    stored = json.loads(data)
    return read_signature_layer(stored["blob"].encode(), stored["annotations"])


def _signatures() -> Iterator[tuple[bytes, Callable[[bytes], Signature], Attestor]]:
    """Yield signatures that pass, each with its reader and attestor."""
    for signer, attestor in ((KEYED, _key(KEYED.public_pem)), (DEVELOPER, KEYLESS)):
        layer = signer.sign_layer(DIGEST, is_stamped=True)
        yield json.dumps({"blob": layer.blob.decode(), "annotations": layer.annotations}).encode(), _layer, attestor
        yield json.dumps(signer.bundle(DIGEST, is_stamped=True)).encode(), read_bundle, attestor


_TOKENS = (b'"', b"{", b"[", b"\\ud800", b"\x00", b"\xff", b"null", b"1e999", b"-1", b"\x30\x84", b"A" * 64, b"=")


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Return data with one to three pieces flipped, cut out, doubled, or replaced by a token."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(found) + 1)
        end = min(len(found), place + chance.choice((1, 1, 2, 8, 64)))
        match chance.randrange(5):
            case 0 if place < len(found):
                found[place] ^= 1 << chance.randrange(8)
            case 1:
                del found[place:end]
            case 2:
                found[place:place] = found[place:end]
            case 3:
                found[place:end] = chance.choice(_TOKENS)
            case _:
                found[place:place] = chance.choice(_TOKENS)
    return bytes(found)


@pytest.fixture(autouse=True)
def _old_certificates_only_warn() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        yield


def _slowest(rounds: int, judge: Callable[[random.Random], None]) -> float:
    """Run a check with a seed for each round; return the longest CPU time of one."""
    slowest = 0.0
    for seed in range(rounds):
        begin = time.process_time()
        judge(random.Random(seed))  # noqa: S311 - repeatable, no secret
        slowest = max(slowest, time.process_time() - begin)
    return slowest if NIGHTLY else 0.0


def test_no_mutation_of_a_signature_changes_what_passes() -> None:
    """A mutated signature passes only with the same signed bytes and signer, and for a stranger's key never."""
    originals = [(data, read, attestor, read(data)) for data, read, attestor in _signatures()]
    assert all(verify(attestor, good, EXPECTED).ledger.passes for _, _, attestor, good in originals)
    stranger = _key(STRANGER.public_pem)

    def judge(chance: random.Random) -> None:
        data, read, attestor, good = chance.choice(originals)
        try:
            found = read(mutate(data, chance))
        except (PyvernoError, ValueError, KeyError, TypeError, AttributeError) as error:
            # the wrapper of layers is no reader of ours: only its own JSON may fail otherwise
            assert isinstance(error, PyvernoError) or read is _layer
            return
        assert not verify(stranger, found, EXPECTED).ledger.passes
        if verify(attestor, found, EXPECTED).ledger.passes:
            assert (good.signed, good.certificate) == (found.signed, found.certificate)

    assert _slowest(ROUNDS // 4, judge) < 1


def test_no_mutation_of_a_notary_envelope_changes_what_passes() -> None:
    """A mutated envelope passes only with the same signed bytes, and below a stranger's root never."""
    originals = [(NOTARY.sign(form, DIGEST), form) for form in (JWS, COSE)]
    stores = [read_certificates(each.root_pem) for each in (NOTARY, FOREIGN)]
    own, foreign = (NotaryAttestor(".certificates", store) for store in stores)
    target = NotaryTarget(DIGEST, 7, SERVICES.now)

    def judge(chance: random.Random) -> None:
        data, form = chance.choice(originals)
        with suppress(PyvernoError):
            found = read_notary(mutate(data, chance), form)
            assert not verify_notary(foreign, found, target).passes
            if verify_notary(own, found, target).passes:
                assert read_notary(data, form).signed == found.signed

    assert _slowest(ROUNDS // 4, judge) < 1


def _certificate(data: bytes) -> None:
    found = read_certificate(data)
    for check in (check_code_signing, subjects_of, issuer_of, extensions_of, lambda each: (each.key, each.begins)):
        with suppress(PyvernoError):
            check(found)


def _documents() -> Iterator[Document]:
    manifest = {"layers": [{"digest": DIGEST, "mediaType": "a", "size": 1, "annotations": {"a": "b"}}]}
    config = {"auths": {"registry.example.com": {"auth": "dXNlcjpwYXNz"}}}
    challenge = 'Bearer realm="https://auth.example.com/t",service="s",scope="repository:a:pull,push", Basic realm="x"'
    leaf = DEVELOPER.leaf
    assert leaf is not None
    yield leaf.certificate.public_bytes(Encoding.DER), _certificate
    yield leaf.pem.encode(), _certificate
    yield NOTARY.leaf.public_bytes(Encoding.DER), _certificate
    yield KEYED.public_pem.encode(), read_key
    yield SERVICES.trusted_root(), read_trust_root
    stamp = SERVICES.time_authority.stamp(b"signature", SERVICES.now)
    yield stamp, lambda data: check_timestamp(data, b"signature", ROOT.time_authorities)
    attested = KEYED.attest_layer(DIGEST, {"a": 1}, "https://example.com/scan")
    yield attested.blob, lambda data: read_attestation_layer(data, attested.annotations)
    yield json.dumps(manifest).encode(), lambda data: layers_of(Manifest(DIGEST, "", data).read())
    yield json.dumps(config).encode(), lambda data: read_docker_config(data, "config")
    yield challenge.encode(), lambda data: parse_challenges(data.decode("latin-1"))


def test_every_reader_raises_errors_of_ours_only() -> None:
    """An unreadable document from a registry, a policy or a signer raises one of our own errors, never another."""
    documents = list(_documents())

    def judge(chance: random.Random) -> None:
        data, read = chance.choice(documents)
        with suppress(PyvernoError):
            read(mutate(data, chance))

    assert _slowest(ROUNDS // 2, judge) < 1
