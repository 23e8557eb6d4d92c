"""Expected reports, computed by the library from the objects of a cluster, and the reports in the cluster.

The oracle is independent of the reports controller: it evaluates every object with every policy by itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

from pyverno.cluster.client import Client
from pyverno.compiler.compile import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.phases import SCAN
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import Document
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from pyverno.report.policyreport import plain_result

__all__ = ["Changes", "actual_reports", "expected_reports"]

PODS = GVR("", "v1", "pods")
CONFIG_MAPS = GVR("", "v1", "configmaps")
NAMESPACES = GVR("", "v1", "namespaces")
DEPLOYMENTS = GVR("apps", "v1", "deployments")
CLUSTER_POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
VALIDATING_POLICIES = GVR("policies.kyverno.io", "v1", "validatingpolicies")
EXCEPTIONS = GVR("kyverno.io", "v2", "policyexceptions")
REPORTS = (
    GVR("wgpolicyk8s.io", "v1alpha2", "policyreports"),
    GVR("wgpolicyk8s.io", "v1alpha2", "clusterpolicyreports"),
)
_OBJECTS = (PODS, CONFIG_MAPS, NAMESPACES, DEPLOYMENTS)
_POLICIES = (CLUSTER_POLICIES, VALIDATING_POLICIES)

Shown = dict[str, list[tuple[Any, ...]]]
"""Results by the uid of their object: policy, rule, result, message and properties."""


async def actual_reports(client: Client) -> Shown:
    """Return the contents of the reports in a cluster without timestamps."""
    found: Shown = {}
    for gvr in REPORTS:
        for report in (await client.list(gvr))["items"]:
            assert report["metadata"]["name"].startswith(report["scope"]["uid"])
            assert report["scope"]["uid"] == report["metadata"]["ownerReferences"][0]["uid"]
            found.setdefault(report["scope"]["uid"], []).extend(map(_rendered, report["results"]))
            counted = [sum(each["result"] == name for each in report["results"]) for name in report["summary"]]
            assert counted == list(report["summary"].values())
    return {uid: sorted(items) for uid, items in found.items()}


async def expected_reports(client: Client) -> Shown:
    """Return the expected contents for the objects in the cluster now."""
    objects = [body async for body in _listed(client, _OBJECTS)]
    documents = [Document(body, "") async for body in _listed(client, (*_POLICIES, EXCEPTIONS))]
    compilation = compile_documents(documents)
    policies = [each for each in compilation.policies if each.info.background]
    engine = Engine(PolicySet(policies, compilation.exceptions), OfflineHost(objects=ObjectStore(objects)))
    namespaces = {body["metadata"]["name"]: body for body in objects if body["kind"] == "Namespace"}
    found: Shown = {}
    for body in objects:
        results = engine.review(_request(body, namespaces), SCAN).results
        items = [
            _rendered(plain_result(each, 0))
            for each in results
            if not (each.rule.policy.kind == "ValidatingPolicy" and each.status is Status.SKIP and not each.exceptions)
        ]
        if items:
            found[body["metadata"]["uid"]] = sorted(items)
    return found


def _request(body: JSONObject, namespaces: dict[str, JSONObject]) -> Request:
    own = body if body["kind"] == "Namespace" else namespaces.get(body["metadata"].get("namespace", ""))
    labels = None if own is None else own["metadata"].get("labels") or {}
    return Request.from_live(body, namespace_labels=labels, namespace_object=own)


async def _listed(client: Client, resources: Iterable[GVR]) -> Any:
    for gvr in resources:
        found = await client.list(gvr)
        for item in found["items"]:
            kind = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
            metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
            yield {**kind, **item, "metadata": metadata}


def _rendered(item: JSONObject) -> tuple[Any, ...]:
    properties = tuple(sorted((item.get("properties") or {}).items()))
    return item["policy"], item.get("rule", ""), item["result"], item.get("message", ""), properties


# ------------------------------------------------------------------------------------------------------------ changes


class Changes:
    """Random changes of objects, policies, exceptions, labels of namespaces and a ConfigMap that a policy reads.

    `made` counts those that the cluster has taken.
    """

    def __init__(self, client: Client, seed: int) -> None:
        """Take the client of the cluster to change, and a seed."""
        self.made = 0
        self._client = client
        self._random = random.Random(seed)  # noqa: S311 - the same changes every time

    async def begin(self) -> None:
        """Create the objects that the changes need."""
        for name in ("red", "blue"):
            await self._apply(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await self._apply(CONFIG_MAPS, _config_map("settings", "red", {"allowed": "nginx:1"}))

    async def make(self) -> None:
        """Make one change; a change that the cluster refuses has no effect."""
        change = self._random.choice(
            (self._pod, self._pod, self._pod, self._labels, self._config, self._policy, self._policy, self._exception)
        )
        try:
            await change()
        except StatusError as error:
            if error.status not in (404, 409):
                raise
        else:
            self.made += 1

    async def _apply(self, gvr: GVR, body: JSONObject) -> None:
        metadata = body["metadata"]
        namespace = metadata.get("namespace", "")
        image = body["spec"]["containers"][0]["image"] if gvr == PODS else ""
        try:
            await self._client.create(gvr, body, namespace)
        except StatusError as error:
            if error.status != 409:
                raise
            before = await self._client.get(gvr, metadata["name"], namespace)
            kept = {**before["metadata"], **metadata}
            if gvr == PODS:  # only its image and a few other fields may change
                body = {**before, "spec": before["spec"]}
                body["spec"]["containers"][0]["image"] = image
            await self._client.update(gvr, {**before, **body, "metadata": kept}, namespace)

    async def _pod(self) -> None:
        namespace, name = self._random.choice(("red", "blue")), f"web-{self._random.randrange(8)}"
        if self._random.random() < 0.25:
            await self._client.delete(PODS, name, namespace, options={"gracePeriodSeconds": 0})
            return
        labels = {"team": "a"} if self._random.random() < 0.5 else {}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"containers": [{"name": "c", "image": f"nginx:{self._random.choice(('1', '2', 'latest'))}"}]},
        }
        await self._apply(PODS, body)

    async def _labels(self) -> None:
        labels = {"kubernetes.io/metadata.name": "blue", "tier": self._random.choice(("gold", "none"))}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue", "labels": labels}}
        await self._apply(NAMESPACES, body)

    async def _config(self) -> None:
        allowed = self._random.choice(("nginx:1", "nginx:2", "nginx:latest"))
        await self._apply(CONFIG_MAPS, _config_map("settings", "red", {"allowed": allowed}))

    async def _policy(self) -> None:
        kind, body = self._random.choice(tuple(_policies(self._random)))
        if self._random.random() < 0.25:
            await self._client.delete(kind, body["metadata"]["name"])
        else:
            await self._apply(kind, body)

    async def _exception(self) -> None:
        if self._random.random() < 0.4:
            await self._client.delete(EXCEPTIONS, "some", "red")
            return
        names = [f"web-{self._random.randrange(8)}"]
        match = {"any": [{"resources": {"kinds": ["Pod"], "names": names}}]}
        spec = {"exceptions": [{"policyName": "latest", "ruleNames": ["tag", "team"]}], "match": match}
        metadata = {"name": "some", "namespace": "red"}
        body = {"apiVersion": "kyverno.io/v2", "kind": "PolicyException", "metadata": metadata, "spec": spec}
        await self._apply(EXCEPTIONS, body)


def _config_map(name: str, namespace: str, data: dict[str, str]) -> JSONObject:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _policies(chance: random.Random) -> Iterator[tuple[GVR, JSONObject]]:
    """Yield one state of each policy."""
    pods = {"any": [{"resources": {"kinds": ["Pod"]}}]}
    image = chance.choice(("!*:latest", "!*:2"))
    rules: list[JSONObject] = [
        _rule("tag", pods, {"message": "tag", "pattern": {"spec": {"containers": [{"image": image}]}}})
    ]
    if chance.random() < 0.5:
        rules.append(_rule("team", pods, {"message": "team", "pattern": {"metadata": {"labels": {"team": "?*"}}}}))
    yield CLUSTER_POLICIES, _policy("latest", rules)
    tier = {"matchLabels": {"tier": "gold"}}
    gold = {"any": [{"resources": {"kinds": ["Pod", "ConfigMap"], "namespaceSelector": tier}}]}
    named = {"message": "gold", "pattern": {"metadata": {"name": chance.choice(("web-*", "?*"))}}}
    yield CLUSTER_POLICIES, _policy("gold", [_rule("named", gold, named)])
    context = [{"name": "settings", "configMap": {"name": "settings", "namespace": "red"}}]
    condition = {"key": "{{ settings.data.allowed }}", "operator": "NotEquals", "value": "nginx:1"}
    denying = {"message": "allowed is {{ settings.data.allowed }}", "deny": {"conditions": {"any": [condition]}}}
    yield CLUSTER_POLICIES, _policy("configured", [{**_rule("allowed", pods, denying), "context": context}])
    constraints = {
        "resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods", "namespaces"]}
        ]
    }
    expression = chance.choice(("object.metadata.name != 'web-1'", "has(object.metadata.labels)"))
    spec = {
        "validationActions": ["Audit"],
        "matchConstraints": constraints,
        "validations": [{"expression": expression, "message": "cel"}],
    }
    body = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "cel"},
        "spec": spec,
    }
    yield VALIDATING_POLICIES, body


def _policy(name: str, rules: list[JSONObject]) -> JSONObject:
    spec = {"background": True, "rules": rules}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": name}, "spec": spec}


def _rule(name: str, match: JSONObject, validate: JSONObject) -> JSONObject:
    return {"name": name, "match": match, "validate": {"failureAction": "Audit", **validate}}
