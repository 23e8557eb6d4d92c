"""I18: a stranger who may write objects, but not in the namespace of the controllers, edits everything of ours.

No verdict, report or write changes because of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from kubesandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.engine.engine import Review
from pyverno.engine.imageverification.annotations import LEGACY_ANNOTATION, SCOPED_ANNOTATION
from pyverno.engine.imageverification.recordkeys import RecordKeys
from pyverno.engine.phases import ADMISSION, MUTATING, SCAN, VALIDATING, Phase
from pyverno.engine.request import Request
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.reportapis import POLICY_REPORTS
from pyverno.report.ephemeral import EPHEMERAL_REPORTS
from pyverno.report.seals import SEAL_ANNOTATION
from pyverno.telemetry.observer import Observers
from pyverno.testing import BACKGROUND, REPORTS, PolicySandbox
from tests.authority.signing import SigningServices
from tests.support.background import World
from tests.support.images import ImageStage, image_stage

PODS: Final = GVR("", "v1", "pods")
MAPS: Final = GVR("", "v1", "configmaps")
NAMESPACES: Final = GVR("", "v1", "namespaces")
CLUSTER_POLICIES: Final = GVR("kyverno.io", "v1", "clusterpolicies")
OURS: Final = RecordKeys(b"the key of this installation, 32+")
OTHERS: Final = RecordKeys(b"the key of another installation ..")


# --------------------------------------------------------------------------------------------- records of images


class Tampered:
    """A registry, a policy, and a Pod whose signed image is admitted with a record of ours."""

    def __init__(self, stage: ImageStage) -> None:
        self.stage = stage
        self.digest = stage.push()
        self.signed = f"{stage.registry.host}/team/app@{self.digest}"
        stage.sign(self.digest)
        self.unsigned = stage.push("evil")
        self.evil = f"{stage.registry.host}/team/app@{self.unsigned}"
        self.policy = stage.policy(useCache=False, mutateDigest=False)
        stage.record_keys = OURS
        self.created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.admitted = self.stored(self.review(self.pod(self.signed)))

    def pod(self, image: str, **metadata: Any) -> JSONObject:
        """Return a Pod with an image."""
        return self.stage.pod(image, **metadata)

    def stored(self, review: Review) -> JSONObject:
        """Return the object of a review as the API server stores it."""
        resource: Any = review.resource
        return {**resource, "metadata": {**resource["metadata"], "uid": "1", "creationTimestamp": self.created}}

    def review(
        self, pod: JSONObject, old: JSONObject | None = None, phases: tuple[Phase, ...] = ADMISSION, **policy: Any
    ) -> Review:
        """Review a request by the policy, or by one that differs."""
        chosen = self.stage.policy(**{"useCache": False, "mutateDigest": False, **policy}) if policy else self.policy
        return self.stage.review(chosen, pod=pod, old=old, phases=phases)

    def scan(self, pod: JSONObject) -> list[str]:
        """Return the results of a background scan."""
        engine = self.stage.engine(self.policy)
        return [each.status.value for each in engine.review(Request.from_live(pod), SCAN).results]

    def forgeries(self) -> dict[str, JSONObject]:
        """Return Pods in the cluster with the unsigned image, and every record that a stranger can come by."""
        annotations = self.admitted["metadata"]["annotations"]
        record = json.loads(annotations[SCOPED_ANNOTATION])
        renamed = json.dumps(record).replace(self.signed, self.evil)
        complete = json.dumps(record).replace(self.digest, self.unsigned)
        plain = json.dumps({"version": 1, "policies": {"/signed": {"check": {self.evil: "pass"}}}})
        skipped = json.dumps({"version": 1, "policies": {"/signed": {"check": {self.evil: "skip"}}}})
        sealed = {name: text.replace(self.signed, self.evil) for name, text in annotations.items()}
        self.stage.record_keys = OTHERS
        foreign = self.review(self.pod(self.signed)).resource
        self.stage.record_keys = OURS
        return {
            "the form of older versions": self.evil_pod({SCOPED_ANNOTATION: plain}),
            "a skip": self.evil_pod({SCOPED_ANNOTATION: skipped}),
            "the annotation for people": self.evil_pod({LEGACY_ANNOTATION: json.dumps({self.evil: "pass"})}),
            "our record of another image": self.evil_pod(annotations),
            "our record with another image in it": self.evil_pod({SCOPED_ANNOTATION: renamed}),
            "our record with another image and its digest in it": self.evil_pod({SCOPED_ANNOTATION: complete}),
            "both annotations with another image": self.evil_pod(sealed),
            "the record of another installation": self.evil_pod(foreign["metadata"]["annotations"]),  # type: ignore[index, call-overload]
        }

    def evil_pod(self, annotations: JSONObject) -> JSONObject:
        """Return a Pod in the cluster with the unsigned image."""
        return self.pod(self.evil, annotations=annotations, uid="1", creationTimestamp=self.created)


@pytest.fixture(scope="module")
def tampered() -> Any:
    """A registry with a signed and an unsigned image."""
    with image_stage() as stage:
        yield Tampered(stage)


def _relabelled(pod: JSONObject) -> JSONObject:
    return {**pod, "metadata": {**pod["metadata"], "labels": {"trusted": "true"}}}


def test_no_record_that_a_stranger_wrote_admits_an_image(tampered: Tampered) -> None:
    """An update that leaves the image as it was is judged as if there were no record, in both webhooks."""
    clean = _outcome(tampered, tampered.evil_pod({}))
    found = {name: _outcome(tampered, pod) for name, pod in tampered.forgeries().items()}
    assert dict.fromkeys(found, clean) == found
    assert (False, False) == tuple(allowed for allowed, _ in clean)


def _outcome(tampered: Tampered, pod: JSONObject) -> tuple[tuple[bool, list[tuple[str, str]]], ...]:
    reviews = [tampered.review(_relabelled(pod), pod, phases) for phases in (MUTATING, VALIDATING)]
    return tuple(
        (each.decision.allowed and all(one.status.value == "pass" for one in each.results), _results(each))
        for each in reviews
    )


def _results(review: Review) -> list[tuple[str, str]]:
    return [(each.status.value, each.message) for each in review.results]


def test_no_record_that_a_stranger_wrote_counts_in_a_scan(tampered: Tampered) -> None:
    """The report of an unsigned image is a failure, whatever its annotation claims."""
    found = {name: tampered.scan(pod) for name, pod in tampered.forgeries().items()}
    assert [["fail", "fail"]] * len(found) == list(found.values())
    assert ["pass", "pass"] == tampered.scan(tampered.admitted)


def test_a_record_of_ours_saves_the_registry(tampered: Tampered) -> None:
    """An update of an image that we verified is admitted while the registry is away, and changes no record."""
    manifests = dict(tampered.stage.registry.manifests)
    tampered.stage.registry.manifests.clear()
    try:
        review = tampered.review(_relabelled(tampered.admitted), tampered.admitted)
    finally:
        tampered.stage.registry.manifests.update(manifests)
    assert (True, tampered.admitted["metadata"]["annotations"]) == (
        review.decision.allowed,
        review.resource["metadata"]["annotations"],  # type: ignore[index, call-overload]
    )


def test_a_request_brings_no_record_along(tampered: Tampered) -> None:
    """A copy of a Pod is a new object: even our own record of the first one admits nothing."""
    manifests = dict(tampered.stage.registry.manifests)
    tampered.stage.registry.manifests.clear()
    try:
        reviews = [tampered.review(tampered.admitted, phases=phases) for phases in (MUTATING, VALIDATING)]
    finally:
        tampered.stage.registry.manifests.update(manifests)
    assert [False, False] == [any(one.status.value == "pass" for one in each.results) for each in reviews]


@pytest.mark.parametrize(
    "block",
    [
        {"repository": "other.example/app"},
        {"required": False},
        {"imageReferences": ["*", "other"]},
        {"attestors": [{"entries": [{"keys": {"publicKeys": SigningServices().keyed().public_pem}}]}]},
    ],
    ids=lambda block: next(iter(block)),
)
def test_a_policy_that_changed_verifies_anew(tampered: Tampered, block: JSONObject) -> None:
    """The record holds for the rule as it was: without the registry the image is not verified."""
    manifests = dict(tampered.stage.registry.manifests)
    tampered.stage.registry.manifests.clear()
    try:
        review = tampered.review(_relabelled(tampered.admitted), tampered.admitted, MUTATING, **block)
    finally:
        tampered.stage.registry.manifests.update(manifests)
    assert ["pass"] != [each.status.value for each in review.results if each.status.value != "skip"]
    assert [] != [each for each in review.results if each.status.value in ("fail", "error")]


def test_a_record_holds_for_the_demands_that_variables_gave(tampered: Tampered) -> None:
    """A key that a variable names is another one after a change of what the variable reads."""
    rule = {"context": [{"name": "key", "variable": {"jmesPath": "request.object.metadata.labels.key"}}]}
    entry = {
        "imageReferences": ["*"],
        "mutateDigest": False,
        "useCache": False,
        "attestors": [{"entries": [{"keys": {"publicKeys": tampered.stage.signer.public_pem}}]}],
        "repository": "{{ key }}",
    }
    policy = tampered.stage.policy_of([entry], **rule)
    same, other = "", "other.example/app"
    first = tampered.stored(tampered.stage.review(policy, pod=tampered.pod(tampered.signed, labels={"key": same})))
    allowed = [
        tampered.stage.review(
            policy, pod={**first, "metadata": {**first["metadata"], "labels": {"key": key}}}, old=first
        ).decision.allowed
        for key in (same, other)
    ]
    assert [True, False] == allowed


# ------------------------------------------------------------------------------------------------------ a cluster


def _play(scene: Callable[[World], Awaitable[None]]) -> None:
    """Run a scene with the admission, background and reports controllers at work."""

    async def run() -> None:
        sandbox = PolicySandbox(Sandbox(Settings(kubelet=False)), Observers(), further=(BACKGROUND, REPORTS))
        async with sandbox, Client(load_kubeconfig(sandbox.sandbox.kubeconfig), qps=0) as client:
            await scene(World(sandbox, client))

    asyncio.run(run())


def _policy(name: str, rule: JSONObject, **spec: Any) -> JSONObject:
    rule = {"name": "rule", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, **rule}
    metadata = {"name": name}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": metadata,
        "spec": {"rules": [rule], **spec},
    }


def _plain_pod(name: str, **metadata: Any) -> JSONObject:
    spec = {"containers": [{"name": "c", "image": "ghcr.io/org/app:1"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", **metadata},
        "spec": spec,
    }


def test_a_foreign_record_is_removed_from_what_passes() -> None:
    """A policy that does not verify this Pod takes the record off it, and other annotations stay."""
    forged = {SCOPED_ANNOTATION: "{}", LEGACY_ANNOTATION: '{"a":"pass"}', "note": "mine"}
    selector = {"matchLabels": {"never": "true"}}
    verifying = {
        "match": {"any": [{"resources": {"kinds": ["Pod"], "selector": selector}}]},
        "verifyImages": [
            {
                "imageReferences": ["ghcr.io/*"],
                "failureAction": "Enforce",
                "attestors": [{"entries": [{"keys": {"publicKeys": "k8s://a/b"}}]}],
            }
        ],
    }

    async def scene(world: World) -> None:
        await world.namespace("team")
        await world.apply(CLUSTER_POLICIES, _policy("verify", verifying, webhookTimeoutSeconds=5))
        made = await world.client.create(PODS, _plain_pod("a", annotations=forged), "team")
        changed = {**made, "metadata": {**made["metadata"], "annotations": forged}}
        updated = await world.client.update(PODS, changed, "team")
        assert [{"note": "mine"}] * 2 == [each["metadata"]["annotations"] for each in (made, updated)]

    _play(scene)


def _item(policy: str, result: str) -> JSONObject:
    return {
        "source": "kyverno",
        "policy": policy,
        "rule": "rule",
        "result": result,
        "message": "forged",
        "scored": True,
        "timestamp": {"seconds": 9**10, "nanos": 0},
    }


def test_a_report_that_a_stranger_writes_or_changes_is_written_anew() -> None:
    """Neither an ephemeral report, nor a report with our labels and name, nor a change of ours gets into a report."""
    deny = {"validate": {"message": "no", "pattern": {"metadata": {"labels": {"owner": "?*"}}}}}

    async def scene(world: World) -> None:
        client = world.client
        await world.namespace("team")
        await world.apply(CLUSTER_POLICIES, _policy("scanned", deny))
        await world.apply(CLUSTER_POLICIES, _policy("requests", deny, background=False))
        uid = (await client.create(PODS, _plain_pod("a"), "team"))["metadata"]["uid"]

        async def results() -> list[tuple[str, str]] | None:
            report = await world.get(POLICY_REPORTS.namespaced, uid, "team")
            found = [(each["policy"], each["result"]) for each in (report or {}).get("results", ())]
            sealed = SEAL_ANNOTATION in ((report or {}).get("metadata", {}).get("annotations") or {})
            return found if sealed and len(found) == 2 else None

        genuine = await world.until(results)
        assert [("requests", "fail"), ("scanned", "fail")] == genuine
        await client.create(EPHEMERAL_REPORTS[0], _ephemeral(uid, _item("requests", "pass")), "team")
        report = await client.get(POLICY_REPORTS.namespaced, uid, "team")
        stolen = report["metadata"]["annotations"]
        other = {
            **report,
            "metadata": {
                "name": "forged",
                "namespace": "team",
                "labels": report["metadata"]["labels"],
                "annotations": stolen,
            },
            "results": [_item("requests", "pass")],
        }
        await client.create(POLICY_REPORTS.namespaced, other, "team")

        async def is_clean() -> bool:
            waiting = (await client.list(EPHEMERAL_REPORTS[0], "team"))["items"]
            left = await world.get(POLICY_REPORTS.namespaced, "forged", "team")
            return not waiting and left is None and await results() == genuine

        await world.until(is_clean)
        report = await client.get(POLICY_REPORTS.namespaced, uid, "team")
        tampered = {**report, "results": [_item("requests", "pass"), _item("scanned", "pass")]}
        await client.update(POLICY_REPORTS.namespaced, tampered, "team")

        async def is_scanned() -> bool:
            now = await client.get(POLICY_REPORTS.namespaced, uid, "team")
            return [("scanned", "fail")] == [(each["policy"], each["result"]) for each in now["results"]]

        await world.until(is_scanned)

    _play(scene)


def _ephemeral(uid: str, *items: JSONObject) -> JSONObject:
    labels = {"uid": uid, "group": "", "version": "v1", "kind": "Pod"}
    return {
        "apiVersion": "reports.kyverno.io/v1",
        "kind": "EphemeralReport",
        "metadata": {
            "generateName": "forged-",
            "namespace": "team",
            "labels": {
                **{f"audit.kyverno.io/resource.{key}": value for key, value in labels.items()},
                "app.kubernetes.io/managed-by": "kyverno",
                "audit.kyverno.io/source": "admission",
            },
            "annotations": {"audit.kyverno.io/resource.name": "a", "audit.kyverno.io/resource.namespace": "team"},
        },
        "spec": {"owner": {"apiVersion": "", "kind": "", "name": "", "uid": ""}, "summary": {}, "results": list(items)},
    }


def test_forged_labels_of_generated_objects_take_nothing_from_others() -> None:
    """An object that claims the trigger of another tenant under another name leaves that tenant's objects alone."""
    generate = {
        "match": {"any": [{"resources": {"kinds": ["Namespace"], "selector": {"matchLabels": {"tenant": "yes"}}}}]},
        "generate": {
            "synchronize": True,
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "settings",
            "namespace": "{{ request.object.metadata.name }}",
            "data": {"data": {"a": "b"}},
        },
    }

    async def scene(world: World) -> None:
        await world.apply(CLUSTER_POLICIES, _policy("settings", generate))
        await world.namespace("evil")
        await world.namespace("victim", tenant="yes")
        genuine = await world.appears(MAPS, "settings", "victim")
        forged = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "mine",
                "namespace": "evil",
                "labels": genuine["metadata"]["labels"],
                "annotations": {"pyverno.io/last-change": json.dumps({"trigger": "Namespace/nothing"})},
            },
        }
        made = await world.client.create(MAPS, forged, "evil")
        await world.rest()
        await world.client.update(MAPS, {**made, "data": {"woken": "yes"}}, "evil")
        await asyncio.sleep(0.5)
        await world.rest()
        now = await world.get(MAPS, "settings", "victim")
        assert now is not None and genuine["metadata"]["uid"] == now["metadata"]["uid"]

    _play(scene)
