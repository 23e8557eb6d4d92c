"""I7, I8: rules about images admit what is verified by every constraint, image by image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from pyverno.engine.phases import MUTATING
from pyverno.kube.json import JSONObject
from tests.support.images import ImageStage, image_stage, signed_images

ISSUER: Final = "https://accounts.example.com"
SUBJECT: Final = "dev@example.com"
GOOD: Final = {"issuer": ISSUER, "subject": SUBJECT}
REF: Final = "refs/heads/main"
SIGNED: Final = "images.containers.all(image, verifyImageSignatures(image, [attestors.who]) > 0)"


@pytest.fixture
def stage() -> Iterator[ImageStage]:
    """A registry with authorities of its own."""
    with image_stage() as made:
        yield made


def _sign_keyless(stage: ImageStage) -> str:
    digest = stage.push()
    signer = stage.services.keyless(SUBJECT, extensions={6: REF})
    stage.sign(digest, signer.sign_layer(digest))
    return f"{stage.image()}@{digest}"


def _rule(stage: ImageStage, **fields: Any) -> JSONObject:
    return stage.policy(
        attestors=[{"entries": [{"keyless": {"rekor": {"url": "https://rekor.sigstore.dev"}, **fields}}]}]
    )


def _image_policy(**identity: Any) -> JSONObject:
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ImageValidatingPolicy",
        "metadata": {"name": "signed"},
        "spec": {
            "matchConstraints": {"resourceRules": [pods]},
            "attestors": [{"name": "who", "cosign": {"keyless": {"identities": [identity]}}}],
            "validations": [{"expression": SIGNED}],
        },
    }


RULES: Final[dict[str, tuple[JSONObject, JSONObject]]] = {
    "issuer": (GOOD, {**GOOD, "issuer": "https://other.example.com"}),
    "subject": (GOOD, {**GOOD, "subject": "ops@example.com"}),
    "issuerRegExp": (
        {"issuerRegExp": "^https://accounts[.]", "subject": SUBJECT},
        {"issuerRegExp": "^https://tokens[.]", "subject": SUBJECT},
    ),
    "subjectRegExp": (
        {"issuer": ISSUER, "subjectRegExp": "^dev@.*[.]com$"},
        {"issuer": ISSUER, "subjectRegExp": "^ops@.*[.]com$"},
    ),
    "issuerRegExp beside issuer": (
        {**GOOD, "issuerRegExp": "^https://accounts[.]"},
        {**GOOD, "issuerRegExp": "^https://tokens[.]"},
    ),
    "subjectRegExp beside subject": (
        {**GOOD, "subjectRegExp": "^dev@"},
        {**GOOD, "subject": "ops@example.com", "subjectRegExp": "^dev@"},
    ),
    "additionalExtensions": (
        {**GOOD, "additionalExtensions": {"githubWorkflowRef": REF}},
        {**GOOD, "additionalExtensions": {"githubWorkflowRef": "refs/heads/other"}},
    ),
}
"""A field of a keyless entry: with a value that the signature has, and with another one."""


@pytest.mark.parametrize("field", RULES)
def test_every_field_of_a_keyless_entry_counts(stage: ImageStage, field: str) -> None:
    """With any single field wrong, the image counts as not signed (CVE-2025-29778)."""
    image = _sign_keyless(stage)
    found = [stage.review(_rule(stage, **fields), image, phases=MUTATING).results for fields in RULES[field]]
    assert ["pass", "fail"] == [each[0].status.value for each in found]


@pytest.mark.parametrize("field", ["issuer", "subject", "issuerRegExp", "subjectRegExp"])
def test_every_field_of_an_identity_counts(stage: ImageStage, field: str) -> None:
    """The same for the identities of an ImageValidatingPolicy (CVE-2025-29778)."""
    image = _sign_keyless(stage)
    found = [stage.review(_image_policy(**fields), image).decision.allowed for fields in RULES[field]]
    assert [True, False] == found


def test_a_rule_continues_after_an_image_that_it_does_not_match(stage: ImageStage) -> None:
    """An image that no reference selects does not excuse the ones after it (5cb31abd)."""
    digest = stage.push()
    stage.sign(digest)
    stage.push("unsigned")
    policy = stage.policy(imageReferences=[f"{stage.registry.host}/*"])
    signed, unsigned = stage.image(), stage.image("unsigned")
    found = [stage.review(policy, "docker.io/library/other:v1", each).decision.allowed for each in (signed, unsigned)]
    assert [True, False] == found


def test_an_image_policy_continues_after_an_image_that_it_does_not_match(stage: ImageStage) -> None:
    """The same for `matchImageReferences` of an ImageValidatingPolicy (5cb31abd)."""
    signed = _sign_keyless(stage)
    unsigned = f"{stage.image('unsigned')}@{stage.push('unsigned')}"
    policy = _image_policy(**GOOD)
    policy["spec"]["matchImageReferences"] = [{"glob": f"{stage.registry.host}/*"}]
    other = f"docker.io/library/other:v1@sha256:{'0' * 64}"
    found = [stage.review(policy, other, each).decision.allowed for each in (signed, unsigned)]
    assert [True, False] == found


def _exempting(**spec: Any) -> JSONObject:
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": "own", "namespace": "default"},
        "spec": {"policyRefs": [{"name": "signed", "kind": "ImageValidatingPolicy"}], **spec},
    }


@pytest.mark.parametrize("order", [1, -1])
def test_an_exception_for_an_image_does_not_admit_another(stage: ImageStage, order: int) -> None:
    """CVE-2026-100704: an exception with `images` does not exempt a Pod that has an unsigned image beside them."""
    exempt, unsigned = (f"{stage.image(tag)}@{stage.push(tag)}" for tag in ("exempt", "unsigned"))
    policy, scope = signed_images(stage.signer.public_pem), {"images": [f"{stage.registry.host}/team/app:exempt*"]}
    pod = (exempt, unsigned)[::order]
    other = _exempting(images=[f"{stage.registry.host}/team/app:other*"])
    other["metadata"]["name"] = "other"
    for exceptions in ([_exempting(**scope)], [_exempting(**scope), other][::order], [_exempting(allowedValues=["x"])]):
        assert not stage.review([policy, *exceptions], *pod).decision.allowed
    assert stage.review([policy, _exempting()], *pod).decision.allowed


BROKEN_PATCHES: Final[dict[str, JSONObject]] = {
    "a rule": {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "a-change"},
        "spec": {
            "failurePolicy": "Ignore",
            "rules": [
                {
                    "name": "change",
                    "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                    "mutate": {"patchesJson6902": "- {op: replace, path: /spec/nothing/x, value: y}"},
                }
            ],
        },
    },
    "a policy in CEL": {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "MutatingPolicy",
        "metadata": {"name": "a-change"},
        "spec": {
            "failurePolicy": "Ignore",
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ]
            },
            "mutations": [
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/spec/nothing'}]"},
                }
            ],
        },
    },
}


@pytest.mark.parametrize("broken", BROKEN_PATCHES)
@pytest.mark.parametrize("kind", ["verifyImages", "ImageValidatingPolicy"])
def test_a_patch_that_fails_hides_no_image(stage: ImageStage, kind: str, broken: str) -> None:
    """0b4d37bd: after a failed change, signatures are demanded of the images that the Pod has."""
    digest = stage.push("unsigned")
    stage.sign(stage.push())
    policy = stage.policy() if kind == "verifyImages" else signed_images(stage.signer.public_pem)
    signed, unsigned = stage.image(), f"{stage.image('unsigned')}@{digest}"
    reviews = [stage.review([BROKEN_PATCHES[broken], policy], image) for image in (signed, unsigned)]
    assert [True, False] == [review.decision.allowed for review in reviews]
    assert all("error" in {result.status.value for result in review.results} for review in reviews)


CANARY: Final = "CANARY-s3cr3t"
VALUE: Final = "{{ secret }}"
REKOR: Final = {"url": "https://rekor.sigstore.dev"}


def _keyless(**fields: Any) -> JSONObject:
    return {"attestors": [{"entries": [{"keyless": {"rekor": REKOR, **fields}}]}]}


def _keys(**fields: Any) -> JSONObject:
    return {"attestors": [{"entries": [{"keys": fields}]}]}


WRITTEN: Final[dict[str, JSONObject]] = {
    "a key": _keys(publicKeys=VALUE),
    "a key of the cluster": _keys(publicKeys=f"k8s://{VALUE}"),
    "a key management system": _keys(kms=VALUE),
    "a Secret": _keys(secret={"name": VALUE, "namespace": VALUE}),
    "a certificate": {"attestors": [{"entries": [{"certificates": {"cert": VALUE}}]}]},
    "a signer": _keyless(issuer=VALUE, subject=VALUE),
    "expressions": _keyless(issuerRegExp=f"({VALUE}", subjectRegExp=f"[{VALUE}"),
    "the name of an extension": _keyless(**GOOD, additionalExtensions={VALUE: "x"}),
    "an extension": _keyless(**GOOD, additionalExtensions={"githubWorkflowRef": VALUE}),
    "roots": _keyless(**GOOD, roots=VALUE),
    "a log": _keyless(**GOOD, rekor={**REKOR, "pubkey": VALUE}),
    "a log of certificates": _keyless(**GOOD, ctlog={"pubkey": VALUE, "tsaCertChain": VALUE}),
    "a repository": {"repository": VALUE},
    "a repository of an entry": {
        "attestors": [{"entries": [{"keyless": {"rekor": REKOR, **GOOD}, "repository": VALUE}]}]
    },
    "annotations": {"attestors": [{"entries": [{"keyless": {"rekor": REKOR, **GOOD}, "annotations": {"a": VALUE}}]}]},
    "a type": {"attestations": [{"type": VALUE, **_keyless(**GOOD)}]},
}
"""Fields of an entry of verifyImages that variables may fill, each with a value that fits nothing."""


@pytest.mark.parametrize("field", WRITTEN)
def test_no_error_about_an_image_shows_what_a_variable_holds(stage: ImageStage, field: str) -> None:
    """I4: the value may be that of a Secret, and the text appears in reports; the variable is in its place."""
    image = _sign_keyless(stage)
    policy = stage.policy(**WRITTEN[field])
    policy["spec"]["rules"][0]["context"] = [{"name": "secret", "variable": {"value": CANARY}}]
    review = stage.review(policy, image)
    assert not review.decision.allowed
    assert not [each.message for each in review.results if CANARY.lower() in each.message.lower()]
