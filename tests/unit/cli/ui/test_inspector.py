"""Policies, exceptions and results of a cluster as the pages show them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import yaml

from kubesandbox import Sandbox, Settings
from pyverno.cli.ui.inspector import ClusterInspector
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.engine.result import ResourceRef
from pyverno.errors import UsageError
from pyverno.install.definitions import definitions
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.report.collected import Collected
from pyverno.report.finding import Finding
from pyverno.ui.access.identity import AccessDeniedError
from pyverno.ui.store.rows import StoredResult

_CRDS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_POLICY = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: require-owner
  annotations: {policies.kyverno.io/title: Owners, policies.kyverno.io/severity: high}
spec:
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context:
    - name: allowed
      configMap: {name: owners, namespace: default}
    validate:
      message: an owner is required
      deny:
        conditions:
          any:
          - key: "{{ request.object.metadata.labels.owner || '' }}"
            operator: AnyNotIn
            value: "{{ split(allowed.data.names, ' ') }}"
"""
_CEL = """
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: require-team}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations: [{expression: "'team' in object.metadata.?labels.orValue({})", message: a team is required}]
"""
_EXCEPTION = """
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: for-old, namespace: default, labels: {cleanup.kyverno.io/ttl: "2031-05-06"}}
spec:
  exceptions: [{policyName: require-owner, ruleNames: [owner]}, {policyName: gone, ruleNames: [x]}]
  match: {any: [{resources: {kinds: [ConfigMap], names: [old]}}]}
"""


def result(policy: str, rule: str, name: str, kind: str = "ConfigMap") -> StoredResult:
    """Return a result about an object in the namespace `default`."""
    found = Finding(
        policy=policy, rule=rule, resource=ResourceRef("v1", kind, "default", name), status="fail", message=""
    )
    return StoredResult(1, 1, "cluster", Collected(found), 0, 0, None)


def ask(question: Callable[[ClusterInspector, Client], Awaitable[None]]) -> None:
    """Ask something of a cluster with two policies, an exception and some objects."""

    @asynccontextmanager
    async def inspected() -> AsyncIterator[tuple[ClusterInspector, Client]]:
        with Sandbox(Settings(controllers=False)) as sandbox:
            async with Client(load_kubeconfig(sandbox.kubeconfig, "", {}), qps=0) as client:
                for body in definitions():
                    await client.create(_CRDS, body)
                await client.create(GVR("kyverno.io", "v1", "clusterpolicies"), yaml.safe_load(_POLICY))
                await client.create(GVR("policies.kyverno.io", "v1", "validatingpolicies"), yaml.safe_load(_CEL))
                await client.create(GVR("kyverno.io", "v2", "policyexceptions"), yaml.safe_load(_EXCEPTION), "default")
                for name in ("bad", "old"):
                    await client.create(GVR("", "v1", "configmaps"), object_named(name), "default")
                owners = {**object_named("owners"), "data": {"names": "ann bob"}}
                await client.create(GVR("", "v1", "configmaps"), owners, "default")
                inspector = ClusterInspector(client)
                try:
                    yield inspector, client
                finally:
                    await inspector.close()

    async def play() -> None:
        async with inspected() as (inspector, client):
            await question(inspector, client)

    asyncio.run(play())


def object_named(name: str) -> JSONObject:
    """Return a ConfigMap that no one owns."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"owner": "eve"}}}


def test_a_policy_is_described_with_its_text_kinds_and_exceptions() -> None:
    """As the cluster has it now."""

    async def question(inspector: ClusterInspector, _: Client) -> None:
        (found,) = await inspector.policies("require-owner")
        assert ("Owners", "high", ["v1/ConfigMap"]) == (found["title"], found["severity"], found["kinds"])
        assert "name: require-owner" in found["text"]
        assert ["for-old"] == [each["name"] for each in found["exceptions"]]
        assert [] == await inspector.policies("another")
        assert [] == [*await inspector.problems()]

    ask(question)


def test_exceptions_name_their_policies_and_their_end() -> None:
    """A policy that is not there is marked."""

    async def question(inspector: ClusterInspector, _: Client) -> None:
        (found,) = await inspector.exceptions()
        assert [("require-owner", True), ("gone", False)] == [
            (each["name"], each["exists"]) for each in found["policies"]
        ]
        assert "2031-05-06T00:00:00Z" == found["expires"]

    ask(question)


def test_a_result_is_explained_with_what_the_cluster_knows() -> None:
    """The ConfigMap of the context is read from the cluster, and exceptions of the cluster apply."""

    async def question(inspector: ClusterInspector, _: Client) -> None:
        bad = await inspector.explain(result("require-owner", "owner", "bad"))
        old = await inspector.explain(result("require-owner", "owner", "old"))
        assert [["fail"], ["skip"]] == [found["rules"][0]["statuses"] for found in (bad, old)]
        assert any(line["place"] and line["place"]["input"] == "policies" for line in bad["rules"][0]["lines"])
        assert "managedFields" not in bad["resources"]

    ask(question)


@pytest.mark.parametrize(
    ("policy", "rule", "kind"),
    [("require-owner", "owner", "kyverno.io/v2beta1"), ("require-team", "", "policies.kyverno.io/v1")],
)
def test_a_drafted_exception_exempts_the_object_and_nothing_else(policy: str, rule: str, kind: str) -> None:
    """The engine computes results before and after the exception, and nothing is written to the cluster."""

    async def question(inspector: ClusterInspector, client: Client) -> None:
        found = await inspector.draft(result(policy, rule, "bad"))
        assert [["fail"], ["skip"]] == [[each["status"] for each in found[when]] for when in ("before", "after")]
        assert kind == yaml.safe_load(found["exception"])["apiVersion"]
        assert 1 == len((await client.list(GVR("kyverno.io", "v2", "policyexceptions")))["items"])

    ask(question)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (result("gone", "r", "bad"), "no policy `gone` any more"),
        (result("require-owner", "owner", "nothing"), "the object is gone"),
        (result("require-owner", "owner", "x", "Gadget"), "serves no kind `Gadget`"),
        (result("require-owner", "owner", "token", "Secret"), "a Secret is not shown"),
    ],
)
def test_what_cannot_be_explained_has_a_reason(asked: StoredResult, reason: str) -> None:
    """One sentence."""

    async def question(inspector: ClusterInspector, _: Client) -> None:
        with pytest.raises((UsageError, AccessDeniedError), match=reason):
            await inspector.explain(asked)
        with pytest.raises((UsageError, AccessDeniedError), match=reason):
            await inspector.draft(asked)

    ask(question)
