"""ImageValidatingPolicies: validations over signatures and attestations, digests, and images that must be verified."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from pyverno.engine.engine import Review
from pyverno.engine.phases import VALIDATING
from pyverno.images.verification.strictjson import MAX_VALUES
from pyverno.kube.json import JSONObject
from tests.authority.notary import COSE, JWS, NotarySigner
from tests.support.images import SIMPLE, ImageStage, image_stage

TYPE = "https://example.com/scan"
SIGNED = "images.containers.all(image, verifyImageSignatures(image, [attestors.key]) > 0)"


@pytest.fixture
def stage() -> Iterator[ImageStage]:
    """A registry with its own certificate authorities."""
    with image_stage() as made:
        yield made


def _policy(stage: ImageStage, *expressions: str, name: str = "signed", **spec: Any) -> JSONObject:
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ImageValidatingPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [pods]},
            "attestors": [{"name": "key", "cosign": {"key": {"data": stage.signer.public_pem}}}],
            "attestations": [{"name": "scan", "intoto": {"type": TYPE}}],
            "validations": [{"expression": each} for each in expressions or (SIGNED,)],
            **spec,
        },
    }


def _outcomes(review: Review) -> list[tuple[str, str]]:
    return [(result.status.value, result.message) for result in review.results]


def _image(review: Review) -> str:
    resource: Any = review.resource
    image: str = resource["spec"]["containers"][0]["image"]
    return image


def test_a_signed_image_is_pinned_and_admitted(stage: ImageStage) -> None:
    """The digest is added before the validations look, and they see the pinned reference."""
    digest = stage.push()
    stage.sign(digest)
    review = stage.review(_policy(stage))
    assert ([("pass", "mutated image digest"), ("pass", "success")], f"{stage.image()}@{digest}", True) == (
        _outcomes(review),
        _image(review),
        review.decision.allowed,
    )


def test_a_bundle_counts_beside_layers(stage: ImageStage) -> None:
    """Whichever form holds the signature."""
    stage.bundle(stage.push())
    assert ("pass", "success") == _outcomes(stage.review(_policy(stage)))[1]


def test_the_text_of_a_denial_names_what_did_not_verify(stage: ImageStage) -> None:
    """Without a message in the policy the denial lists the failed verifications."""
    digest = stage.push()
    stage.sign(digest, stage.services.keyed().sign_layer(digest))
    pinned = f"{stage.image()}@{digest}"
    reason = f"{pinned}: attestors.key: signature: the signature was not made by this key"
    review = stage.review(_policy(stage))
    assert ([("fail", f"CEL expression validation failed at index 0: {reason}")], False) == (
        _outcomes(review)[1:],
        review.decision.allowed,
    )


def test_a_required_image_is_missing_where_the_validations_pass_or_fail_to_evaluate(stage: ImageStage) -> None:
    """Validations that failed have denied the image already; their errors have not, where they are ignored."""
    stage.push()
    switches = {"validationConfigurations": {"mutateDigest": False, "verifyDigest": False}}
    lenient = _policy(stage, "true", **switches)
    strict = _policy(stage, "false", **switches)
    broken = _policy(stage, "object.spec.absent == 1", failurePolicy="Ignore", **switches)
    found = [[status for status, _ in _outcomes(stage.review(each))] for each in (lenient, strict, broken)]
    assert found == [["pass", "fail"], ["fail"], ["error", "fail"]]


def test_expressions_read_image_data_by_the_names_of_cel(stage: ImageStage) -> None:
    """Configuration, tag, digest and index; the names of imageRegistry entries are others."""
    digest = stage.push()
    data = f"image.GetMetadata('{stage.image()}')"
    fields = f"{data}.config.tag == 'v1' && {data}.tag == 'v1' && {data}.digest == '{digest}'"
    absent = f"!has({data}.configData) && !has({data}.imageIndex)"
    switches = {"mutateDigest": False, "verifyDigest": False, "required": False}
    policy = _policy(stage, fields, absent, validationConfigurations=switches)
    assert [("pass", "success")] == _outcomes(stage.review(policy))


def test_a_registry_that_fails_is_an_error(stage: ImageStage) -> None:
    """It is no count of zero, which an expression could let pass."""
    digest = stage.push()

    async def refuse(request: web.Request) -> web.StreamResponse | None:
        return web.json_response({}, status=500) if request.path.endswith(".sig") else None

    stage.registry.fault = refuse
    lenient = "images.containers.all(image, verifyImageSignatures(image, [attestors.key]) >= 0)"
    review = stage.review(_policy(stage, lenient), f"{stage.image()}@{digest}")
    assert ("error", False) == (review.results[0].status.value, review.decision.allowed)


def test_every_image_must_have_been_checked(stage: ImageStage) -> None:
    """The result of an expression alone proves nothing."""
    digest = stage.push()
    pinned = f"{stage.image()}@{digest}"
    reason = "no policy performed a signature or attestation check on it"
    found = _outcomes(stage.review(_policy(stage, "true"), pinned))
    assert [("pass", "success"), ("fail", f"image {pinned} is not verified: {reason}")] == found


def test_any_policy_of_the_request_may_verify_an_image(stage: ImageStage) -> None:
    """Also one that comes later."""
    digest = stage.push()
    stage.sign(digest)
    policies = [_policy(stage, "true", name="first"), _policy(stage, name="second")]
    assert stage.review(policies, f"{stage.image()}@{digest}").decision.allowed


def test_only_matched_images_are_looked_at(stage: ImageStage) -> None:
    """Others are not in `images`, and count zero without an error."""
    policy = _policy(stage, matchImageReferences=[{"glob": "ghcr.io/*"}])
    assert [("pass", "success")] == _outcomes(stage.review(policy))


def test_an_image_that_cannot_be_read_hides_no_other(stage: ImageStage) -> None:
    """The text of an expression or of a container: the other images are judged and pinned, and it is an error."""
    stage.push()
    listed = [{"name": "extra", "expression": "['docker://x']"}]
    loose = {"validationConfigurations": {"verifyDigest": False, "required": False}}
    expressed = stage.review(_policy(stage, images=listed, **loose), stage.image())
    assert "fail" in [status for status, _ in _outcomes(expressed)]
    signed = stage.push("v2")
    stage.sign(signed)
    contained = stage.review(_policy(stage, **loose), stage.image("v2"), "docker://x")
    assert {"pass", "error"} == {status for status, _ in _outcomes(contained)}
    assert f"{stage.image('v2')}@{signed}" == _image(contained)


@pytest.mark.parametrize("names", [("extra", "extra"), ("containers", "other")])
@pytest.mark.parametrize("unsigned", [0, 1])
def test_expressions_with_one_name_are_all_judged(stage: ImageStage, names: tuple[str, str], unsigned: int) -> None:
    """They add to a group, and to that of the containers."""
    stage.sign(stage.push())
    stage.push("v2")
    found = [stage.image("v2" if index == unsigned else "v1") for index in (0, 1)]
    listed = [{"name": name, "expression": f"['{image}']"} for name, image in zip(names, found, strict=True)]
    every = f"(images.{names[0]} + images.{names[1]}).all(image, verifyImageSignatures(image, [attestors.key]) > 0)"
    loose = {"validationConfigurations": {"verifyDigest": False, "required": False}}
    assert not stage.review(_policy(stage, every, images=listed, **loose), stage.image()).decision.allowed


def test_an_image_volume_is_pinned_and_verified(stage: ImageStage) -> None:
    """It is in a group of its own, which always exists."""
    signed = stage.push()
    stage.sign(signed)
    both = "(images.containers + images.imageVolumes).all(image, verifyImageSignatures(image, [attestors.key]) > 0)"
    pod = stage.pod(stage.image())
    pod["spec"]["volumes"] = [{"name": "v", "image": {"reference": stage.image()}}, {"name": "w", "emptyDir": {}}]
    review = stage.review(_policy(stage, both), pod=pod)
    assert review.decision.allowed
    assert f"{stage.image()}@{signed}" == review.resource["spec"]["volumes"][0]["image"]["reference"]
    stage.push("v2")
    pod["spec"]["volumes"][0]["image"]["reference"] = stage.image("v2")
    assert [False, False] == [stage.review(_policy(stage, each), pod=pod).decision.allowed for each in (both, SIGNED)]


def test_an_image_without_a_digest_fails(stage: ImageStage) -> None:
    """verifyDigest looks at what the mutating path left (8b7f4b72)."""
    configuration = {"mutateDigest": False, "verifyDigest": True, "required": False}
    found = _outcomes(stage.review(_policy(stage, validationConfigurations=configuration)))
    assert [("fail", f"image {stage.image()} does not have a digest")] == found


def test_an_image_that_cannot_be_resolved_is_an_error(stage: ImageStage) -> None:
    """The rule is that of the digests."""
    result = stage.review(_policy(stage)).results[0]
    prefix = f"failed to update digest: failed to resolve digest for image {stage.image()}: "
    assert ("error", "mutateDigest", True) == (
        result.status.value,
        result.rule_name,
        result.message.startswith(prefix),
    )


def test_the_payload_is_that_of_a_verified_attestation(stage: ImageStage) -> None:
    """It cannot be read before."""
    digest = stage.push()
    stage.attest(digest, stage.signer.attest_layer(digest, {"critical": "0"}, TYPE))
    verified = "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.key]) > 0)"
    payload = "images.containers.all(i, extractPayload(i, attestations.scan).predicate.critical == '0')"
    image = f"{stage.image()}@{digest}"
    good = _outcomes(stage.review(_policy(stage, verified, payload), image))[0]
    bad = _outcomes(stage.review(_policy(stage, payload), image))[0]
    text = "failed to evaluate policy: intoto attestation payload cannot be fetch before verifying intoto attestation"
    assert [("pass", "success"), ("error", text)] == [good, bad]


def test_keyless_identities_are_exact(stage: ImageStage) -> None:
    """A star is no wildcard here."""
    digest = stage.push()
    stage.sign(digest, stage.services.keyless("dev@example.com").sign_layer(digest))
    found = []
    for subject in ("dev@example.com", "dev@*"):
        identity = {"issuer": "https://accounts.example.com", "subject": subject}
        attestors = [{"name": "key", "cosign": {"keyless": {"identities": [identity]}}}]
        review = stage.review(_policy(stage, attestors=attestors), f"{stage.image()}@{digest}")
        found.append(review.results[0].status.value)
    assert ["pass", "fail"] == found


def test_what_cannot_be_verified_is_an_error(stage: ImageStage) -> None:
    """A key of a key management system is not ignored."""
    digest = stage.push()
    attestors = [{"name": "key", "cosign": {"key": {"kms": "otherkms://vault/key"}}}]
    review = stage.review(_policy(stage, attestors=attestors), f"{stage.image()}@{digest}")
    reason = "cosign.key.kms names a system that is not supported: write the public key"
    text = f"failed to evaluate policy: attestors.key: {reason}"
    assert ("error", text) == _outcomes(review)[0]


def test_an_exception_about_one_image_does_not_admit_another(stage: ImageStage) -> None:
    """It allows by value, and exempts from nothing."""
    digest = stage.push()
    exception = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {
            "policyRefs": [{"name": "signed", "kind": "ImageValidatingPolicy"}],
            "images": ["ghcr.io/other/*"],
        },
    }
    assert not stage.review([_policy(stage), exception], f"{stage.image()}@{digest}").decision.allowed


# --------------------------------------------------------------------------------------------------------------- Notary

SBOM = "sbom/cyclone-dx"
NOTARY_TYPE = "application/vnd.cncf.notary.signature"
ATTESTED = "images.containers.all(i, verifyAttestationSignatures(i, attestations.sbom, [attestors.notary]) > 0)"
CYCLONE = "images.containers.all(i, extractPayload(i, attestations.sbom).bomFormat == 'CycloneDX')"
NOTARY = NotarySigner(now=int(time.time()))
STRANGER = NotarySigner(now=int(time.time()))


def _notary_policy(stage: ImageStage, *expressions: str, signer: NotarySigner = NOTARY) -> JSONObject:
    return _policy(
        stage,
        *expressions,
        attestors=[{"name": "notary", "notary": {"certs": {"value": signer.root_pem}}}],
        attestations=[{"name": "sbom", "referrer": {"type": SBOM}}],
    )


def _notarize(stage: ImageStage, digest: str, signer: NotarySigner = NOTARY, form: str = JWS) -> None:
    size = len(stage.registry.manifests["team/app", digest][1])
    blob = signer.sign(form, digest, size)
    stage.registry.attach("team/app", digest, blob, NOTARY_TYPE, media_type=form)


def _attach_sbom(stage: ImageStage, image: str, form: str = "CycloneDX") -> str:
    return stage.registry.attach("team/app", image, json.dumps({"bomFormat": form}).encode(), SBOM)


@pytest.mark.parametrize("form", [JWS, COSE])
def test_an_image_that_is_signed_with_notary_is_admitted(stage: ImageStage, form: str) -> None:
    """Below the certificate of the attestor, in both envelopes."""
    digest = stage.push()
    _notarize(stage, digest, form=form)
    signed = "images.containers.all(image, verifyImageSignatures(image, [attestors.notary]) == 1)"
    image = f"{stage.image()}@{digest}"
    found = [
        stage.review(_notary_policy(stage, signed, signer=each), image).decision.allowed for each in (NOTARY, STRANGER)
    ]
    assert [True, False] == found


def test_a_referrer_is_an_attestation_when_it_is_signed_itself(stage: ImageStage) -> None:
    """The signature of the image does not vouch for its referrers."""
    digest = stage.push()
    image = f"{stage.image()}@{digest}"
    sbom = _attach_sbom(stage, digest)
    _notarize(stage, digest)
    before = stage.review(_notary_policy(stage, ATTESTED, CYCLONE), image).decision.allowed
    _notarize(stage, sbom, STRANGER)
    foreign = stage.review(_notary_policy(stage, ATTESTED, CYCLONE), image).decision.allowed
    _notarize(stage, sbom)
    after = stage.review(_notary_policy(stage, ATTESTED, CYCLONE), image)
    assert (False, False, True, [("pass", "success")]) == (before, foreign, after.decision.allowed, _outcomes(after))


def test_the_payload_of_a_referrer_is_that_of_the_signed_one(stage: ImageStage) -> None:
    """Another artifact of the same type beside it is not read, and none before it is verified."""
    digest = stage.push()
    image = f"{stage.image()}@{digest}"
    _notarize(stage, _attach_sbom(stage, digest, "SPDX"))
    _attach_sbom(stage, digest)
    signed = _outcomes(stage.review(_notary_policy(stage, ATTESTED, CYCLONE), image))[0]
    unread = _outcomes(stage.review(_notary_policy(stage, CYCLONE), image))[0]
    text = "referrer attestation payload cannot be fetch before verifying referrer attestation"
    assert [
        ("fail", "CEL expression validation failed at index 1"),
        ("error", f"failed to evaluate policy: {text}"),
    ] == [
        signed,
        unread,
    ]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'{"bomFormat": "CycloneDX", "a": [' + b"[]," * MAX_VALUES + b"0]}", f"has more than {MAX_VALUES} values"),
        (b"<bom/>", "holds no JSON"),
    ],
    ids=["values", "xml"],
)
def test_a_referrer_that_cannot_be_read_is_an_error(stage: ImageStage, content: bytes, text: str) -> None:
    """The number of values is limited before they are parsed: a list of three bytes takes 64 in memory."""
    digest = stage.push()
    image = f"{stage.image()}@{digest}"
    referrer = stage.registry.attach("team/app", digest, content, SBOM)
    _notarize(stage, referrer)
    [(status, message)] = _outcomes(stage.review(_notary_policy(stage, ATTESTED, CYCLONE), image))
    assert ("error", True) == (status, f"the attestation {referrer} {text}" in message), message


def test_notary_signs_no_statements(stage: ImageStage) -> None:
    """An in-toto attestation with a Notary attestor is a mistake in the policy."""
    digest = stage.push()
    policy = _notary_policy(stage, ATTESTED)
    policy["spec"]["attestations"] = [{"name": "sbom", "intoto": {"type": TYPE}}]
    text = "failed to evaluate policy: notary verifier only supports oci 1.1 referrers as attestations"
    assert ("error", text) == _outcomes(stage.review(policy, f"{stage.image()}@{digest}"))[0]


# -------------------------------------------------------------------------------------------------------------- sources


def test_signatures_may_be_elsewhere_behind_a_prefix(stage: ImageStage) -> None:
    """`source` names repository and prefix; without them the signature is not found."""
    digest = stage.push()
    image = f"{stage.image()}@{digest}"
    tag = f"prod-{digest.replace(':', '-')}.sig"
    stage.registry.push_layers("team/signatures", tag, [stage.signer.sign_layer(digest)], SIMPLE)
    found = []
    for source in ({"repository": f"{stage.registry.host}/team/signatures", "tagPrefix": "prod-"}, {}):
        cosign = {"key": {"data": stage.signer.public_pem}, "source": source}
        policy = _policy(stage, attestors=[{"name": "key", "cosign": cosign}])
        found.append(stage.review(policy, image).decision.allowed)
    assert [True, False] == found


def test_a_policy_of_a_namespace_believes_no_annotation(stage: ImageStage) -> None:
    """A namespaced policy verifies images itself and ignores outcome annotations on the object."""
    digest = stage.push()
    image = f"{stage.image()}@{digest}"
    policy = _policy(stage)
    policy["kind"] = "NamespacedImageValidatingPolicy"
    policy["metadata"]["namespace"] = "default"
    outcome = {"kyverno.io/image-verification-outcomes": json.dumps({"signed": {"status": "pass"}})}
    pod = stage.pod(image, annotations=outcome)
    found = [stage.review(policy, pod=pod, phases=VALIDATING).decision.allowed]
    stage.sign(digest)
    assert [False, True] == [*found, stage.review(policy, pod=pod, phases=VALIDATING).decision.allowed]


def test_the_key_of_a_key_management_system_verifies(stage: ImageStage) -> None:
    """Its public key is fetched by its URI."""
    digest = stage.push()
    stage.sign(digest)
    stage.keys["awskms:///alias/key"] = stage.signer.public_pem
    policy = _policy(stage, attestors=[{"name": "key", "cosign": {"key": {"kms": "awskms:///alias/key"}}}])
    assert stage.review(policy, f"{stage.image()}@{digest}").decision.allowed


@pytest.mark.parametrize("certs", [" ", "no certificate"])
def test_a_notary_attestor_without_certificates_is_an_error(stage: ImageStage, certs: str) -> None:
    """Kyverno's verifier ends with a nil pointer."""
    digest = stage.push()
    policy = _notary_policy(stage, ATTESTED)
    policy["spec"]["attestors"] = [{"name": "notary", "notary": {"certs": {"value": certs}}}]
    status, message = _outcomes(stage.review(policy, f"{stage.image()}@{digest}"))[0]
    assert ("error", True) == (status, message.startswith("failed to evaluate policy: attestors.notary: "))


def test_a_request_that_the_conditions_leave_out_has_no_result(stage: ImageStage) -> None:
    """As in Kyverno, and unlike a ValidatingPolicy, which is skipped."""
    stage.push()
    unmet = {"matchConditions": [{"name": "never", "expression": "false"}]}
    assert [] == _outcomes(stage.review(_policy(stage, **unmet)))


def test_results_are_named_by_the_policy_and_errors_by_the_evaluation(stage: ImageStage) -> None:
    """As in Kyverno's reports."""
    stage.push()
    switches = {"validationConfigurations": {"mutateDigest": False, "verifyDigest": False, "required": False}}
    reviews = [stage.review(_policy(stage, each, **switches)) for each in ("true", "false", "object.absent == 1")]
    assert [["signed"], ["signed"], ["evaluation"]] == [
        [result.rule_name for result in review.results] for review in reviews
    ]
