"""The result of verification for every form of signature, valid and invalid in every way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import TCPConnector

from pyverno.engine.imagesource import ImageAccess, ResolvedImage
from pyverno.errors import HostError, NotFoundError, VerificationError
from pyverno.images.verification.attestors import Attestor, Identity, exact
from pyverno.images.verification.certificates import read_certificates
from pyverno.images.verification.keys import read_key
from pyverno.images.verification.notary.envelope import read_notary
from pyverno.images.verification.notary.verify import NotaryAttestor, NotaryTarget, verify_notary
from pyverno.images.verification.payloads import IMAGE_SIGNATURE
from pyverno.images.verification.signature import read_attestation_layer, read_bundle, read_signature_layer
from pyverno.images.verification.stored import SignatureForm, StoredSignature
from pyverno.images.verification.trust import read_trust_root
from pyverno.images.verification.verify import Expected, verify
from pyverno.kube.json import JSONObject
from pyverno.registry.client import RegistryClient
from pyverno.registry.images import RegistryImages, SecretCredentials
from pyverno.registry.transport import RegistrySettings, Transport
from tests.authority.notary import COSE, JWS, NotarySigner
from tests.authority.registry import BUNDLE, INDEX, Registry
from tests.authority.signing import Layer, Signer, SigningServices

NOW = 1_700_000_000
OTHER = "sha256:" + "cd" * 32
SCAN = "https://example.com/scan"
NOTARY = "application/vnd.cncf.notary.signature"
SIMPLE, DSSE = "application/vnd.dev.cosign.simplesigning.v1+json", "application/vnd.dsse.envelope.v1+json"
SERVICES, FOREIGN = SigningServices(NOW), SigningServices(NOW)
ROOT = read_trust_root(SERVICES.trusted_root())
KEYLESS = Attestor(
    ".keyless",
    authorities=ROOT.authorities,
    identities=(Identity((exact("dev@example.com"),), (exact("https://accounts.example.com"),)),),
    logs=ROOT.logs,
    certificate_logs=ROOT.certificate_logs,
)
KEY = Attestor(".keys", key=read_key(SERVICES.keyed().public_pem.encode()), log_required=False)
OWN, STRANGER, ENDED = NotarySigner(NOW), NotarySigner(NOW), NotarySigner(NOW, begins=NOW - 10**6, seconds=60)

COLUMNS = (
    *("good", "wrong key", "wrong digest", "wrong identity", "expired", "no SCT", "no log", "foreign log entry"),
    *("duplicate keys", "huge", "wrong media type", "wrong subject"),
)
_CHAIN, _SCT, _LOG = "certificate chain", "certificate log", "transparency log"
_COSIGN = ("", "signature", "digest", "identity", _CHAIN, _SCT, _LOG, _LOG, "unreadable", "registry")
_NOTARY = ("", "trust store", "digest", None, "certificate", None, None, None, "unreadable", "registry", "unreadable")
MATRIX: dict[str, tuple[str | None, ...]] = {
    "layer": (*_COSIGN, "no signature", None),
    "attestation": (*_COSIGN, "no signature", None),
    "bundle": (*_COSIGN, "no signature", "registry"),
    JWS: (*_NOTARY, "registry"),
    COSE: (*_NOTARY, "registry"),
}
"""The constraint that breaks, "" for none; None where the form has no such thing."""

FORMS = {
    "layer": SignatureForm.SIGNATURE_TAG,
    "attestation": SignatureForm.ATTESTATION_TAG,
    "bundle": SignatureForm.BUNDLE,
    JWS: SignatureForm.NOTARY,
    COSE: SignatureForm.NOTARY,
}


def _signer(column: str) -> Signer:
    subject = "boss@example.com" if column == "wrong identity" else "dev@example.com"
    return SERVICES.keyless(subject, has_timestamp=column != "no SCT")


def _cosign(envelope: str, column: str, digest: str) -> tuple[bytes, dict[str, str]]:
    """Return the blob of a signature and its annotations."""
    signer, signed = _signer(column), OTHER if column == "wrong digest" else digest
    options: dict[str, Any] = {"is_logged": column != "no log", "time": NOW + 601 if column == "expired" else None}
    if envelope == "bundle":
        made = signer.bundle(signed, **options)
        if column == "foreign log entry":
            foreign = signer.bundle(OTHER)["verificationMaterial"]["tlogEntries"]
            made["verificationMaterial"]["tlogEntries"] = foreign
        return json.dumps(made).encode(), {}

    def layer(about: str, **given: Any) -> Layer:
        if envelope == "layer":
            return signer.sign_layer(about, **given)
        return signer.attest_layer(about, {"a": 1}, SCAN, **given)

    found, name = layer(signed, **options), "dev.sigstore.cosign/bundle"
    foreign = {name: layer(OTHER).annotations[name]} if column == "foreign log entry" else {}
    return found.blob, {**found.annotations, **foreign}


def _notary(form: str, column: str, digest: str, size: int) -> bytes:
    signer = {"wrong key": STRANGER, "expired": ENDED}.get(column, OWN)
    return signer.sign(form, OTHER if column == "wrong digest" else digest, size)


def _spoil(blob: bytes, envelope: str, column: str) -> bytes:
    if column == "duplicate keys" and envelope == COSE:
        return b"\xa2\x01\x01\x01\x02"  # a map with the key 1 twice, which is no envelope either
    if column == "duplicate keys":
        first = blob[: blob.index(b":")].lstrip(b"{ ")
        return b"{" + first + b": 1, " + blob.lstrip(b"{")
    return blob + b" " * 11 * 1024 * 1024 if column == "huge" else blob


def _fill(registry: Registry, envelope: str, column: str) -> None:
    """Store an image and one signature of it."""
    digest = registry.push("team/app", "v1")
    tag, odd = digest.replace(":", "-"), column == "wrong media type"
    if envelope in ("layer", "attestation"):
        suffix, kind = (".sig", SIMPLE) if envelope == "layer" else (".att", DSSE)
        blob, annotations = _cosign(envelope, column, digest)
        layer = Layer(_spoil(blob, envelope, column), annotations)
        registry.push_layers("team/app", f"{tag}{suffix}", [layer], "text/plain" if odd else kind)
        return
    if envelope == "bundle":
        blob, artifact, kind = _cosign(envelope, column, digest)[0], "text/plain" if odd else BUNDLE, BUNDLE
    else:
        size = len(registry.manifests["team/app", digest][1])
        blob, artifact, kind = _notary(envelope, column, digest, size), NOTARY, "text/plain" if odd else envelope
    subject = OTHER if column == "wrong subject" else digest
    stored = registry.attach("team/app", subject, _spoil(blob, envelope, column), artifact, media_type=kind)
    if column == "wrong subject":  # the list behind the tag names what refers to another image
        raw = registry.manifests["team/app", stored]
        listed = {"mediaType": raw[0], "digest": stored, "size": len(raw[1]), "artifactType": artifact}
        registry.put_manifest("team/app", tag, INDEX, {"schemaVersion": 2, "manifests": [listed]})


def _read(envelope: str, column: str) -> tuple[ResolvedImage, Sequence[StoredSignature]]:
    async def secret(_namespace: str, _name: str) -> JSONObject:
        raise NotFoundError("secrets not found")

    async def run() -> tuple[ResolvedImage, Sequence[StoredSignature]]:
        async with Registry(supports_referrers=column != "wrong subject") as registry:
            _fill(registry, envelope, column)
            transport = Transport(RegistrySettings(5), TCPConnector)
            images = RegistryImages(RegistryClient(transport), SecretCredentials(secret, "kyverno"))
            place = f"{registry.host}/team/app"
            try:
                image = await images.resolve(f"{place}:v1", ImageAccess())
                return image, await images.signatures(place, image.digest, FORMS[envelope], ImageAccess())
            finally:
                await images.close()

    return asyncio.run(run())


def _outcome(envelope: str, column: str) -> str:
    try:
        image, stored = _read(envelope, column)
    except HostError:
        return "registry"
    if not stored:
        return "no signature"
    try:
        problem = _problem(envelope, column, image, stored[0])
    except VerificationError:
        return "unreadable"
    return problem.partition(":")[0]


def _problem(envelope: str, column: str, image: ResolvedImage, stored: StoredSignature) -> str:
    if FORMS[envelope] is SignatureForm.NOTARY:
        signer = ENDED if column == "expired" else OWN
        attestor = NotaryAttestor(".certificates", read_certificates(signer.root_pem))
        target = NotaryTarget(image.digest, image.size, NOW, image.media_type)
        return verify_notary(attestor, read_notary(stored.blob, stored.media_type), target).problem
    if envelope == "bundle":
        signature = read_bundle(stored.blob)
    else:
        read = read_signature_layer if envelope == "layer" else read_attestation_layer
        signature = read(stored.blob, stored.annotations)
    expected = Expected(image.digest, SCAN if envelope == "attestation" else IMAGE_SIGNATURE, NOW + 10**6)
    return verify(KEY if column == "wrong key" else KEYLESS, signature, expected).ledger.problem


@pytest.mark.parametrize("envelope", MATRIX)
@pytest.mark.parametrize("column", COLUMNS)
def test_only_the_good_signature_of_each_form_passes(envelope: str, column: str) -> None:
    """A wrong one breaks the constraint that it should, or cannot be read, or is an error of its registry."""
    expected = MATRIX[envelope][COLUMNS.index(column)]
    if expected is not None:
        assert expected == _outcome(envelope, column)


def test_the_matrix_is_whole() -> None:
    """There are five forms and twelve columns; ten cells do not apply to their form."""
    cells = [each for row in MATRIX.values() for each in row]
    assert (60, 10, 5) == (len(cells), cells.count(None), cells.count(""))
