"""Signatures made by cosign and notation-go are accepted, and refused once one part is wrong."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aiohttp import TCPConnector

from pyverno.engine.imagesource import ImageAccess, ResolvedImage
from pyverno.errors import NotFoundError
from pyverno.images.verification.attestors import Attestor, Identity, exact
from pyverno.images.verification.certificates import read_certificates
from pyverno.images.verification.keys import read_key
from pyverno.images.verification.notary.envelope import read_notary
from pyverno.images.verification.notary.verify import NotaryAttestor, NotaryTarget, verify_notary
from pyverno.images.verification.payloads import IMAGE_SIGNATURE
from pyverno.images.verification.signature import read_stored
from pyverno.images.verification.stored import SignatureForm, StoredSignature
from pyverno.images.verification.trust import read_trust_root
from pyverno.images.verification.verify import Expected, verify
from pyverno.kube.json import JSONObject
from pyverno.registry.client import RegistryClient
from pyverno.registry.images import RegistryImages, SecretCredentials
from pyverno.registry.transport import RegistrySettings, Transport
from tests.authority.registry import Registry
from tests.authority.signing import SigningServices

OUTPUTS = Path(__file__).parents[3] / "authority/outputs"
NOW = 1_795_500_000
"""A moment after the signatures were made, at which the chains of notation are valid."""
SCAN = "https://example.com/scan"
ROOT = read_trust_root((OUTPUTS / "trusted_root.json").read_bytes())
LAYER, ATTESTATION, REFERRER, BUNDLE, NOTARY = (
    SignatureForm.SIGNATURE_TAG,
    SignatureForm.ATTESTATION_TAG,
    SignatureForm.SIGNATURE_REFERRER,
    SignatureForm.BUNDLE,
    SignatureForm.NOTARY,
)


def _text(stored: str | dict[str, str]) -> bytes:
    return stored.encode() if isinstance(stored, str) else base64.b64decode(stored["base64"])


def _registry(tool: str, *, supports_referrers: bool) -> Registry:
    stored = json.loads((OUTPUTS / f"{tool}.json").read_text())
    registry = Registry(supports_referrers=supports_referrers)
    for each in stored["manifests"]:
        registry.manifests[each["repository"], each["reference"]] = (each["mediaType"], _text(each["body"]))
    registry.blobs.update({digest: _text(blob) for digest, blob in stored["blobs"].items()})
    return registry


@cache
def _read(tool: str, name: str, form: SignatureForm) -> tuple[ResolvedImage, Sequence[StoredSignature]]:
    """Return an image and what is stored for it, read from a registry that holds what the signer wrote."""
    registry = _registry(tool, supports_referrers=not name.startswith("fallback-"))

    async def secret(_namespace: str, _name: str) -> JSONObject:
        raise NotFoundError("secrets not found")

    async def run() -> tuple[ResolvedImage, Sequence[StoredSignature]]:
        async with registry:
            transport = Transport(RegistrySettings(5), TCPConnector)
            images = RegistryImages(RegistryClient(transport), SecretCredentials(secret, "kyverno"))
            place = f"{registry.host}/signed/{name}"
            try:
                image = await images.resolve(f"{place}:v1", ImageAccess())
                return image, await images.signatures(place, image.digest, form, ImageAccess())
            finally:
                await images.close()

    return asyncio.run(run())


# -------------------------------------------------------------------------------------------------------------- cosign


def _key(pem: str = "", **options: Any) -> Attestor:
    return Attestor(".keys", key=read_key((pem or (OUTPUTS / "cosign.pub").read_text()).encode()), **options)


def _keyless(subject: str = "dev@example.com") -> Attestor:
    return Attestor(
        ".keyless",
        authorities=ROOT.authorities,
        identities=(Identity((exact(subject),), (exact("https://accounts.example.com"),)),),
        logs=ROOT.logs,
        certificate_logs=ROOT.certificate_logs,
    )


COSIGN: dict[str, tuple[SignatureForm, str]] = {
    "cosign-layer": (LAYER, IMAGE_SIGNATURE),
    "cosign-layer-annotated": (LAYER, IMAGE_SIGNATURE),
    "cosign-layer-referrer": (REFERRER, IMAGE_SIGNATURE),
    "cosign-bundle": (BUNDLE, IMAGE_SIGNATURE),
    "cosign-attestation-layer": (ATTESTATION, SCAN),
    "cosign-attestation-bundle": (BUNDLE, SCAN),
    "logged-layer": (LAYER, IMAGE_SIGNATURE),
    "logged-bundle": (BUNDLE, IMAGE_SIGNATURE),
    "keyless-layer": (LAYER, IMAGE_SIGNATURE),
    "keyless-bundle": (BUNDLE, IMAGE_SIGNATURE),
    "keyless-attestation-layer": (ATTESTATION, SCAN),
    "keyless-attestation-bundle": (BUNDLE, SCAN),
    "fallback-cosign-bundle": (BUNDLE, IMAGE_SIGNATURE),
}


def _attestor(name: str) -> Attestor:
    if name.startswith("keyless"):
        return _keyless()
    return _key(logs=ROOT.logs) if name.startswith("logged") else _key(log_required=False)


def _problem(name: str, attestor: Attestor, *, digest: str = "", kind: str = "") -> str:
    form, predicate_type = COSIGN[name]
    image, (stored,) = _read("cosign", name, form)
    expected = Expected(digest or image.digest, kind or predicate_type, NOW)
    return verify(attestor, read_stored(stored), expected).ledger.problem


@pytest.mark.parametrize("name", COSIGN)
def test_a_signature_that_cosign_made_passes(name: str) -> None:
    """Layers, bundles and attestations, by keys and keyless, logged and not, with referrers and without."""
    assert _problem(name, _attestor(name)) == ""


@pytest.mark.parametrize("name", COSIGN)
def test_a_signature_that_cosign_made_proves_one_thing_only(name: str) -> None:
    """Not another image, another type of statement, another key, nor another identity."""
    stranger = SigningServices().keyed().public_pem
    other = _keyless("boss@example.com") if name.startswith("keyless") else _key(stranger, log_required=False)
    foreign = SCAN if COSIGN[name][1] == IMAGE_SIGNATURE else IMAGE_SIGNATURE
    found = (
        _problem(name, _attestor(name), digest=f"sha256:{'cd' * 32}"),
        _problem(name, _attestor(name), kind=foreign),
        _problem(name, other),
    )
    assert ["digest", "type", "identity" if name.startswith("keyless") else "signature"] == [
        each.partition(":")[0] for each in found
    ]


def test_annotations_that_cosign_signed_are_compared() -> None:
    """`-a team=a` is in the signed payload."""
    wanted = [_key(log_required=False, annotations={"team": exact(text)}) for text in ("a", "b")]
    assert ["", "annotation team: the signature says `a` where `b` is demanded"] == [
        _problem("cosign-layer-annotated", each) for each in wanted
    ]


# ------------------------------------------------------------------------------------------------------------ notation

NOTATION = [
    *(f"notation-{form}-{key}" for form in ("jose", "cose") for key in ("p256", "p384", "rsa2048")),
    "fallback-notation",
]


def _notary_problem(name: str, root: str, **target: Any) -> str:
    image, (stored,) = _read("notation", name, NOTARY)
    attestor = NotaryAttestor(
        ".certificates",
        read_certificates((OUTPUTS / f"notation-{root}.pem").read_text()),
        metadata={"build": exact("12")} if name.startswith("notation") else {},
    )
    described = {"digest": image.digest, "size": image.size, "now": NOW, "media_type": image.media_type, **target}
    return verify_notary(attestor, read_notary(stored.blob, stored.media_type), NotaryTarget(**described)).problem


@pytest.mark.parametrize("name", NOTATION)
def test_a_signature_that_notation_made_passes(name: str) -> None:
    """Both envelopes, with keys of every kind, and its metadata."""
    assert _notary_problem(name, name.rpartition("-")[2] if name.startswith("notation") else "p256") == ""


@pytest.mark.parametrize("name", NOTATION)
def test_a_signature_that_notation_made_proves_one_thing_only(name: str) -> None:
    """Not another image, and nothing below the root of another signer."""
    own = name.rpartition("-")[2] if name.startswith("notation") else "p256"
    found = (
        _notary_problem(name, own, digest=f"sha256:{'cd' * 32}"),
        _notary_problem(name, "p384" if own == "p256" else "p256"),
    )
    assert ["digest", "trust store"] == [each.partition(":")[0] for each in found]
