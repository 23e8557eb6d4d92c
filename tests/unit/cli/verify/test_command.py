"""`pyverno verify`: what was checked of an image, by which signer, and what is missing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.authority.notary import COSE, JWS, NotarySigner
from tests.support.images import ImageStage, image_stage, signed_images

if TYPE_CHECKING:
    from tests.support.commandline import Run

NOTARY = "application/vnd.cncf.notary.signature"


@pytest.fixture
def stage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ImageStage]:
    """A registry with a signed image `v1` and an unsigned one `v2`, and the key in the working folder."""
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))
    with image_stage() as found:
        found.sign(found.push("v1"))
        found.push("v2")
        (folder / "cosign.pub").write_text(found.signer.public_pem)
        (folder / "other.pub").write_text(found.services.keyed().public_pem)
        (folder / "root.json").write_bytes(found.services.trusted_root())
        (folder / "signed.yaml").write_text(yaml.safe_dump(found.policy()))
        yield found


def test_a_signed_image_is_verified(cli: Run, stage: ImageStage) -> None:
    """Every check is in the ledger, and the exit code is 0."""
    ran = cli("verify", stage.image("v1"), "--key", "cosign.pub", "--trust-root", "root.json", "-o", "json")
    body = json.loads(ran.out)
    (demand,) = body["demands"]
    (check,) = demand["checks"]
    constraints = [(each["constraint"], each["state"]) for each in check["entries"]]
    assert (ran.code, body["verified"]) == (0, True)
    assert constraints == [(name, "met") for name in ("digest", "type", "signature", "key", "transparency log")]


def test_an_unsigned_image_and_a_foreign_key_are_not_verified(cli: Run, stage: ImageStage) -> None:
    """The output names the failed check, and the exit code is 1."""
    unsigned = cli("verify", stage.image("v2"), "--key", "cosign.pub", "--trust-root", "root.json")
    foreign = cli("verify", stage.image("v1"), "--key", "other.pub", "--trust-root", "root.json")
    assert (unsigned.code, foreign.code) == (1, 1)
    assert "NOT verified: --key cosign.pub\n" in unsigned.out
    assert "no signatures found" in unsigned.out
    assert "broken signature: the signature was not made by this key\n" in foreign.out


def test_a_policy_names_the_required_signers(cli: Run, stage: ImageStage) -> None:
    """The rules that select the image count."""
    codes = [
        cli("verify", stage.image(tag), "--policy", "signed.yaml", "--trust-root", "root.json").code
        for tag in ("v1", "v2")
    ]
    assert codes == [0, 1]


def test_without_a_signer_or_a_trust_root_nothing_is_verified(cli: Run, stage: ImageStage) -> None:
    """Each missing input is an error, never a pass."""
    nobody = cli("verify", stage.image("v1"))
    rootless = cli("verify", stage.image("v1"), "--key", "cosign.pub")
    assert (nobody.code, rootless.code) == (1, 1)
    assert "no attestor is given" in nobody.err
    assert "--trust-root is needed" in rootless.err


@pytest.mark.parametrize("form", [JWS, COSE])
def test_a_notary_signature_is_held_against_the_given_root(
    cli: Run, stage: ImageStage, folder: Path, form: str
) -> None:
    """The signature must lead to the certificates of the file, and be of the image as the registry has it."""
    signer, stranger = (NotarySigner(now=int(time.time())) for _ in range(2))
    digest = stage.push("v3")
    size = len(stage.registry.manifests["team/app", digest][1])
    blob = signer.sign(form, digest, size)
    stage.registry.attach("team/app", digest, blob, NOTARY, media_type=form)
    for name, each in (("own", signer), ("stranger", stranger)):
        (folder / f"{name}.pem").write_text(each.root_pem)
    own, other = (
        cli("verify", stage.image("v3"), "--notary-certificate", f"{each}.pem") for each in ("own", "stranger")
    )
    assert (own.code, other.code) == (0, 1)
    assert "problem: trust store: no certificate of the chain is in the trust store\n" in other.out


def policy(folder: Path, stage: ImageStage, **entry: object) -> str:
    """Write a policy with one entry of verifyImages, and return its file."""
    (folder / "policy.yaml").write_text(yaml.safe_dump(stage.policy(**entry)))
    return "policy.yaml"


@pytest.mark.parametrize(("kind", "codes"), [("Cosign", (0, 1)), ("SigstoreBundle", (1, 0))])
def test_signatures_count_in_the_form_that_the_policy_demands(
    cli: Run, stage: ImageStage, folder: Path, kind: str, codes: tuple[int, int]
) -> None:
    """A cluster would refuse the other form, and so does the command."""
    stage.bundle(stage.push("bundled"))
    path = policy(folder, stage, type=kind)
    found = tuple(
        cli("verify", stage.image(tag), "--policy", path, "--trust-root", "root.json").code for tag in ("v1", "bundled")
    )
    assert codes == found


def test_notary_signatures_are_held_against_the_policy(cli: Run, stage: ImageStage, folder: Path) -> None:
    """The ledger of the signature is shown, as for a certificate of the command line."""
    signer, stranger = (NotarySigner(now=int(time.time())) for _ in range(2))
    digest = stage.push("v3")
    size = len(stage.registry.manifests["team/app", digest][1])
    stage.registry.attach("team/app", digest, signer.sign(JWS, digest, size), NOTARY, media_type=JWS)
    found = []
    for each in (signer, stranger):
        entries = [{"certificates": {"cert": each.root_pem}}]
        path = policy(folder, stage, type="Notary", attestors=[{"entries": entries}])
        ran = cli("verify", stage.image("v3"), "--policy", path, "-o", "json")
        (demand,) = json.loads(ran.out)["demands"]
        states = {entry["constraint"]: entry["state"] for entry in demand["checks"][0]["entries"]}
        found.append((ran.code, demand["passes"], states["trust store"]))
    assert found == [(0, True, "met"), (1, False, "broken")]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"imageReferences": ["ghcr.io/*"]}, "policy.yaml: no policy demands a verification of "),
        ({"skipImageReferences": ["*"]}, "policy.yaml: no policy demands a verification of "),
        ({"attestors": []}, "policy.yaml: no policy demands a verification of "),
        ({"attestors": 3}, "policy.yaml:"),
    ],
)
def test_a_policy_that_decides_nothing_here_is_an_error(
    cli: Run, stage: ImageStage, folder: Path, entry: dict[str, object], problem: str
) -> None:
    """Another policy that holds does not hide it."""
    path = policy(folder, stage, **entry)
    ran = cli("verify", stage.image("v1"), "--policy", "signed.yaml", "--policy", path, "--trust-root", "root.json")
    assert (ran.code, ran.out) == (1, "")
    assert f"Error: {problem}" in ran.err


def test_a_policy_in_cel_is_reviewed_and_its_checks_are_shown(cli: Run, stage: ImageStage, folder: Path) -> None:
    """A Pod with the image is reviewed; each signature that its expressions verified has its ledger."""
    found = []
    for key in (stage.signer.public_pem, stage.services.keyed().public_pem):
        (folder / "policy.yaml").write_text(yaml.safe_dump(signed_images(key)))
        ran = cli("verify", stage.image("v1"), "--policy", "policy.yaml", "--trust-root", "root.json", "-o", "json")
        (demand,) = json.loads(ran.out)["demands"]
        (check,) = demand["checks"]
        states = {entry["constraint"]: entry["state"] for entry in check["entries"]}
        found.append((ran.code, demand["demand"], demand["passes"], check["passes"], states["signature"]))
        assert check["attestor"].endswith(": attestors.key")
    name = "policy.yaml: policy signed"
    assert [(0, name, True, True, "met"), (1, name, False, False, "broken")] == found


def test_a_policy_in_cel_that_is_not_about_pods_is_an_error(cli: Run, stage: ImageStage, folder: Path) -> None:
    """Nothing would be verified."""
    other = signed_images(stage.signer.public_pem)
    other["spec"]["matchConstraints"]["resourceRules"][0]["resources"] = ["services"]
    (folder / "policy.yaml").write_text(yaml.safe_dump(other))
    ran = cli("verify", stage.image("v1"), "--policy", "policy.yaml", "--trust-root", "root.json")
    assert (ran.code, ran.out) == (1, "")
    assert "Error: policy.yaml: signed does not apply to a Pod with " in ran.err


@pytest.mark.parametrize(("namespace", "code"), [("default", 0), ("other", 1)])
def test_rules_that_depend_on_more_than_signatures_are_reviewed(
    cli: Run, stage: ImageStage, folder: Path, namespace: str, code: int
) -> None:
    """Conditions are evaluated with the object of the review, which is in the namespace `default`."""
    wrong = {"key": "{{ request.namespace }}", "operator": "NotEquals", "value": namespace}
    path = policy(folder, stage, validate={"message": "another namespace", "deny": {"conditions": {"any": [wrong]}}})
    ran = cli("verify", stage.image("v1"), "--policy", path, "--trust-root", "root.json")
    assert code == ran.code
    assert ("problem: " in ran.out and "another namespace" in ran.out) is bool(code)
    assert f"{'NOT verified' if code else 'verified'}: policy.yaml: rule check" in ran.out


def test_what_is_missing_names_the_flag(cli: Run, stage: ImageStage, folder: Path) -> None:
    """The trusted root of a policy in CEL, a key that is none, a key elsewhere, and an image that does not exist."""
    (folder / "policy.yaml").write_text(yaml.safe_dump(signed_images(stage.signer.public_pem)))
    (folder / "notes.txt").write_text("no key")
    (folder / "key.pub").write_text(stage.signer.public_pem)
    image = stage.image("v1")
    found = [
        cli("verify", image, "--policy", "policy.yaml").out,
        cli("verify", image, "--key", "notes.txt", "--ignore-tlog").err,
        cli("verify", image, "--key", "other://key", "--ignore-tlog").err,
        cli("verify", stage.image("v9"), "--key", "key.pub", "--ignore-tlog").err,
    ]
    texts = (
        "no authorities and logs are trusted: --trust-root is needed",
        "Error: --key notes.txt: the file holds no public key (PEM)",
        "names a key of a key management system that is not supported",
        f"Error: the registry has no `v9` in `{image.removesuffix(':v1')}`",
    )
    assert [True] * 4 == [text in each for text, each in zip(texts, found, strict=True)], found


def test_fields_of_older_policies_count(cli: Run, stage: ImageStage, folder: Path) -> None:
    """The field `key` of an entry names a signer, as it does in a cluster."""
    older = {"image": "*", "key": stage.signer.public_pem, "imageReferences": ["*"], "attestors": []}
    path = policy(folder, stage, **older)
    codes = [
        cli("verify", stage.image(tag), "--policy", path, "--trust-root", "root.json").code for tag in ("v1", "v2")
    ]
    assert codes == [0, 1]


def test_an_attestation_of_a_policy_is_never_a_signature(cli: Run, stage: ImageStage, folder: Path) -> None:
    """A signature alone satisfies no attestation of the policy, whatever the attestation leaves out."""
    keys = {"keys": {"publicKeys": stage.signer.public_pem}}
    found = []
    for attestation in ({"type": "https://example.com/scan"}, {"name": "scan"}, {"type": ""}):
        path = policy(folder, stage, attestations=[{**attestation, "attestors": [{"entries": [keys]}]}])
        ran = cli("verify", stage.image("v1"), "--policy", path, "--trust-root", "root.json")
        found.append((ran.code, "missing type" in ran.out))
    assert [(1, False), (1, True), (1, True)] == found
