"""`validate.manifests`: objects are the ones that were signed, by the signers that the rule names."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.host import OfflineHost
from pyverno.value import replace
from tests.authority.manifests import sign_manifest
from tests.authority.signing import Signer, SigningServices
from tests.support.images import image_stage

SERVICES = SigningServices()
FIRST, SECOND, STRANGER = SERVICES.keyed(), SERVICES.keyed(), SERVICES.keyed()
SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 9376}], "selector": {"app": "web"}},
}
PASSED = (
    "verified manifest signatures; manifest verification succeeded; verifiedCount 1; requiredCount 1;"
    " message singed by a valid signer:"
)


def _keys(*signers: Signer) -> dict[str, Any]:
    return {"count": 1, "entries": [{"keys": {"publicKeys": each.public_pem}} for each in signers]}


def _policy(*sets: dict[str, Any], **block: Any) -> dict[str, Any]:
    manifests = {"attestors": list(sets), **block}
    rule = {
        "name": "signed",
        "match": {"any": [{"resources": {"kinds": ["Service"]}}]},
        "validate": {"failureAction": "Enforce", "manifests": manifests},
    }
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "manifests"},
        "spec": {"background": False, "rules": [rule]},
    }


def _review(policy: dict[str, Any], resource: dict[str, Any], host: Any = None, **options: Any) -> tuple[str, str]:
    compiled = compile_documents(load_documents(yaml.safe_dump(policy)))
    for error in compiled.errors:
        raise error
    request = replace(Request.from_manifest(resource), **options)
    review = Engine(PolicySet(compiled.policies, compiled.exceptions), host or OfflineHost()).review(request)
    (result,) = review.results
    return result.status.value, result.message


def _changed(change: Callable[[dict[str, Any]], object], signed: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(signed)
    change(found)
    return found


# --------------------------------------------------------------------------------------------------------------- good


@pytest.mark.parametrize("is_archive", [False, True])
def test_a_signed_object_passes(is_archive: bool) -> None:
    """The message is a manifest, or an archive of manifests; the signature is by one of the keys."""
    signed = sign_manifest(SERVICE, SECOND, is_archive=is_archive)
    assert _review(_policy(_keys(FIRST, SECOND)), signed) == ("pass", PASSED)


def test_one_of_several_signatures_is_enough() -> None:
    """All signatures over the message are tried."""
    assert _review(_policy(_keys(SECOND)), sign_manifest(SERVICE, STRANGER, SECOND)) == ("pass", PASSED)


def test_fields_of_the_api_server_and_those_of_the_rule_are_ignored() -> None:
    """Values that servers fill in are no change, and neither are fields that the rule ignores."""
    signed = sign_manifest(SERVICE, FIRST)
    signed["metadata"] |= {"uid": "1", "namespace": "default", "labels": {"team": "a"}}
    signed["spec"] |= {"clusterIP": "10.0.0.1", "type": "ClusterIP"}
    ignored = [{"objects": [{"kind": "Serv*"}], "fields": ["metadata.labels.*"]}]
    assert [
        _review(_policy(_keys(FIRST), ignoreFields=ignored), signed)[0],
        _review(_policy(_keys(FIRST)), signed)[0],
    ] == ["pass", "fail"]


def test_another_domain_of_the_annotations_is_read() -> None:
    """`annotationDomain` names the prefix, and the usual one does not count then."""
    policy = _policy(_keys(FIRST), annotationDomain="example.com")
    assert [
        _review(policy, sign_manifest(SERVICE, FIRST, domain="example.com"))[0],
        _review(policy, sign_manifest(SERVICE, FIRST)),
    ] == ["pass", ("fail", "manifest verification failed: the object carries no signature")]


def test_a_dry_run_passes() -> None:
    """Kyverno lets a request pass that changes nothing."""
    assert _review(_policy(_keys(FIRST)), SERVICE, dry_run=True) == ("pass", "allowed because of DryRun request")


def test_a_keyless_signature_needs_the_whole_proof() -> None:
    """A certificate of the authority, its log entry and the identity count; a self-made certificate does not."""
    with image_stage() as stage:
        keyless = {
            "keyless": {
                "subject": "dev@example.com",
                "issuer": "https://accounts.example.com",
                "rekor": {"url": "https://log.example.com"},
            }
        }
        policy = _policy({"entries": [keyless]})
        developer, stranger = stage.services.keyless(), SigningServices(log=stage.services.log).keyless()
        statuses = [
            _review(policy, sign_manifest(SERVICE, signer, is_logged=is_logged), stage.host)[0]
            for signer, is_logged in ((developer, True), (developer, False), (stranger, True))
        ]
    assert statuses == ["pass", "fail", "fail"]


# -------------------------------------------------------------------------------------------------------------- wrong

SIGNED = sign_manifest(SERVICE, FIRST)
DIFFERS = "failed to verify signature. diff found; "
COUNTS = "manifest verification failed; verifiedCount {}; requiredCount 1; message "
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no signature": (SERVICE, "manifest verification failed: the object carries no signature"),
    "a stranger's signature": (
        sign_manifest(SERVICE, STRANGER),
        COUNTS.format(0) + ".attestors[0].entries[0].keys: signature: the signature was not made by this key",
    ),
    "a changed value": (
        _changed(lambda found: found["spec"].update(selector={"app": "evil"}), SIGNED),
        COUNTS.format(1) + ".attestors[0]: " + DIFFERS + '{"items":[{"key":"spec.selector.app"}]}',
    ),
    "an added value": (
        _changed(lambda found: found["spec"].update(externalIPs=["1.1.1.1"]), SIGNED),
        COUNTS.format(1) + ".attestors[0]: " + DIFFERS + '{"items":[{"key":"spec.externalIPs.0"}]}',
    ),
    "a removed value": (
        _changed(lambda found: found["spec"].pop("selector"), SIGNED),
        COUNTS.format(1) + ".attestors[0]: " + DIFFERS + '{"items":[{"key":"spec.selector.app"}]}',
    ),
    "another object": (
        _changed(lambda found: found["metadata"].update(name="other"), SIGNED),
        "manifest verification failed: the signed manifest does not hold this object",
    ),
    "a message that is not compressed": (
        _changed(
            lambda found: found["metadata"]["annotations"].update({"cosign.sigstore.dev/message": "YQ=="}), SIGNED
        ),
        "manifest verification failed: the signed message is not exactly one gzip stream",
    ),
    "a bundle elsewhere": (
        _changed(
            lambda found: found["metadata"].update(annotations={"cosign.sigstore.dev/resourceBundleRef": "evil/image"}),
            SIGNED,
        ),
        "manifest verification failed: the object carries no signature",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_object_that_was_not_signed_like_this_fails(case: str) -> None:
    """The message names the differing path, never the value, or the attestor that was not satisfied."""
    resource, message = WRONG[case]
    assert _review(_policy(_keys(FIRST)), resource) == ("fail", message)


def test_a_namespace_that_was_signed_is_the_namespace_of_the_object() -> None:
    """A manifest for one namespace admits nothing in another."""
    signed = sign_manifest({**SERVICE, "metadata": {"name": "web", "namespace": "a"}}, FIRST)
    signed["metadata"]["namespace"] = "b"
    assert _review(_policy(_keys(FIRST)), signed)[0] == "fail"


def test_what_cannot_be_verified_is_an_error() -> None:
    """Manifest signatures in a registry are not supported, and the message names the field."""
    text = "signatures of manifests in a registry (`manifests.repository`) are not supported"
    assert _review(_policy(_keys(FIRST), repository="registry.example.com/a"), SIGNED) == ("error", text)
