"""The registry of all images of the corpus, beside this process: it signs them again, and rewrites the corpus for them.

Every name of a registry leads to it, so that references, wildcards and messages stay as they are written.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import aiohttp

from pyverno.loopthread import LoopThread
from tests.authority.notary import JWS, NotarySigner
from tests.authority.registry import INDEX, MANIFEST, Registry
from tests.authority.signing import Layer, Signer, SigningServices
from tests.conformance.images.catalogue import CERTIFICATES, IMAGES, PUBLIC_KEYS, Attested, Image, Keyless

__all__ = ["ImageWorld", "Rewritten", "image_world"]

_SIMPLE: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
_ENVELOPE: Final = "application/vnd.dsse.envelope.v1+json"
_REFERRING: Final = "application/vnd.dev.cosign.artifact.sig.v1+json"
_NOTATION: Final = "application/vnd.cncf.notary.signature"
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_LAYER: Final = "application/vnd.oci.image.layer.v1.tar"
_PEM: Final = re.compile(r"(?P<indent>[ \t]*)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.S)
_ENCODED: Final = re.compile(r"LS0tLS1CRUdJTiB[A-Za-z0-9+/=]+")
_LINE: Final = 64


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A text of the corpus with our keys, certificates and digests, and what of it was replaced."""

    text: str
    replaced: frozenset[str] = frozenset()


class ImageWorld:
    """The registry, its signers, and the trust in them."""

    def __init__(self) -> None:
        """Sign all images and start the registry."""
        self._services = SigningServices()
        self._keys = {name: self._services.keyed() for name in PUBLIC_KEYS}
        self._certificates = {name: NotarySigner(int(time.time())) for name in CERTIFICATES}
        self._registry = Registry()
        self._digests: dict[str, str] = {}
        for image in IMAGES:
            self._push(image)
        self.trusted_root = self._services.trusted_root()
        LoopThread("registry").ask(self._registry.start(), "the registry")

    def connector(self) -> aiohttp.BaseConnector:
        """Return a connector that leads every host name to the registry; call this on a loop."""
        return self._registry.connector()

    # ----------------------------------------------------------------------------------------------------- rewriting

    def rewrite(self, text: str) -> Rewritten:
        """Replace the keys, certificates and digests of the real images by ours."""
        replaced: set[str] = set()
        for old, new in self._digests.items():
            if old in text:
                text = text.replace(old, new)
                replaced.add(f"digest {old[:14]}...")
        for name, signer in self._keys.items():
            before, after = _lines(PUBLIC_KEYS[name]), signer.public_pem.splitlines()[1:-1]
            if before[0] in text:
                for old, new in zip(before, after, strict=True):
                    text = text.replace(old, new)
                replaced.add(f"public key of {name}")
        text = _PEM.sub(lambda found: self._certificate(found, replaced), text)
        text = _ENCODED.sub(lambda found: self._encoded(found, replaced), text)
        for image in IMAGES:
            if image.replaced and any(f"{image.repository}{end}" in text for end in _ends(image)):
                replaced.add(f"{image.repository}: {image.replaced}")
        return Rewritten(text, frozenset(replaced))

    def _certificate(self, found: re.Match[str], replaced: set[str]) -> str:
        body = "".join(found[0].split())
        name = next((name for name, line in CERTIFICATES.items() if line in body), "")
        if not name:
            return found[0]
        replaced.add(f"certificate {name}")
        pem = self._certificates[name].root_pem.strip().splitlines()
        if "\n" not in found[0]:
            return found["indent"] + "\\n".join(pem)
        return "\n".join(found["indent"] + line for line in pem)

    def _encoded(self, found: re.Match[str], replaced: set[str]) -> str:
        """Rewrite a PEM inside the data of a Secret."""
        try:
            inner = self.rewrite(base64.b64decode(found[0], validate=True).decode())
        except ValueError:
            return found[0]
        replaced |= inner.replaced
        return base64.b64encode(inner.text.encode()).decode()

    # --------------------------------------------------------------------------------------------------------- images

    def _push(self, image: Image) -> None:
        config = {"architecture": "amd64", "os": "linux", "config": {**image.config, "Image": image.tags[0]}}
        descriptors = [self._blob(_CONFIG, json.dumps({**config, **image.extra}).encode())]
        layer = self._blob(_LAYER, b"layer")
        body = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptors[0],
            "layers": [{**layer, "size": image.layer or layer["size"]}],
            "annotations": {**image.annotations, "org.opencontainers.image.title": image.repository},
        }
        repository = image.repository
        digest = self._registry.put_manifest(repository, "", MANIFEST, body)
        media_type = MANIFEST
        if image.has_index:
            size = len(self._registry.manifests[repository, digest][1])
            child = {"mediaType": MANIFEST, "digest": digest, "size": size}
            platform = {"platform": {"architecture": "amd64", "os": "linux"}}
            body = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [{**child, **platform}]}
            media_type = INDEX
            digest = self._registry.put_manifest(repository, "", INDEX, body)
        for tag in image.tags:
            self._registry.put_manifest(repository, tag, media_type, body)
        if image.digest:
            self._digests[image.digest] = digest
        self._sign(image, digest)

    def _sign(self, image: Image, digest: str) -> None:
        signers = [*(self._keys[name] for name in image.keys), *map(self._keyless, image.identities)]
        if image.is_bundle:
            for signer in signers:
                bundle = json.dumps(signer.bundle(digest, is_stamped=True)).encode()
                self._registry.attach(image.repository, digest, bundle)
        elif signers:
            self._put_layers(image, digest, "sig", [each.sign_layer(digest) for each in signers], _SIMPLE)
        for name in image.certificates:
            self._notarize(image.repository, digest, name)
        envelopes = [self._attest(image, digest, each) for each in image.attestations]
        layers = [each for each in envelopes if each is not None]
        if layers:
            self._put_layers(image, digest, "att", layers, _ENVELOPE)

    def _put_layers(self, image: Image, digest: str, end: str, layers: list[Layer], media_type: str) -> None:
        if not image.is_referrer:
            self._registry.push_layers(image.repository, f"{digest.replace(':', '-')}.{end}", layers, media_type)
            return
        stored = self._registry.push_layers(image.repository, "", layers, media_type)
        body = json.loads(self._registry.manifests.pop((image.repository, stored))[1])
        body["artifactType"] = _REFERRING
        body["subject"] = {"mediaType": MANIFEST, "digest": digest, "size": 1}
        self._registry.put_manifest(image.repository, "", MANIFEST, body)

    def _attest(self, image: Image, digest: str, attested: Attested) -> Layer | None:
        """Attach a signed artefact, or return the layer of a keyless attestation."""
        if isinstance(attested.signer, Keyless):
            return self._keyless(attested.signer).attest_layer(digest, attested.predicate, attested.type)
        blob = json.dumps(attested.predicate).encode()
        artefact = self._registry.attach(
            image.repository, digest, blob, attested.type, media_type="application/vnd.oci.image.layer.v1.tar"
        )
        self._notarize(image.repository, artefact, attested.signer)
        return None

    def _notarize(self, repository: str, digest: str, name: str) -> None:
        size = len(self._registry.manifests[repository, digest][1])
        envelope = self._certificates[name].sign(JWS, digest, size)
        self._registry.attach(repository, digest, envelope, _NOTATION, media_type=JWS)

    @cache  # noqa: B019 - one world lives as long as the process
    def _keyless(self, identity: Keyless) -> Signer:
        return self._services.keyless(identity.subject, issuer=identity.issuer)

    def _blob(self, media_type: str, data: bytes) -> dict[str, Any]:
        return self._registry.describe(media_type, data)


def _lines(body: str) -> list[str]:
    return [body[start : start + _LINE] for start in range(0, len(body), _LINE)]


def _ends(image: Image) -> Iterator[str]:
    yield from (f":{tag}" for tag in image.tags)
    yield "@sha256"


@cache
def image_world() -> ImageWorld:
    """Return the world of this process; it ends with the process."""
    return ImageWorld()
