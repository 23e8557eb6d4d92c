"""Generated objects, decoded from their labels and annotation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pyverno.compiler.compile import compile_document
from pyverno.controllers.background.generating.downstreams import Downstream, Downstreams
from pyverno.controllers.background.generating.rulefacts import facts_of
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.yaml.documents import Document
from pyverno.policy.updaterequest import Trigger
from pyverno.value import replace
from tests.support.apiserver import serving, status, watch
from tests.unit.controllers.background.generating.test_rules import COPY, MADE, policy

SECRET = BUILTIN_KINDS.find(GVK("", "v1", "Secret"))
PREFIX = "generate.kyverno.io/"


def metadata_of(said: str | None = None, **labels: str) -> JSONObject:
    """Return the metadata of a generated Secret with these labels and the annotation of its last change."""
    common = {
        "app.kubernetes.io/managed-by": "kyverno",
        f"{PREFIX}policy-name": "copy",
        f"{PREFIX}trigger-kind": "Namespace",
        f"{PREFIX}trigger-version": "v1",
        f"{PREFIX}trigger-uid": "7",
    }
    metadata: JSONObject = {"name": "pull", "namespace": "team", "labels": {**common, **labels}}
    if said is not None:
        metadata["annotations"] = {"pyverno.io/last-change": said}
    return metadata


def downstream(said: str | None = None, **labels: str) -> Any:
    """Return a generated Secret with these labels and the annotation of its last change."""
    assert SECRET is not None
    return Downstream.of(SECRET, {"metadata": metadata_of(said, **labels)})


def test_the_annotation_names_what_labels_leave_out() -> None:
    """It holds the name of the trigger, the source of a copy, and whether the object is deleted with its policy."""
    said = (
        '{"trigger":"Namespace/team","source":"default/Secret/pull","onPolicyDeletion":"delete","policyGeneration":3}'
    )
    found = downstream(said, **{f"{PREFIX}rule-name": "secret", f"{PREFIX}source-uid": "8"})
    assert ("kyverno.io/ClusterPolicy", "", "copy") == found.policy
    assert Trigger("v1", "Namespace", "", "team", "7") == found.trigger
    assert (GVR("", "v1", "secrets"), "default", "pull") == found.source
    assert (True, 3) == (found.goes_with_policy, found.policy_generation)


def test_an_invalid_annotation_is_ignored() -> None:
    """The labels alone still name policy and trigger."""
    for said in (None, "no json", "[1]"):
        found = downstream(said)
        assert ("policies.kyverno.io/GeneratingPolicy", "", "copy") == found.policy
        assert (None, False) == (found.source, found.goes_with_policy)


def test_what_ends_with_its_rule_depends_on_the_rule_and_on_the_object() -> None:
    """Objects from data are deleted with the rule; copies of one named object and orphans stay."""
    orphan = {**MADE, "orphanDownstreamOnPolicyDelete": True}
    facts = facts_of(compile_document(Document(policy(COPY, MADE, orphan, {**MADE, "synchronize": False}))))
    made, copy = downstream(), downstream(**{f"{PREFIX}source-uid": "8"})
    assert [False, True, False, False] == [
        facts[f"rule-{number}"].goes_with_policy(copy if number == 0 else made) for number in range(4)
    ]
    assert ("v1/ConfigMap",) == facts["rule-1"].kinds


def test_an_object_that_a_restore_leaves_as_it_was_stays_known() -> None:
    """Its version is that which was known, so that the cache keeps no more than its name."""
    secrets = GVR("", "v1", "secrets")
    body = {"metadata": {**metadata_of(), "uid": "9", "resourceVersion": "10"}}
    changed: list[tuple[str, str]] = []

    def list_of(version: str) -> JSONObject:
        return {"apiVersion": "v1", "kind": "SecretList", "metadata": {"resourceVersion": version}, "items": [body]}

    async def run() -> None:
        async with serving() as (script, client):
            script.on("GET /api/v1/secrets", list_of("90"), list_of("50"))
            script.on("WATCH /api/v1/secrets", status(410, "Expired"), watch())
            found = Downstreams(client, lambda _: SECRET, lambda notice, each: changed.append((notice, each.uid)))
            found.follow(secrets)
            running = asyncio.create_task(found.run())
            async with asyncio.timeout(60):
                while not changed:
                    await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert [("MODIFIED", "9")] == changed
            assert ["pull"] == [each.target.name for each in found]

    asyncio.run(run())


def test_labels_of_a_policy_of_another_namespace_name_no_policy() -> None:
    """Whoever may write an object writes its labels."""
    name = f"{PREFIX}policy-namespace"
    assert [True, True, False] == [downstream(**{name: each}) is not None for each in ("", "team", "other")]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"name": ""}, True),
        ({"uid": ""}, True),
        ({"api_version": "apps/v2"}, True),
        ({"name": "other"}, False),
        ({"uid": "2"}, False),
        ({"kind": "StatefulSet"}, False),
        ({"namespace": "other"}, False),
        ({"api_version": "v1"}, False),
    ],
    ids=str,
)
def test_an_object_names_its_own_trigger(change: dict[str, str], expected: bool) -> None:
    """A name or uid that is not known may be any; a version may be another one."""
    trigger = Trigger("apps/v1", "Deployment", "team", "web", "1")
    parts = {"version": "v1", "group": "apps", "kind": "Deployment", "namespace": "team", "name": "web", "uid": "1"}
    found = downstream(**{f"{PREFIX}trigger-{name}": text for name, text in parts.items()})
    assert expected == found.was_triggered_by(replace(trigger, **change))
