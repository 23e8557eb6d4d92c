"""I20: one signer counts once, in every entry, on every level, and however a policy writes it."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from pyverno.engine.phases import MUTATING
from pyverno.errors import PolicyError
from pyverno.kube.json import JSONObject
from tests.authority.notary import JWS, NotarySigner
from tests.authority.signing import Signer
from tests.support.images import ImageStage, image_stage

ISSUER: Final = "https://accounts.example.com"
NOTARY_TYPE: Final = "application/vnd.cncf.notary.signature"
TYPE: Final = "https://example.com/scan/v1"


@pytest.fixture
def stage() -> Iterator[ImageStage]:
    """A registry with authorities of its own."""
    with image_stage() as made:
        yield made


def _key(signer: Signer, **entry: Any) -> JSONObject:
    return {"keys": {"publicKeys": signer.public_pem}, **entry}


def _keyless(subject: str, **keyless: Any) -> JSONObject:
    return {"keyless": {"issuer": ISSUER, "subject": subject, "rekor": {"url": "https://r.example.com"}, **keyless}}


def _nested(*entries: JSONObject, count: int = 1) -> JSONObject:
    return {"attestor": {"count": count, "entries": list(entries)}}


def _wrapped(pem: str) -> str:
    body = "".join(pem.split("-----")[2].split())
    return f"\n\n-----BEGIN PUBLIC KEY-----\n{textwrap.fill(body, 20)}\n-----END PUBLIC KEY-----\n\n"


Entries = Callable[[ImageStage, Signer], list[JSONObject]]
TWICE: Final[dict[str, Entries]] = {
    "two entries": lambda stage, other: [_key(stage.signer), _key(stage.signer)],
    "a nested set beside it": lambda stage, other: [_key(stage.signer), _nested(_key(stage.signer))],
    "a nested set before it": lambda stage, other: [_nested(_key(stage.signer)), _key(stage.signer)],
    "two nested sets": lambda stage, other: [_nested(_key(stage.signer)), _nested(_key(stage.signer))],
    "three levels": lambda stage, other: [_key(stage.signer), _nested(_nested(_nested(_key(stage.signer))))],
    "with others that did not sign": lambda stage, other: [
        _key(stage.signer),
        _nested(_key(stage.services.keyed()), _key(stage.signer)),
    ],
    "other white space": lambda stage, other: [
        _key(stage.signer),
        {"keys": {"publicKeys": _wrapped(stage.signer.public_pem)}},
    ],
    "one text with two blocks": lambda stage, other: [
        {"keys": {"publicKeys": stage.signer.public_pem * 2}},
        _key(other),
    ],
    "a key of a Secret": lambda stage, other: [
        _key(stage.signer),
        {"keys": {"secret": {"namespace": "kyverno", "name": "signer"}}},
    ],
    "a key of a key management system": lambda stage, other: [
        _nested(_key(stage.signer)),
        {"keys": {"kms": "awskms:///alias/signer"}},
    ],
}
"""Entries with the key that signed, twice."""


@pytest.mark.parametrize("case", TWICE)
def test_one_key_counts_once(stage: ImageStage, case: str) -> None:
    """Two are demanded, and one has signed, twice; one is enough where one is demanded."""
    digest = stage.push()
    stage.sign(digest, stage.signer.sign_layer(digest), stage.signer.sign_layer(digest))
    stage.keys["k8s://kyverno/signer"] = stage.keys["awskms:///alias/signer"] = _wrapped(stage.signer.public_pem)
    entries = TWICE[case](stage, stage.services.keyed())
    found = [_status(stage, attestors=[{"count": count, "entries": entries}]) for count in (1, 2)]
    assert ["pass", "fail"] == found


@pytest.mark.parametrize("case", TWICE)
def test_one_key_counts_once_for_attestations(stage: ImageStage, case: str) -> None:
    """The same sets decide about statements."""
    digest = stage.push()
    stage.attest(digest, stage.signer.attest_layer(digest, {"a": 1}, TYPE))
    stage.keys["k8s://kyverno/signer"] = stage.keys["awskms:///alias/signer"] = stage.signer.public_pem
    entries = TWICE[case](stage, stage.services.keyed())
    found = [
        _status(stage, attestors=[], attestations=[{"type": TYPE, "attestors": [{"count": count, "entries": entries}]}])
        for count in (1, 2)
    ]
    assert ["pass", "fail"] == found


KEYLESS: Final[dict[str, list[JSONObject]]] = {
    "the same text": [_keyless("dev@example.com"), _keyless("dev@example.com")],
    "a wildcard": [_keyless("dev@example.com"), _keyless("*@example.com")],
    "a regular expression": [_keyless("dev@example.com"), _keyless("dev@*", subjectRegExp="^dev@")],
    "a nested set": [_keyless("dev@*"), _nested(_keyless("*@example.com"))],
}


@pytest.mark.parametrize("case", KEYLESS)
def test_one_identity_counts_once(stage: ImageStage, case: str) -> None:
    """Each keyless signature has a key of its own: the name in the certificate is who signed."""
    digest = stage.push()
    layers = [stage.services.keyless("dev@example.com").sign_layer(digest) for _ in range(2)]
    stage.sign(digest, *layers)
    found = [_status(stage, attestors=[{"count": count, "entries": KEYLESS[case]}]) for count in (1, 2)]
    assert ["pass", "fail"] == found


TWO: Final[dict[str, Entries]] = {
    "two entries": lambda stage, other: [_key(stage.signer), _key(other)],
    "a nested set": lambda stage, other: [_nested(_key(stage.signer)), _key(other)],
    "a set that could take either, first": lambda stage, other: [
        _nested(_key(stage.signer), _key(other)),
        _key(stage.signer),
    ],
    "a set that could take either, last": lambda stage, other: [
        _key(other),
        _nested(_key(other), _key(stage.signer)),
    ],
    "sets in sets": lambda stage, other: [
        _nested(_nested(_key(stage.signer), _key(other))),
        _nested(_key(stage.signer)),
    ],
    "a set that takes both": lambda stage, other: [
        _nested(_key(stage.signer), _key(other), count=2),
        _key(stage.services.keyed()),
        _nested(_key(stage.services.keyed())),
    ],
}
"""Entries that two signers fulfil; the last one only with a count of one."""


@pytest.mark.parametrize("case", TWO)
def test_two_signers_count_as_two(stage: ImageStage, case: str) -> None:
    """Twins: in any order, where a way exists to give each entry a signer of its own."""
    digest, other = stage.push(), stage.services.keyed()
    stage.sign(digest, stage.signer.sign_layer(digest), other.sign_layer(digest))
    count = 1 if case == "a set that takes both" else 2
    assert "pass" == _status(stage, attestors=[{"count": count, "entries": TWO[case](stage, other)}])


def test_two_identities_count_as_two(stage: ImageStage) -> None:
    """Twin: a wildcard takes the one that no other entry needs."""
    digest = stage.push()
    stage.sign(digest, *(stage.services.keyless(f"{name}@example.com").sign_layer(digest) for name in ("dev", "ops")))
    entries = [_keyless("*@example.com"), _keyless("dev@example.com")]
    assert "pass" == _status(stage, attestors=[{"count": 2, "entries": entries}])


@pytest.mark.parametrize("is_nested", [False, True])
def test_one_notary_signer_counts_once(stage: ImageStage, *, is_nested: bool) -> None:
    """Whatever trust stores of a policy lead to it."""
    signer = NotarySigner(now=int(time.time()))
    digest = _notarize(stage, signer)
    entry = {"certificates": {"cert": signer.root_pem}}
    other = {"certificates": {"certChain": signer.root_pem}}
    found = [
        _status(
            stage,
            type="Notary",
            attestors=[{"count": count, "entries": [entry, _nested(other) if is_nested else other]}],
        )
        for count in (1, 2)
    ]
    assert (["pass", "fail"], True) == (found, digest.startswith("sha256:"))


def _notarize(stage: ImageStage, signer: NotarySigner) -> str:
    digest = stage.push()
    size = len(stage.registry.manifests["team/app", digest][1])
    stage.registry.attach("team/app", digest, signer.sign(JWS, digest, size), NOTARY_TYPE, media_type=JWS)
    return digest


ATTESTORS: Final[dict[str, Callable[[ImageStage, Signer], list[JSONObject]]]] = {
    "one key": lambda stage, other: [_cosign("a", stage.signer), _cosign("b", stage.signer)],
    "one key, written otherwise": lambda stage, other: [
        _cosign("a", stage.signer),
        {"name": "b", "cosign": {"key": {"data": _wrapped(stage.signer.public_pem)}}},
    ],
    "two keys": lambda stage, other: [_cosign("a", stage.signer), _cosign("b", other)],
}


def _cosign(name: str, signer: Signer) -> JSONObject:
    return {"name": name, "cosign": {"key": {"data": signer.public_pem}}}


@pytest.mark.parametrize("attestors", ATTESTORS)
@pytest.mark.parametrize("order", ["attestors.a, attestors.b", "attestors.b, attestors.a"])
def test_attestors_of_an_image_policy_are_counted_by_their_signer(
    stage: ImageStage, attestors: str, order: str
) -> None:
    """`verifyImageSignatures` returns how many have signed, and `verifyAttestationSignatures` too."""
    digest, other = stage.push(), stage.services.keyed()
    stage.sign(digest, stage.signer.sign_layer(digest), other.sign_layer(digest))
    stage.attest(digest, *(each.attest_layer(digest, {"a": 1}, TYPE) for each in (stage.signer, other)))
    written = ATTESTORS[attestors](stage, other)
    expected = 2 if attestors == "two keys" else 1
    assert [expected] * 2 == [_number(stage, written, order, digest, scan=scan) for scan in (False, True)]


@pytest.mark.parametrize("order", ["attestors.a, attestors.b", "attestors.b, attestors.a"])
def test_identities_of_an_image_policy_are_counted_by_their_signer(stage: ImageStage, order: str) -> None:
    """One person who satisfies two attestors is one; two are two in any order."""
    digest = stage.push()
    attestors = [
        {"name": "a", "cosign": {"keyless": {"identities": [{"issuer": ISSUER, "subjectRegExp": "@example[.]com$"}]}}},
        {"name": "b", "cosign": {"keyless": {"identities": [{"issuer": ISSUER, "subject": "dev@example.com"}]}}},
    ]
    dev, ops = (stage.services.keyless(f"{name}@example.com").sign_layer(digest) for name in ("dev", "ops"))
    stage.sign(digest, dev)
    assert 1 == _number(stage, attestors, order, digest)
    stage.sign(digest, dev, ops)
    assert 2 == _number(stage, attestors, order, digest)


def _number(stage: ImageStage, attestors: list[JSONObject], order: str, digest: str, *, scan: bool = False) -> int:
    """Return how many have signed, as `verifyImageSignatures` or `verifyAttestationSignatures` says."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    call = f"verifyImageSignatures(images.containers[0], [{order}])"
    if scan:
        call = f"verifyAttestationSignatures(images.containers[0], attestations.scan, [{order}])"
    policy = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ImageValidatingPolicy",
        "metadata": {"name": "signed"},
        "spec": {
            "matchConstraints": {"resourceRules": [pods]},
            "attestors": attestors,
            "attestations": [{"name": "scan", "intoto": {"type": TYPE}}],
            "validations": [{"expression": f"{call} < 0", "messageExpression": f"string({call})"}],
        },
    }
    review = stage.review(policy, f"{stage.image()}@{digest}")
    return int(next(each.message for each in review.results if each.status.value == "fail"))


def _status(stage: ImageStage, **block: Any) -> str:
    return stage.review(stage.policy(**block), phases=MUTATING).results[0].status.value


@pytest.mark.parametrize("count", [-1, 3])
def test_a_count_that_no_entries_can_reach_is_an_error_of_the_policy(stage: ImageStage, count: int) -> None:
    """A threshold below zero would pass without a signature; zero is none written, and all must sign."""
    stage.sign(stage.push())
    entries = [_key(stage.signer), _key(stage.services.keyed())]
    with pytest.raises(PolicyError, match=r"[Cc]ount"):
        stage.review(stage.policy(attestors=[{"count": count, "entries": entries}]))


def test_a_count_of_zero_demands_all(stage: ImageStage) -> None:
    """Zero is none written, and never a threshold that nothing reaches."""
    stage.sign(stage.push())
    entries = [_key(stage.signer), _key(stage.services.keyed())]
    assert "fail" == _status(stage, attestors=[{"count": 0, "entries": entries}])


def test_attestors_of_an_image_policy_have_names_of_their_own(stage: ImageStage) -> None:
    """Of two with one name only one would count."""
    written = [_cosign("a", stage.signer), _cosign("a", stage.services.keyed())]
    with pytest.raises(PolicyError, match=r"spec\.attestors\[1\]: Duplicate value"):
        _number(stage, written, "attestors.a", stage.push())
