"""verifyImages as ImageValidatingPolicies: both sides judge images of a registry, signed by several authorities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pyverno.compiler.compile import compile_documents
from pyverno.compiler.migration.policy import PolicyConversion, convert_policy
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.policy.clusterpolicy import ClusterPolicy
from tests.support.images import ImageStage, image_stage

BOOK = SchemaBook()


@pytest.fixture(scope="module")
def stage() -> Iterator[ImageStage]:
    """A registry with authorities of its own, which the tests only read."""
    with image_stage() as made:
        yield made


@pytest.fixture(scope="module")
def keys(stage: ImageStage) -> dict[str, str]:
    """Store an image without signature, one of each of two signers, and one of both; return the keys by tag."""
    other = stage.services.keyed()
    for tag, signers in (("none", ()), ("one", (stage.signer,)), ("two", (other,)), ("both", (stage.signer, other))):
        digest = stage.push(tag)
        if signers:
            stage.sign(digest, *(each.sign_layer(digest) for each in signers))
    one, two = stage.signer.public_pem, other.public_pem
    return {"one": one, "two": two, "onetwo": one + two}


def convert(policy: JSONObject) -> PolicyConversion:
    """Convert a policy."""
    written = compile_documents(load_documents(dump_yaml(policy))).items[0].written
    assert isinstance(written, ClusterPolicy)
    return convert_policy(written, BOOK)


def verdicts(stage: ImageStage, documents: list[JSONObject]) -> list[tuple[str, bool, str]]:
    """Return for each image whether it is admitted, and how it is pinned."""
    found = []
    for tag in ("none", "one", "two", "both"):
        review = stage.review(documents, stage.image(tag))
        resource: Any = review.resource
        image = resource["spec"]["containers"][0]["image"] if review.decision.allowed else ""
        found.append((tag, review.decision.allowed, image))
    return found


@pytest.mark.parametrize(
    ("count", "entries", "admitted"),
    [
        (None, ["one"], ["one", "both"]),
        (None, ["one", "two"], ["both"]),
        (1, ["one", "two"], ["one", "two", "both"]),
        (2, ["one", "two"], ["both"]),
        (None, ["onetwo"], ["both"]),
    ],
)
def test_keys_decide_as_before(
    stage: ImageStage, keys: dict[str, str], count: int | None, entries: list[str], admitted: list[str]
) -> None:
    """All of a set or some of it; several keys in one text count as entries of their own."""
    attestors = {"entries": [{"keys": {"publicKeys": keys[each]}} for each in entries]}
    policy = stage.policy(attestors=[{**attestors, **({"count": count} if count else {})}])
    made = convert(policy)
    assert (None, ["ImageValidatingPolicy"]) == (made.remaining, [each["kind"] for each in made.documents])
    old, new = verdicts(stage, [policy]), verdicts(stage, [*made.documents])
    assert old == new
    assert admitted == [tag for tag, is_allowed, _ in new if is_allowed]


@pytest.mark.parametrize(
    "block",
    [
        {"imageReferences": ["elsewhere.io/*"]},
        {"imageReferences": ["*/team/*"], "mutateDigest": False, "verifyDigest": False},
        {"imageReferences": ["*:one", "*:none"], "required": False, "verifyDigest": False},
        {"failureAction": "Audit", "mutateDigest": False},
    ],
)
@pytest.mark.usefixtures("keys")
def test_switches_and_references_are_kept(stage: ImageStage, block: JSONObject) -> None:
    """The references, `required`, the digest switches and the failure action decide alike after the conversion."""
    policy = stage.policy(**block)
    assert verdicts(stage, [policy]) == verdicts(stage, [*convert(policy).documents])


KEYLESS = {"issuer": "https://accounts.example.com", "subject": "*@example.com", "rekor": {"ignoreTlog": True}}


def test_identities_become_attestors(stage: ImageStage) -> None:
    """Wildcards of subjects become regular expressions, logs keep their switches."""
    policy = stage.policy(attestors=[{"entries": [{"keyless": {**KEYLESS, "ctlog": {"ignoreSCT": True}}}]}])
    identity = {"issuer": "https://accounts.example.com", "subjectRegExp": "(?s)^.*@example\\.com$"}
    logs = {"insecureIgnoreTlog": True, "insecureIgnoreSCT": True}
    expected = {"keyless": {"identities": [identity]}, "ctlog": logs}
    assert [{"name": "signer1", "cosign": expected}] == convert(policy).documents[0]["spec"]["attestors"]


def test_statements_are_verified_by_type(stage: ImageStage) -> None:
    """An attestation without conditions only has to be signed."""
    entries = [{"keys": {"publicKeys": stage.signer.public_pem}}]
    statement = {"type": "https://slsa.dev/provenance/v1", "attestors": [{"entries": entries}]}
    spec = convert(stage.policy(attestors=[], attestations=[statement])).documents[0]["spec"]
    assert [{"name": "statement1", "intoto": {"type": "https://slsa.dev/provenance/v1"}}] == spec["attestations"]
    call = "verifyAttestationSignatures(image, attestations.statement1, [attestors.signer1]) > 0"
    assert call in spec["validations"][0]["expression"]


@pytest.mark.parametrize(
    ("code", "block"),
    [
        ("nested-attestors", {"attestors": [{"entries": [{"attestor": {"entries": [{"keyless": KEYLESS}]}}]}]}),
        ("signature-annotations", {"attestors": [{"entries": [{"keyless": KEYLESS, "annotations": {"a": "b"}}]}]}),
        ("key-reference", {"attestors": [{"entries": [{"keys": {"publicKeys": "k8s://ns/name"}}]}]}),
        ("image-field", {"skipImageReferences": ["*:dev"]}),
        ("sigstore-bundle", {"type": "SigstoreBundle"}),
        ("no-attestors", {"attestors": []}),
        (
            "keyless-identity",
            {"attestors": [{"entries": [{"keyless": {**KEYLESS, "additionalExtensions": {"1.2.3": "a*"}}}]}]},
        ),
        (
            "attestation-conditions",
            {
                "attestations": [
                    {
                        "type": "https://example.com/scan",
                        "attestors": [{"entries": [{"keyless": KEYLESS}]}],
                        "conditions": [{"all": [{"key": "{{ a }}", "operator": "Equals", "value": 1}]}],
                    }
                ]
            },
        ),
    ],
)
def test_what_has_no_equal_is_refused_by_its_name(stage: ImageStage, code: str, block: JSONObject) -> None:
    """The rule stays, and the report names the field."""
    made = convert(stage.policy(**block))
    refused = made.rules[0].refused
    assert refused is not None
    assert (code, True) == (refused.code, refused.path.startswith("verifyImages[0]"))


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(("tag", "is_allowed"), [("none", False), ("one", True)])
def test_images_of_controllers_are_judged_alike(stage: ImageStage, tag: str, is_allowed: bool) -> None:
    """Copies of the rule by autogen on one side, all kinds in one policy on the other."""
    policy = stage.policy(mutateDigest=False, verifyDigest=False)
    containers = [{"name": "c", "image": stage.image(tag)}]
    labels = {"app": "a"}
    body: JSONObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }
    sides = [[policy], [*convert(policy).documents]]
    assert [is_allowed, is_allowed] == [stage.review(each, pod=body).decision.allowed for each in sides]
