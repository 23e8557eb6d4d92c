"""Rules that verify images: signatures, attestations, digests, and what is recorded of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from pyverno.engine.engine import Review
from pyverno.engine.imageverification.annotations import SCOPED_ANNOTATION
from pyverno.engine.imageverification.recordkeys import RecordKeys
from pyverno.engine.phases import MUTATING, VALIDATING
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSONObject
from tests.authority.registry import MANIFEST, digest_of
from tests.authority.signing import IMAGE_SIGNATURE, SigningServices
from tests.support.images import SIMPLE, ImageStage, image_stage

TYPE = "https://example.com/scan"
COSIGN_REFERRER = "application/vnd.dev.cosign.artifact.sig.v1+json"


@pytest.fixture
def stage() -> Iterator[ImageStage]:
    """A registry with its own certificate authorities."""
    with image_stage() as made:
        yield made


def _outcomes(review: Review) -> list[tuple[str, str]]:
    return [(result.status.value, result.message) for result in review.results]


def _image(review: Review, index: int = 0) -> str:
    resource: Any = review.resource
    image: str = resource["spec"]["containers"][index]["image"]
    return image


def _recorded(review: Review) -> Any:
    resource: Any = review.resource
    return json.loads(resource["metadata"]["annotations"][SCOPED_ANNOTATION])


def _keyless(**fields: Any) -> list[JSONObject]:
    return [{"entries": [{"keyless": {"rekor": {"url": "https://rekor.sigstore.dev"}, **fields}}]}]


# ------------------------------------------------------------------------------------------------------------ passes


def test_a_signed_image_is_admitted_with_its_digest(stage: ImageStage) -> None:
    """The tag stays, the digest is added, and what was verified is recorded for the second phase."""
    digest = stage.push()
    stage.sign(digest)
    review = stage.review(stage.policy())
    repository = f"{stage.registry.host}/team/app"
    expected = {"version": 1, "policies": {"/signed": {"check": {f"{repository}@{digest}": "pass"}}}}
    assert (
        [("pass", f"verified image signatures for {stage.image()}"), ("pass", "image verified")],
        f"{stage.image()}@{digest}",
        expected,
        True,
    ) == (_outcomes(review), _image(review), _recorded(review), review.decision.allowed)


def test_a_keyless_signature_is_admitted_for_its_identity_only(stage: ImageStage) -> None:
    """Issuer and subject of the certificate are those that the policy names."""
    digest = stage.push()
    stage.sign(digest, stage.services.keyless("dev@example.com").sign_layer(digest))
    good = _keyless(issuer="https://accounts.example.com", subject="dev@*")
    bad = _keyless(issuer="https://accounts.example.com", subject="ops@*")
    who = "identity: signed by `dev@example.com` of `https://accounts.example.com`"
    assert [
        ("pass", f"verified image signatures for {stage.image()}"),
        ("fail", f"failed to verify image {stage.image()}: .attestors[0].entries[0].keyless: {who}"),
    ] == [_outcomes(stage.review(stage.policy(attestors=each), phases=MUTATING))[0] for each in (good, bad)]


@pytest.mark.parametrize(
    ("fields", "own", "others"),
    [
        ({"subject": "{{ request.object.metadata.annotations.signer }}"}, "dev@example.com", "*"),
        ({"subject": "{{ request.object.metadata.annotations.signer }}@example.com"}, "dev", "*"),
        ({"subject": "{{ signer }}*"}, "dev@", "?"),
        ({"subjectRegExp": "{{ request.object.metadata.annotations.signer }}"}, "dev@example.com", ".+"),
        ({"subjectRegExp": "^{{ signer }}@.*$"}, "dev", "(ops|dev)"),
        ({"subject": "dev@*", "issuer": "{{ signer }}"}, "https://accounts.example.com", "https://*"),
        ({"subject": "dev@*", "issuer": "", "issuerRegExp": "{{ signer }}"}, "https://accounts.example.com", ".*"),
    ],
)
def test_a_request_names_a_signer_and_no_pattern_of_signers(
    stage: ImageStage, fields: dict[str, Any], own: str, others: str
) -> None:
    """I10: what an annotation adds to an identity is compared; wildcards and expressions are the policy's."""
    digest = stage.push()
    stage.sign(digest, stage.services.keyless("dev@example.com").sign_layer(digest))
    fields = {"issuer": "https://accounts.example.com", **fields}
    policy = stage.policy(attestors=_keyless(**{name: text for name, text in fields.items() if text}))
    query = "request.object.metadata.annotations.signer"
    policy["spec"]["rules"][0]["context"] = [{"name": "signer", "variable": {"jmesPath": query}}]

    def status(signer: str) -> str:
        pod = stage.pod(stage.image(), annotations={"signer": signer})
        return stage.review(policy, pod=pod, phases=MUTATING).results[0].status.value

    assert ("pass", "fail") == (status(own), status(others))


def test_a_bundle_signs_an_image_only_with_the_type_of_a_signature(stage: ImageStage) -> None:
    """An image that has only an attestation is not signed (CVE-2022-35930)."""
    digest = stage.push()
    stage.bundle(digest, predicate={"ok": True}, predicate_type=TYPE)
    policy = stage.policy(type="SigstoreBundle")
    unsigned = _outcomes(stage.review(policy, phases=MUTATING))[0][0]
    stage.bundle(digest, predicate_type=IMAGE_SIGNATURE)
    assert ("fail", "pass") == (unsigned, _outcomes(stage.review(policy, phases=MUTATING))[0][0])


def test_the_second_look_is_answered_from_the_cache_until_the_tag_moves(stage: ImageStage) -> None:
    """The cache knows digests, not tags."""
    stage.sign(stage.push())
    first, second = (_outcomes(stage.review(stage.policy(), phases=MUTATING))[0] for _ in range(2))
    stage.registry.push("team/app", "v1", {"moved": True})
    third = _outcomes(stage.review(stage.policy(), phases=MUTATING))[0]
    reason = ".attestors[0].entries[0].keys: no signatures found"
    assert (
        ("pass", f"verified image signatures for {stage.image()}"),
        ("pass", "verified from cache"),
        ("fail", f"failed to verify image {stage.image()}: {reason}"),
    ) == (first, second, third)


def test_a_tag_is_resolved_once_in_a_review(stage: ImageStage) -> None:
    """A registry that changes the digest is queried once: the verified digest is pinned (CVE-2022-47633)."""
    digest = stage.push()
    stage.sign(digest)
    asked: list[str] = []

    async def moving(request: web.Request) -> web.StreamResponse | None:
        if request.path.endswith("/manifests/v1"):
            asked.append(request.path)
            if len(asked) > 1:
                stage.registry.push("team/app", "v1", {"number": len(asked)})
        return None

    stage.registry.fault = moving
    review = stage.review(stage.policy_of([stage.policy()["spec"]["rules"][0]["verifyImages"][0]] * 2))
    assert (1, f"{stage.image()}@{digest}", True) == (len(asked), _image(review), review.decision.allowed)


def test_each_image_of_a_pod_is_resolved_once(stage: ImageStage) -> None:
    """However many there are, for the verification, the digest and the check of the changed Pod together."""
    tags = [f"v{number}" for number in range(10)]
    for tag in tags:
        stage.sign(stage.push(tag))
    asked: list[str] = []

    async def count(request: web.Request) -> web.StreamResponse | None:
        asked.append(request.path.rpartition("/manifests/")[2])
        return None

    stage.registry.fault = count
    review = stage.review(stage.policy(), *map(stage.image, tags))
    assert ([asked.count(tag) for tag in tags], review.decision.allowed) == ([1] * 10, True)


# ------------------------------------------------------------------------------------------------------------- fails


def test_the_reason_names_the_attestor_that_failed(stage: ImageStage) -> None:
    """Each key of a text with several keys counts as one entry of the threshold."""
    digest = stage.push()
    stage.sign(digest)
    other = stage.services.keyed().public_pem
    keys = [{"entries": [{"keys": {"publicKeys": f"{stage.signer.public_pem}\n{other}"}}]}]
    reason = ".attestors[0].entries[1].keys: signature: the signature was not made by this key"
    expected = ("fail", f"failed to verify image {stage.image()}: {reason}")
    assert expected == _outcomes(stage.review(stage.policy(attestors=keys), phases=MUTATING))[0]


def test_all_sets_and_nested_sets_must_agree(stage: ImageStage) -> None:
    """Sets are alternatives inside and all of them are demanded."""
    digest = stage.push()
    stage.sign(digest)
    good = {"keys": {"publicKeys": stage.signer.public_pem}}
    bad = {"keys": {"publicKeys": stage.services.keyed().public_pem}}
    nested = [{"count": 1, "entries": [bad, {"attestor": {"entries": [good]}}]}]
    two = [*nested, {"entries": [bad]}]
    found = [_outcomes(stage.review(stage.policy(attestors=each), phases=MUTATING))[0][0] for each in (nested, two)]
    assert ["pass", "fail"] == found


@pytest.mark.parametrize("status", [401, 403, 429, 500])
def test_a_registry_that_fails_is_an_error(stage: ImageStage, status: int) -> None:
    """A failed fetch never counts as "no signature"; the request is denied."""
    digest = stage.push()
    stage.sign(digest)

    async def refuse(request: web.Request) -> web.StreamResponse | None:
        return web.json_response({}, status=status) if request.path.endswith(".sig") else None

    stage.registry.fault = refuse
    review = stage.review(stage.policy())
    assert ("error", False) == (review.results[0].status.value, review.decision.allowed)


def test_an_image_that_does_not_exist_fails(stage: ImageStage) -> None:
    """Nothing can have signed it."""
    review = stage.review(stage.policy(), phases=MUTATING)
    assert ["fail"] == [result.status.value for result in review.results]


def test_the_digest_that_is_signed_is_the_one_that_the_image_has(stage: ImageStage) -> None:
    """A signature copied from another image does not count."""
    digest, other = stage.push("v1"), stage.push("v2")
    stage.sign(other, stage.signer.sign_layer(digest))
    reason = ".attestors[0].entries[0].keys: digest: the signature is for another image"
    expected = ("fail", f"failed to verify image {stage.image('v2')}: {reason}")
    assert expected == _outcomes(stage.review(stage.policy(), stage.image("v2"), phases=MUTATING))[0]


# --------------------------------------------------------------------------------------------------- second phase


def test_what_a_request_brings_along_does_not_count(stage: ImageStage) -> None:
    """A forged record in the request is replaced by the verified one."""
    digest = stage.push()
    image = f"{stage.registry.host}/team/app@{digest}"
    forged = {"version": 1, "policies": {"/signed": {"check": {image: "pass"}}}}
    pod = stage.pod(f"{stage.image()}@{digest}", annotations={SCOPED_ANNOTATION: json.dumps(forged)})
    review = stage.review(stage.policy(), pod=pod)
    assert (False, [("fail", f"unverified image {image}")], "fail") == (
        review.decision.allowed,
        _outcomes(review)[1:],
        _recorded(review)["policies"]["/signed"]["check"][image],
    )


def test_what_another_policy_found_does_not_count(stage: ImageStage) -> None:
    """The record is scoped, and the annotation of older versions is not read."""
    digest = stage.push()
    image = f"{stage.registry.host}/team/app@{digest}"
    recorded = {"version": 1, "policies": {"/other": {"check": {image: "pass"}}}}
    annotations = {SCOPED_ANNOTATION: json.dumps(recorded), "kyverno.io/verify-images": json.dumps({image: "pass"})}
    pod = stage.pod(f"{stage.image()}@{digest}", annotations=annotations)
    assert [("fail", f"unverified image {image}")] == _outcomes(
        stage.review(stage.policy(), pod=pod, phases=VALIDATING)
    )


def _forged(stage: ImageStage, image: str, rule: str = "check") -> JSONObject:
    recorded = {"version": 1, "policies": {"/signed": {rule: {image: "pass"}}}}
    return {SCOPED_ANNOTATION: json.dumps(recorded)}


@pytest.mark.parametrize("tag", ["", ":v1"])
def test_a_forged_record_admits_nothing_where_the_mutating_webhook_was_away(stage: ImageStage, tag: str) -> None:
    """Without mutation the validating webhook verifies the image itself and ignores the object's record."""
    digest = stage.push()
    image = f"{stage.registry.host}/team/app@{digest}"
    pod = stage.pod(f"{stage.registry.host}/team/app{tag}@{digest}", annotations=_forged(stage, image))
    review = stage.review(stage.policy(), pod=pod, phases=VALIDATING)
    assert (False, [("fail", f"unverified image {image}")]) == (review.decision.allowed, _outcomes(review))


def test_a_signed_image_needs_no_record(stage: ImageStage) -> None:
    """Another webhook that removes the annotation does not change the verdict."""
    digest = stage.push()
    stage.sign(digest)
    review = stage.review(stage.policy(), f"{stage.image()}@{digest}", phases=VALIDATING)
    assert (True, [("pass", "image verified")]) == (review.decision.allowed, _outcomes(review))


def test_a_forged_record_of_a_template_admits_nothing(stage: ImageStage) -> None:
    """Rules for controllers of Pods read no record either."""
    digest = stage.push()
    image = f"{stage.registry.host}/team/app@{digest}"
    spec = stage.pod(f"{stage.image()}@{digest}")["spec"]
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "app", "namespace": "default", "annotations": _forged(stage, image, "autogen-check")},
        "spec": {"template": {"metadata": {}, "spec": spec}},
    }
    found = []
    for signs in (False, True):
        if signs:
            stage.sign(digest)
        review = stage.review(stage.policy(useCache=False), pod=deployment, phases=VALIDATING)
        found.append((review.decision.allowed, [(each.rule_name, each.message) for each in review.results]))
    assert [
        (False, [("autogen-check", f"unverified image {image}")]),
        (True, [("autogen-check", "image verified")]),
    ] == found


def test_a_registry_that_fails_in_the_second_phase_admits_nothing(stage: ImageStage) -> None:
    """An image without an answer of its registry stays unverified."""
    digest = stage.push()
    stage.sign(digest)

    async def refuse(_: web.Request) -> web.StreamResponse | None:
        return web.json_response({}, status=403)

    stage.registry.fault = refuse
    image = f"{stage.registry.host}/team/app@{digest}"
    pod = stage.pod(f"{stage.image()}@{digest}", annotations=_forged(stage, image))
    assert not stage.review(stage.policy(), pod=pod, phases=VALIDATING).decision.allowed


def test_an_image_without_a_digest_fails_where_one_is_demanded(stage: ImageStage) -> None:
    """verifyDigest looks at the object."""
    found = _outcomes(stage.review(stage.policy(), phases=VALIDATING))
    assert [("fail", f"missing digest for {stage.image()}")] == found


def test_an_unchanged_image_is_not_verified_again(stage: ImageStage) -> None:
    """An update carries over what was recorded for the same image by the same policy, with a seal of ours."""
    stage.record_keys = RecordKeys(b"k" * 32)
    digest = stage.push()
    stage.sign(digest)
    policy = stage.policy(useCache=False)
    old: Any = stage.review(policy).resource
    old["metadata"] |= {"uid": "1", "creationTimestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    stage.registry.manifests.clear()
    pod = stage.pod(old["spec"]["containers"][0]["image"])
    review = stage.review(policy, pod=pod, old=old)
    assert (True, _recorded(stage.review(policy, pod=old, old=old))) == (review.decision.allowed, _recorded(review))
    assert [False, False] == [
        stage.review(policy, pod=pod).decision.allowed,
        stage.review(stage.policy(useCache=False, repository="other"), pod=pod, old=old).decision.allowed,
    ]


def test_skipped_images_are_recorded_as_such(stage: ImageStage) -> None:
    """They are pinned but not verified."""
    stage.push()
    review = stage.review(stage.policy(skipImageReferences=["*/team/*"]))
    skipped = f"skipping image reference image {stage.image()}, policy signed ruleName check"
    pinned = f"{stage.registry.host}/team/app@{_image(review).rpartition('@')[2]}"
    assert [("skip", skipped), ("skip", f"image skipped, skipped images: {pinned}")] == _outcomes(review)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"required": False}, []),
        ({"required": False, "verifyDigest": True}, [("fail", "missing digest for {image}")]),
        ({"required": True}, [("skip", "image skipped, skipped images: {image}")]),
    ],
)
def test_a_rule_that_verifies_nothing_skips_nothing(
    stage: ImageStage, fields: JSONObject, expected: list[tuple[str, str]]
) -> None:
    """Without attestors only digests are judged; an exclusion counts where images must be verified."""
    stage.push()
    settings = {"attestors": [], "mutateDigest": False, "verifyDigest": False, "skipImageReferences": ["*/team/*"]}
    review = stage.review(stage.policy(**{**settings, **fields}))
    assert [(status, text.format(image=stage.image())) for status, text in expected] == _outcomes(review)


def test_a_digest_does_not_hide_an_image_from_a_rule_about_tags(stage: ImageStage) -> None:
    """A reference with tag and digest is matched by its tag too."""
    digest = stage.push()
    policy = stage.policy(imageReferences=["*/team/app:*"])
    found = _outcomes(stage.review(policy, f"{stage.image()}@{digest}", phases=MUTATING))
    assert ["fail"] == [status for status, _ in found]


# ------------------------------------------------------------------------------------------------------ attestations


def _attested(stage: ImageStage, *conditions: JSONObject, **more: Any) -> JSONObject:
    attestation = {"type": TYPE, "attestors": [{"entries": [{"keys": {"publicKeys": stage.signer.public_pem}}]}]}
    if conditions:
        attestation["conditions"] = [{"all": list(conditions)}]
    return stage.policy(attestors=[], attestations=[{**attestation, **more}])


def _critical(value: str) -> JSONObject:
    return {"key": "{{ critical }}", "operator": "Equals", "value": value, "message": "no critical findings"}


def test_conditions_see_the_statement_that_was_verified(stage: ImageStage) -> None:
    """The fields of the predicate are variables."""
    digest = stage.push()
    stage.attest(digest, stage.signer.attest_layer(digest, {"critical": "0"}, TYPE))
    good, bad = (stage.review(_attested(stage, _critical(value)), phases=MUTATING) for value in ("0", "1"))
    image = f"{stage.registry.host}/team/app@{digest}"
    place = ".attestations[0].attestors[0].entries[0].keys: "
    error = f"{place}attestation checks failed for {image} and predicate {TYPE}: no critical findings"
    failed = f"image attestations verification failed, verifiedCount: 0, requiredCount: 1, error: {error}"
    assert [("pass", f"verified image attestations for {stage.image()}"), ("fail", failed)] == [
        *_outcomes(good),
        *_outcomes(bad),
    ]


@pytest.mark.parametrize("operator", ["AnyIn", "AllIn", "In"])
def test_a_wildcard_in_a_statement_meets_no_condition(stage: ImageStage, operator: str) -> None:
    """I10: conditions of an attestation let an image pass, and so its content is no pattern of what they allow."""
    digest = stage.push()
    stage.attest(digest, stage.signer.attest_layer(digest, {"level": "*"}, TYPE))
    wild, plain = (
        stage.review(
            _attested(stage, {"key": "{{ level }}", "operator": operator, "value": value}), phases=MUTATING
        ).results[0]
        for value in (["safe"], ["*"])
    )
    assert ("fail", "pass") == (wild.status.value, plain.status.value)


def test_statements_of_others_neither_help_nor_harm(stage: ImageStage) -> None:
    """An attestation by another signer is no reason to fail, and its content is ignored."""
    digest = stage.push()
    other = stage.services.keyed()
    stage.attest(
        digest,
        other.attest_layer(digest, {"critical": "9"}, TYPE),
        stage.signer.attest_layer(digest, {"critical": "0"}, TYPE),
        stage.signer.attest_layer(digest, {"critical": "9"}, "https://example.com/other"),
    )
    good = stage.review(_attested(stage, _critical("0")), phases=MUTATING)
    stage.attest(digest, other.attest_layer(digest, {"critical": "0"}, TYPE))
    bad = stage.review(_attested(stage, _critical("0")), phases=MUTATING)
    assert ["pass", "fail"] == [good.results[0].status.value, bad.results[0].status.value]


def test_every_verified_statement_must_hold(stage: ImageStage) -> None:
    """A good statement does not hide a bad one by the same attestor."""
    digest = stage.push()
    layers = [stage.signer.attest_layer(digest, {"critical": value}, TYPE) for value in ("0", "1")]
    stage.attest(digest, *layers)
    assert "fail" == stage.review(_attested(stage, _critical("0")), phases=MUTATING).results[0].status.value


def test_an_attestation_without_attestors_is_no_proof(stage: ImageStage) -> None:
    """It is held against those of the entry; without these it fails."""
    digest = stage.push()
    stage.attest(digest, stage.signer.attest_layer(digest, {"critical": "0"}, TYPE))
    expected = ("fail", ".attestations[0].attestors: an attestor is required")
    assert expected == _outcomes(stage.review(_attested(stage, attestors=[]), phases=MUTATING))[0]


def test_an_attestation_of_another_type_is_not_found(stage: ImageStage) -> None:
    """The text is that of Kyverno, with the attestor that looked for it (CVE-2022-35929)."""
    stage.push()
    place = ".attestations[0].attestors[0]: "
    error = f"{place}attestions not found for predicate type {TYPE}"
    text = f"image attestations verification failed, verifiedCount: 0, requiredCount: 1, error: {error}"
    assert ("fail", text) == _outcomes(stage.review(_attested(stage), phases=MUTATING))[0]


def test_a_denial_sees_the_attestations_by_name(stage: ImageStage) -> None:
    """`validate.deny` reads the predicates under the names of the attestations."""
    digest = stage.push()
    stage.attest(digest, stage.signer.attest_layer(digest, {"critical": "3"}, TYPE))
    policy = _attested(stage, name="scan")
    entry = policy["spec"]["rules"][0]["verifyImages"][0]
    for value in ("3", "0"):
        entry["validate"] = {
            "message": "too many findings",
            "deny": {"conditions": {"any": [{"key": "{{ scan.critical }}", "operator": "NotEquals", "value": value}]}},
        }
        found = _outcomes(stage.review(policy, phases=MUTATING))
        text = "verifyImages validation is passed in check rule"
        if value == "0":
            text = "validation in verifyImages failed: too many findings"
        assert [("pass" if value == "3" else "fail", text)] == found


# ------------------------------------------------------------------------------------------------- what is written


def test_attestors_may_have_variables(stage: ImageStage) -> None:
    """A key that a context entry holds is read when the rule runs."""
    stage.sign(stage.push())
    policy = stage.policy(attestors=[{"entries": [{"keys": {"publicKeys": "{{ key }}"}}]}])
    policy["spec"]["rules"][0]["context"] = [{"name": "key", "variable": {"value": stage.signer.public_pem}}]
    assert "pass" == stage.review(policy, phases=MUTATING).results[0].status.value


def test_a_key_of_a_secret_is_read_each_time(stage: ImageStage) -> None:
    """It is not cached, because the Secret may hold another one tomorrow."""
    stage.sign(stage.push())
    secret = {"name": "signing", "namespace": "keys"}
    policy = stage.policy(attestors=[{"entries": [{"keys": {"secret": secret}}]}])
    stage.keys["k8s://keys/signing"] = stage.signer.public_pem
    first = stage.review(policy, phases=MUTATING).results[0].status.value
    stage.keys["k8s://keys/signing"] = stage.services.keyed().public_pem
    assert ("pass", "fail") == (first, stage.review(policy, phases=MUTATING).results[0].status.value)


def test_signatures_may_be_in_another_repository(stage: ImageStage) -> None:
    """They are looked for there; the digest is that of the image's own repository."""
    digest = stage.push()
    stage.sign(digest, repository="signatures")
    policy = stage.policy(repository=f"{stage.registry.host}/signatures")
    assert "pass" == stage.review(policy, phases=MUTATING).results[0].status.value


def test_the_digest_is_not_that_of_the_repository_with_the_signatures(stage: ImageStage) -> None:
    """An image of the same tag beside the signatures is another one, and its signature proves nothing."""
    stage.push()
    stage.sign(stage.push(repository="signatures"), repository="signatures")
    policy = stage.policy(repository=f"{stage.registry.host}/signatures")
    assert "fail" == stage.review(policy, phases=MUTATING).results[0].status.value


WRONG: dict[str, tuple[Any, str, str]] = {
    "keyless without an identity": (
        {"keyless": {"rekor": {"url": "https://rekor.sigstore.dev"}}},
        "keyless",
        "must have an issuer or a subject: without, every signature counts",
    ),
    "a key of a key management system": (
        {"keys": {"kms": "otherkms://vault.example.com/key"}},
        "keys",
        "names a key of a key management system that is not supported: write its public key as PEM",
    ),
    "a broken key": (
        {"keys": {"publicKeys": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"}},
        "keys.publicKeys",
        "cannot be read",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_verified_is_an_error_of_the_policy(stage: ImageStage, name: str) -> None:
    """A constraint that nothing would check is refused at its field, not ignored."""
    entry, path, text = WRONG[name]
    with pytest.raises(PyvernoError) as raised:
        stage.review(stage.policy(attestors=[{"entries": [entry]}]))
    assert text in raised.value.message
    assert raised.value.path.endswith(f".verifyImages[0].attestors[0].entries[0].{path}")


def test_log_entries_of_other_logs_do_not_count(stage: ImageStage) -> None:
    """The log is the one that the installation trusts, or that the policy names."""
    digest = stage.push()
    foreign = SigningServices().keyed(stage.signer.key)
    stage.sign(digest, foreign.sign_layer(digest))
    found = stage.review(stage.policy(), phases=MUTATING).results[0]
    ignoring = {"keys": {"publicKeys": stage.signer.public_pem, "rekor": {"url": "https://x", "ignoreTlog": True}}}
    relaxed = stage.review(stage.policy(attestors=[{"entries": [ignoring]}]), phases=MUTATING).results[0]
    assert ("fail", "pass") == (found.status.value, relaxed.status.value)


def test_signatures_as_referrers_count_where_the_policy_allows_them(stage: ImageStage) -> None:
    """`cosignOCI11` reads them beside the tag; one that refers to another image is an error."""
    digest = stage.push()
    layer = stage.signer.sign_layer(digest)
    body = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": COSIGN_REFERRER,
        "config": {"mediaType": COSIGN_REFERRER, "digest": digest_of(b"{}"), "size": 2},
        "layers": [
            {
                "mediaType": SIMPLE,
                "digest": digest_of(layer.blob),
                "size": len(layer.blob),
                "annotations": layer.annotations,
            }
        ],
        "subject": {"mediaType": MANIFEST, "digest": digest, "size": 1},
    }
    stage.registry.blobs[digest_of(layer.blob)] = layer.blob
    stage.registry.put_manifest("team/app", "", MANIFEST, body)
    found = [stage.review(stage.policy(cosignOCI11=each)).decision.allowed for each in (True, False)]
    assert [True, False] == found


def test_a_key_of_a_key_management_system_is_fetched_for_each_review(stage: ImageStage) -> None:
    """It may change while its name stays, so that a pass is not kept."""
    digest = stage.push()
    stage.sign(digest)
    policy = stage.policy(attestors=[{"entries": [{"keys": {"kms": "hashivault://signing"}}]}])
    stage.keys["hashivault://signing"] = stage.signer.public_pem
    first = stage.review(policy, phases=MUTATING).results[0].status.value
    stage.keys["hashivault://signing"] = stage.services.keyed().public_pem
    assert ("pass", "fail") == (first, stage.review(policy, phases=MUTATING).results[0].status.value)


def test_an_image_has_no_result_of_an_entry_that_does_not_select_it(stage: ImageStage) -> None:
    """Kyverno runs each image through every entry of the rule."""
    digest = stage.push()
    stage.sign(digest)
    keys = {"keys": {"publicKeys": stage.signer.public_pem}}
    blocks = [
        {"imageReferences": [references], "attestors": [{"entries": [keys]}]}
        for references in ("ghcr.io/*", "*/team/*")
    ]
    found = _outcomes(stage.review(stage.policy_of(blocks), phases=MUTATING))
    assert [("pass", f"verified image signatures for {stage.image()}")] == found


def test_the_error_of_an_attestation_names_the_entry_that_failed(stage: ImageStage) -> None:
    """Kyverno counts the entries of another list."""
    digest = stage.push()
    stage.attest(digest, stage.signer.attest_layer(digest, {}, TYPE))
    entries = [{"keys": {"publicKeys": each.public_pem}} for each in (stage.signer, stage.services.keyed())]
    attestation = {"type": TYPE, "attestors": [{"entries": entries}]}
    result = stage.review(stage.policy(attestors=[], attestations=[attestation]), phases=MUTATING).results[0]
    path = ".attestations[0].attestors[0].entries[1].keys: "
    assert ("fail", True, False) == (result.status.value, path in result.message, "entries[0]" in result.message)


@pytest.mark.parametrize("order", [1, -1], ids=["with the secret first", "with the secret last"])
def test_the_pull_secret_of_one_image_serves_no_other(order: int) -> None:
    """Kyverno takes the list of the first image for all of them."""
    with image_stage(users={"user": "word"}) as stage:
        digest = stage.push()
        stage.sign(digest)
        stage.secrets["default/pull"] = _pull_secret(stage.registry.host, "user", "word")
        steps = [{"image": stage.image(), "imagePullSecrets": [{"name": "pull"}]}, {"image": stage.image()}]
        task = {
            "apiVersion": "tekton.dev/v1",
            "kind": "Task",
            "metadata": {"name": "task", "namespace": "default"},
            "spec": {"steps": steps[::order]},
        }
        keys = {"keys": {"publicKeys": stage.signer.public_pem}}
        policy: Any = stage.policy_of(
            [{"imageReferences": ["*"], "attestors": [{"entries": [keys]}], "mutateDigest": False}],
            match={"any": [{"resources": {"kinds": ["tekton.dev/v1/Task"]}}]},
            imageExtractors={"Task": [{"path": "/spec/steps/*/image"}]},
        )
        found = [result.status.value for result in stage.review(policy, pod=task, phases=MUTATING).results]
    assert found == ["pass", "error"][::order]


def _pull_secret(host: str, username: str, password: str) -> JSONObject:
    auths = {"auths": {host: {"username": username, "password": password}}}
    encoded = base64.b64encode(json.dumps(auths).encode()).decode()
    return {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": encoded}}
