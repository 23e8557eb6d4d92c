"""UpdateRequests hold no object: triggers are referenced, and a deleted one is in a Secret that its request owns."""

from __future__ import annotations

import base64
import json
import logging
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.controllers.keptobjects import keep, read_kept, secret_of
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.loopthread import LoopThread
from pyverno.policy.updaterequest import UPDATE_REQUESTS, RequestType, UpdateRequestSpec
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox
from tests.support.backgroundcluster import BackgroundCluster
from tests.support.loops import entered

CANARY = "canary-51c9e2"
ENCODED = base64.b64encode(CANARY.encode()).decode()
SECRETS = GVR("", "v1", "secrets")

POLICIES = """
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: notes-secrets}
spec:
  rules:
  - name: generate
    match: {any: [{resources: {kinds: [Secret, ConfigMap], operations: [CREATE, UPDATE, DELETE], namespaces: [team]}}]}
    generate:
      apiVersion: v1
      kind: LimitRange
      name: "{{ request.name }}"
      namespace: team
      synchronize: false
      data: {spec: {limits: []}}
  - name: mutate
    match: {any: [{resources: {kinds: [Secret, ConfigMap], operations: [CREATE, UPDATE, DELETE], namespaces: [team]}}]}
    mutate:
      targets: [{apiVersion: v1, kind: ServiceAccount, namespace: team, name: default}]
      patchStrategicMerge: {metadata: {labels: {seen: "{{ request.name }}"}}}
---
apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: cel-notes-secrets}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE, UPDATE, DELETE]
      resources: [secrets, configmaps]
  generate:
  - expression: >-
      generator.Apply('team', [{'apiVersion': dyn('v1'), 'kind': dyn('LimitRange'), 'metadata': dyn({'name': 'cel'})}])
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[BackgroundCluster]:
    """Run a cluster whose UpdateRequests stay: no background controller works on them."""
    sandbox = Sandbox(Settings(kubelet=False))

    @asynccontextmanager
    async def run() -> AsyncIterator[tuple[PolicySandbox, Client]]:
        settings = AdmissionSettings(qps=0, lease_retry=60)
        async with (
            PolicySandbox(sandbox, Observers(), settings) as found,
            Client(load_kubeconfig(sandbox.kubeconfig, environment={}), qps=0) as client,
        ):
            yield found, client

    with LoopThread("cluster") as thread, entered(thread, run()) as (found, client):
        cluster = BackgroundCluster(thread, found, client)
        cluster.apply(POLICIES)
        yield cluster


def secret(**more: str) -> JSONObject:
    """Return a Secret with the canary in all places that a Secret has."""
    applied = json.dumps({"data": {"key": ENCODED}, "stringData": {"key": CANARY}})
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": applied}
    metadata = {"name": "hidden", "namespace": "team", "labels": {"team": "a"}, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": ENCODED, **more}}


def requests(cluster: BackgroundCluster, operation: str) -> list[JSONObject]:
    """Return the UpdateRequests of an operation."""
    listed = cluster.run(cluster.client.list(UPDATE_REQUESTS, "kyverno"))["items"]
    return [
        each
        for each in listed
        if (each["spec"]["context"].get("admissionRequestInfo") or {}).get("operation") == operation
    ]


def test_no_update_request_holds_a_secret(cluster: BackgroundCluster, caplog: pytest.LogCaptureFixture) -> None:
    """Neither do events, reports and the log, for every operation and kind of rule; a Secret keeps what is deleted."""
    caplog.set_level(logging.DEBUG)
    created = cluster.run(cluster.client.create(SECRETS, secret(), "team"))
    cluster.wait_for(lambda: len(requests(cluster, "CREATE")) >= 3 or None, "requests of the creation")
    more = {**created, "data": {"key": ENCODED, "other": "Yg=="}}
    cluster.run(cluster.client.update(SECRETS, more, "team"))
    cluster.wait_for(lambda: len(requests(cluster, "UPDATE")) >= 3 or None, "requests of the update")
    cluster.run(cluster.client.delete(SECRETS, "hidden", "team"))
    cluster.wait_for(lambda: len(requests(cluster, "DELETE")) >= 3 or None, "requests of the deletion")
    cluster.wait_for(lambda: cluster.cluster.controller.is_idle or None, "everything is written")
    kinds = (("kyverno.io/v2", "UpdateRequest"), ("events.k8s.io/v1", "Event"))
    shown = [cluster.list(api_version, kind, "") for api_version, kind in kinds]
    reports = cluster.list("reports.kyverno.io/v1", "EphemeralReport")
    text = json.dumps([shown, reports]) + caplog.text
    assert [0, 0] == [text.count(CANARY), text.count(ENCODED)]
    for request in requests(cluster, "DELETE"):
        reference = request["spec"]["context"]["admissionRequestInfo"]["admissionRequest"]["oldObject"]
        kept = cluster.run(read_kept(cluster.client, request, reference))
        assert kept is not None
        assert {"key": ENCODED, "other": "Yg=="} == kept["data"]


def test_what_is_kept_goes_with_its_request(cluster: BackgroundCluster) -> None:
    """The Secret has the request as its owner, so that it is collected."""
    cluster.run(cluster.client.create(SECRETS, {**secret(), "metadata": {"name": "gone", "namespace": "team"}}, "team"))
    cluster.run(cluster.client.delete(SECRETS, "gone", "team"))
    cluster.wait_for(lambda: cluster.cluster.controller.is_idle or None, "everything is written")
    kept = [each for each in cluster.list("v1", "Secret", "kyverno") if each.get("type") == "pyverno.io/deleted-object"]
    found = cluster.list("kyverno.io/v2", "UpdateRequest", "kyverno")
    names = {each["metadata"]["name"] for each in found}
    assert kept
    for each in kept:
        assert each["metadata"]["name"] in names
        cluster.run(cluster.client.delete(UPDATE_REQUESTS, each["metadata"]["name"], "kyverno"))
    cluster.wait_for(
        lambda: (
            not [each for each in cluster.list("v1", "Secret", "kyverno") if each.get("type") == kept[0]["type"]]
            or None
        ),
        "the Secrets are collected",
    )


def stored_request(cluster: BackgroundCluster, name: str) -> JSONObject:
    """Store an UpdateRequest and return it."""
    body = UpdateRequestSpec(RequestType.GENERATE, "none").to_json("kyverno")
    body["metadata"] = {"name": name, "namespace": "kyverno"}
    stored: JSONObject = cluster.run(cluster.client.create(UPDATE_REQUESTS, body, "kyverno"))
    return stored


OBJECT: JSONObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "team", "uid": "1"}}
FORGERIES: tuple[tuple[str, JSONObject], ...] = (
    ("type", {"type": "Opaque"}),
    ("owner", {"owner": "another"}),
    ("object", {"uid": "2"}),
    ("bytes", {"data": {"object": "bm90IGNvbXByZXNzZWQ="}}),
    ("none", {"data": {}}),
)


@pytest.mark.parametrize(("name", "change"), FORGERIES, ids=[name for name, _ in FORGERIES])
def test_a_kept_object_is_of_its_request(cluster: BackgroundCluster, name: str, change: JSONObject) -> None:
    """A Secret of the installation, of another request, or with another object counts for nothing; its twin counts."""
    for forged in (True, False):
        request = stored_request(cluster, f"{name}-{forged}".lower())
        changes = change if forged else {}
        body = {**OBJECT, "metadata": {**OBJECT["metadata"], "uid": changes.get("uid", "1")}}
        written = secret_of(request, zlib.compress(json.dumps(body).encode()))
        if "owner" in changes:
            owner = stored_request(cluster, f"{name}-owner")
            written["metadata"]["ownerReferences"] = secret_of(owner, b"")["metadata"]["ownerReferences"]
        written |= {key: changes[key] for key in ("type", "data") if key in changes}
        cluster.run(cluster.client.create(SECRETS, written, "kyverno"))
        kept = cluster.run(read_kept(cluster.client, request, OBJECT))
        assert (None if forged else body) == kept


def test_keeping_twice_is_keeping_once(cluster: BackgroundCluster) -> None:
    """A write that is repeated after an answer was lost changes nothing."""
    request = stored_request(cluster, "twice")
    packed = zlib.compress(json.dumps(OBJECT).encode())
    for _ in range(2):
        cluster.run(keep(cluster.client, request, packed))
    assert cluster.run(read_kept(cluster.client, request, OBJECT)) == OBJECT
