"""Images that are verified outside of reviews: the library's `verify_image`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import pyverno
from tests.authority.notary import JWS, NotarySigner
from tests.support.images import ImageStage, image_stage

NOTARY = "application/vnd.cncf.notary.signature"


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[ImageStage]:
    """A registry with an image `v1` that a key signed."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path_factory.mktemp("docker")))
    with image_stage() as found:
        found.sign(found.push("v1"))
        yield found


def test_every_demand_has_a_verdict_with_its_checks(stage: ImageStage) -> None:
    """Each named signer is one demand, and every demand must be met."""
    root, keys = stage.services.trusted_root(), [stage.signer.public_pem, stage.services.keyed().public_pem]
    good, both = (pyverno.verify_image(stage.image("v1"), keys=each, trust_root=root) for each in (keys[:1], keys))
    assert (True, False, [True, False]) == (good.verified, both.verified, [each.passes for each in both.demands])
    assert both.demands[1].problems[0].endswith("signature: the signature was not made by this key")
    (_, ledger), *_ = good.demands[0].checks
    assert ["digest", "type", "signature", "key", "transparency log"] == [each.constraint for each in ledger.entries]
    assert (stage.image("v1"), good.digest) == (good.image, good.to_json()["digest"])


def test_identities_attestations_and_notary_signatures_are_verified(stage: ImageStage) -> None:
    """Examples are a Sigstore bundle, an attestation layer and a Notary referrer."""
    digest = stage.push("v2")
    stage.bundle(digest, stage.services.keyless("dev@example.com"))
    stage.attest(digest, stage.signer.attest_layer(digest, {"a": 1}, "https://example.com/scan"))
    signer = NotarySigner(now=int(time.time()))
    size = len(stage.registry.manifests["team/app", digest][1])
    stage.registry.attach("team/app", digest, signer.sign(JWS, digest, size), NOTARY, media_type=JWS)
    image, root, key = stage.image("v2"), stage.services.trusted_root(), [stage.signer.public_pem]
    issuer = "https://accounts.example.com"
    found = [
        pyverno.verify_image(image, identity="*@example.com", issuer=issuer, trust_root=root),
        pyverno.verify_image(image, identity="*@example.org", issuer=issuer, trust_root=root),
        pyverno.verify_image(image, keys=key, attestation="https://example.com/scan", ignore_log=True),
        pyverno.verify_image(image, keys=key, attestation="https://example.com/other", ignore_log=True),
        pyverno.verify_image(image, notary_certificates=signer.root_pem),
        pyverno.verify_image(image, notary_certificates=NotarySigner().root_pem),
    ]
    assert [True, False, True, False, True, False] == [each.verified for each in found]


def test_what_cannot_be_verified_is_an_error(stage: ImageStage) -> None:
    """Cases are a missing demand, a missing trust root, an invalid key and a missing image."""
    with pytest.raises(pyverno.UsageError, match="nothing is demanded"):
        pyverno.verify_image(stage.image("v1"))
    with pytest.raises(pyverno.UsageError, match="`trust_root` is needed"):
        pyverno.verify_image(stage.image("v1"), keys=[stage.signer.public_pem])
    with pytest.raises(pyverno.VerificationError):
        pyverno.verify_image(stage.image("v1"), keys=["no key"])
    with pytest.raises(pyverno.HostError):
        pyverno.verify_image(stage.image("v9"), keys=[stage.signer.public_pem], ignore_log=True)


class Vault(BaseHTTPRequestHandler):
    """A key management system with one key, `signing`."""

    pem = ""

    def do_GET(self) -> None:
        """Answer with the key to whoever has the token."""
        known = (self.path, self.headers["X-Vault-Token"]) == ("/v1/transit/keys/signing", "token")
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"data": {"latest_version": 1, "keys": {"1": {"public_key": self.pem}}}}).encode())

    def log_message(self, *_: object) -> None:
        """Write nothing."""


def test_a_key_of_a_key_management_system_is_fetched(stage: ImageStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The identity of the process reads it, as in every command; a key of a cluster is an error."""
    monkeypatch.setattr(Vault, "pem", stage.signer.public_pem)
    with ThreadingHTTPServer(("127.0.0.1", 0), Vault) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("VAULT_ADDR", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("VAULT_TOKEN", "token")
        found = pyverno.verify_image(stage.image("v1"), keys=["hashivault://signing"], ignore_log=True)
        with pytest.raises(pyverno.HostError, match="Vault answers 404"):
            pyverno.verify_image(stage.image("v1"), keys=["hashivault://other"], ignore_log=True)
        server.shutdown()
    assert found.verified
    with pytest.raises(pyverno.HostError, match="no cluster is available to read the key"):
        pyverno.verify_image(stage.image("v1"), keys=["k8s://kyverno/key"], ignore_log=True)
