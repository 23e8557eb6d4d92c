"""Rules with `type: Notary`: images are signed below the certificates of the rule."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from pyverno.kube.json import JSONObject
from tests.authority.notary import COSE, JWS, NotarySigner
from tests.authority.revocation import list_at, revocation_list
from tests.support.images import ImageStage, image_stage

ARTIFACT = "application/vnd.cncf.notary.signature"
SIGNER, STRANGER = NotarySigner(now=int(time.time())), NotarySigner(now=int(time.time()))


@pytest.fixture
def stage() -> Iterator[ImageStage]:
    """A registry with its own certificate authorities."""
    with image_stage() as made:
        yield made


def _sign(stage: ImageStage, signer: NotarySigner = SIGNER, form: str = JWS, **options: Any) -> None:
    digest = stage.push()
    size = len(stage.registry.manifests["team/app", digest][1])
    stage.registry.attach("team/app", digest, signer.sign(form, digest, size, **options), ARTIFACT, media_type=form)


def _policy(stage: ImageStage, *signers: NotarySigner, count: int = 1, **entry: Any) -> JSONObject:
    entries = [{"certificates": {"cert": each.root_pem}, **entry} for each in signers or (SIGNER,)]
    return stage.policy(type="Notary", attestors=[{"count": count, "entries": entries}])


def _outcome(stage: ImageStage, policy: JSONObject) -> tuple[str, str]:
    result = stage.review(policy).results[0]
    return result.status.value, result.message


@pytest.mark.parametrize("form", [JWS, COSE])
def test_an_image_that_is_signed_below_the_certificate_passes(stage: ImageStage, form: str) -> None:
    """Both envelopes are read."""
    _sign(stage, form=form)
    assert _outcome(stage, _policy(stage)) == ("pass", f"verified image signatures for {stage.image()}")


def test_one_of_the_attestors_is_enough_unless_all_are_demanded(stage: ImageStage) -> None:
    """The count of the set decides, and the same certificate in two entries counts once."""
    _sign(stage)
    statuses = [
        _outcome(stage, _policy(stage, STRANGER, SIGNER))[0],
        _outcome(stage, _policy(stage, STRANGER, SIGNER, count=2))[0],
        _outcome(stage, _policy(stage, SIGNER, SIGNER, count=2))[0],
    ]
    assert statuses == ["pass", "fail", "fail"]


def test_an_image_without_a_signature_of_the_signer_fails(stage: ImageStage) -> None:
    """The message names the attestor, and why its signature does not count."""
    stage.push()
    path = f"failed to verify image {stage.image()}: .attestors[0].entries[0].certificates: "
    unsigned = _outcome(stage, _policy(stage))
    _sign(stage, STRANGER)
    assert [unsigned, _outcome(stage, _policy(stage))] == [
        ("fail", f"{path}no signatures found"),
        ("fail", f"{path}trust store: no certificate of the chain is in the trust store"),
    ]


def test_signed_metadata_is_compared_with_the_annotations_of_the_rule(stage: ImageStage) -> None:
    """Annotations that Kyverno ignores for Notary count here."""
    _sign(stage, annotations={"build": "1"})
    statuses = [_outcome(stage, _policy(stage, annotations={"build": each}))[0] for each in ("1", "2")]
    assert statuses == ["pass", "fail"]


def test_a_log_that_is_demanded_of_notary_is_an_error(stage: ImageStage) -> None:
    """Notary has no transparency log, so the constraint can never be met."""
    _sign(stage)
    entry = {"certificates": {"cert": SIGNER.root_pem, "rekor": {"url": "https://rekor.example.com"}}}
    policy = stage.policy(type="Notary", attestors=[{"entries": [entry]}])
    assert _outcome(stage, policy)[0] == "error"


SBOM = "sbom/cyclone-dx"


def _attested(*signers: NotarySigner, **attestation: Any) -> JSONObject:
    entries = [{"certificates": {"cert": each.root_pem}} for each in signers]
    return {"type": SBOM, "attestors": [{"count": 1, "entries": entries}], **attestation}


def _attach(stage: ImageStage, signer: NotarySigner | None, form: str = "CycloneDX") -> None:
    digest = stage.push()
    sbom = stage.registry.attach("team/app", digest, json.dumps({"bomFormat": form}).encode(), SBOM)
    if signer is not None:
        size = len(stage.registry.manifests["team/app", sbom][1])
        stage.registry.attach("team/app", sbom, signer.sign(JWS, sbom, size), ARTIFACT, media_type=JWS)


def _attestation_policy(stage: ImageStage, **attestation: Any) -> JSONObject:
    return stage.policy(type="Notary", attestors=[], attestations=[_attested(SIGNER, **attestation)])


def test_an_attestation_is_a_referrer_that_the_signer_signed(stage: ImageStage) -> None:
    """A referrer without a signature, or signed by another key, is not an attestation."""
    policy, found = _attestation_policy(stage), []
    for signer in (None, STRANGER, SIGNER):
        _attach(stage, signer)
        found.append(_outcome(stage, policy)[0])
    assert found == ["fail", "fail", "pass"]


def test_conditions_see_the_content_of_the_referrer(stage: ImageStage) -> None:
    """The fields of its JSON are variables."""
    condition = {"key": "{{ bomFormat }}", "operator": "Equals", "value": "CycloneDX"}
    policy = _attestation_policy(stage, conditions=[{"all": [condition]}])
    _attach(stage, SIGNER)
    good = _outcome(stage, policy)[0]
    _attach(stage, SIGNER, "SPDX")
    assert (good, _outcome(stage, policy)[0]) == ("pass", "fail")


def test_an_image_without_the_attestation_fails_with_its_type(stage: ImageStage) -> None:
    """As for other signatures."""
    stage.push()
    text = f"attestions not found for predicate type {SBOM}"
    status, message = _outcome(stage, _attestation_policy(stage))
    assert (status, text in message) == ("fail", True)


def test_an_attestor_without_certificates_is_an_error_of_an_attestation(stage: ImageStage) -> None:
    """Kyverno's controller ends there; a signature that nothing is held against proves nothing."""
    _attach(stage, SIGNER)
    attestation = {"type": SBOM, "attestors": [{"entries": [{"keys": {"publicKeys": stage.signer.public_pem}}]}]}
    status, message = _outcome(stage, stage.policy(type="Notary", attestors=[], attestations=[attestation]))
    text = ".attestations[0].attestors[0].entries[0].keys: Notary signatures are verified with certificates only"
    assert (status, text in message) == ("error", True)


@pytest.mark.parametrize(("is_revoked", "status"), [(False, "pass"), (True, "fail")])
def test_a_revocation_list_is_read_once_for_a_review(stage: ImageStage, *, is_revoked: bool, status: str) -> None:
    """The list that the certificate names decides, whichever rule needs it."""
    url = f"http://{stage.registry.host}/v2/team/pki/blobs/list"
    signer = NotarySigner(now=int(time.time()), extensions=(list_at(url),))
    stage.registry.blobs["list"] = revocation_list(signer, [signer.leaf.serial_number] if is_revoked else ())
    seen: Counter[str] = Counter()

    async def count(request: web.Request) -> web.StreamResponse | None:
        seen[request.path] += 1
        return None

    stage.registry.fault = count
    _sign(stage, signer)
    policy = _policy(stage, signer)
    policy["spec"]["rules"].append({**policy["spec"]["rules"][0], "name": "again"})
    results = stage.review(policy).results
    assert ([status] * 2, 1) == ([each.status.value for each in results[:2]], seen["/v2/team/pki/blobs/list"])
    assert is_revoked == (f"revocation: certificate 1 is revoked: {url}" in results[0].message)
