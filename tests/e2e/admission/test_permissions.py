"""The roles that `pyverno install` prints suffice: no request of a controller with these roles is forbidden.

All printed objects are applied to a sandbox with RBAC; the controller uses a token of its service account.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from typing import Final

import pytest
import yaml

from kubesandbox import Sandbox, Settings
from pyverno.cluster.access import Access, load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.discovery import discover
from pyverno.controllers.admission.controller import AdmissionController, AdmissionSettings
from pyverno.controllers.certificates.secrets import CertificateSettings
from pyverno.install.manifests import InstallSettings, manifests
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.telemetry.logs import AnswerLog
from pyverno.testing import install_definitions
from pyverno.webhook.policyreviews import ExceptionSettings
from tests.e2e.admission.deployment import until
from tests.support.ports import free_port

ACCOUNT: Final = "kyverno-admission-controller"
USER: Final = f"system:serviceaccount:kyverno:{ACCOUNT}"
_REFUSED: Final = re.compile(rf" (401|403) \S+ {re.escape(USER)}")


DOCUMENTS: Final = """\
apiVersion: kyverno.io/v2
kind: GlobalContextEntry
metadata: {name: deployments}
spec:
  kubernetesResource: {group: apps, version: v1, resource: deployments}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: needs-team}
spec:
  rules:
  - name: rule
    match: {any: [{resources: {kinds: [Pod], namespaces: [shop]}}]}
    validate:
      failureAction: Enforce
      message: a team is needed
      pattern:
        metadata: {labels: {team: "?*"}}
  - name: asks
    match: {any: [{resources: {kinds: [Pod], namespaces: [shop]}}]}
    context:
    - name: settings
      configMap: {name: settings, namespace: shop}
    - name: web
      apiCall: {urlPath: /apis/apps/v1/namespaces/shop/deployments}
    - name: all
      globalReference: {name: deployments}
    validate:
      failureAction: Audit
      message: never said
      deny:
        conditions:
          any:
          - key: "{{ length(web.items) }}{{ settings.data.a }}{{ length(all) }}"
            operator: Equals
            value: "9"
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: adds}
spec:
  rules:
  - name: rule
    match:
      any:
      - resources: {kinds: [Pod], namespaces: [shop]}
    mutate:
      patchStrategicMerge:
        metadata: {labels: {+(added): "yes"}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: generates}
spec:
  rules:
  - name: rule
    match:
      any:
      - resources: {kinds: [Pod], namespaces: [shop]}
    generate:
      apiVersion: v1
      kind: ConfigMap
      name: made
      namespace: shop
      synchronize: false
      data:
        data: {a: b}
---
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: own, namespace: shop}
spec:
  rules:
  - name: rule
    match:
      any:
      - resources: {kinds: [Pod]}
    validate:
      message: a name is needed
      pattern:
        spec: {containers: [{name: "?*"}]}
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: becomes-native}
spec:
  autogen:
    validatingAdmissionPolicy: {enabled: true}
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  validations:
  - {expression: object.metadata.name != 'forbidden', message: not this name}
---
apiVersion: policies.kyverno.io/v1
kind: NamespacedValidatingPolicy
metadata: {name: own, namespace: shop}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  validations:
  - {expression: "true"}
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: adds}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{}}"}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: some, namespace: shop}
spec:
  match: {any: [{resources: {kinds: [Pod], namespaces: [shop]}}]}
  exceptions:
  - {policyName: none, ruleNames: [rule]}
---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: some, namespace: shop}
spec:
  policyRefs:
  - {name: none, kind: ValidatingPolicy}
"""
SETTINGS: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "shop"},
    "data": {"a": "b"},
}


def documents() -> list[JSONObject]:
    """Return the policies and what belongs to them."""
    return list(yaml.safe_load_all(DOCUMENTS))


class Cluster:
    """A sandbox in which everything is applied, and objects are written by an administrator."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def write(self, *bodies: JSONObject) -> None:
        """Create objects of any kind."""
        kinds = await discover(self._client)
        for body in bodies:
            info = kinds.find(GVK(*parse_api_version(body["apiVersion"]), body["kind"]))
            assert info is not None, body["kind"]
            try:
                await self._client.create(info.gvr, body, body["metadata"].get("namespace") or "")
            except StatusError as error:
                if error.reason != "AlreadyExists":
                    raise

    async def token(self) -> str:
        """Return a token of the service account of the controller."""
        path = f"/api/v1/namespaces/kyverno/serviceaccounts/{ACCOUNT}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = await self._client.request("POST", path, body=body)
        return str(answer["status"]["token"])


def pod(name: str, **labels: str) -> JSONObject:
    """Return a pod of the shop."""
    metadata = {"name": name, "namespace": "shop", "labels": labels}
    spec = {"containers": [{"name": "web", "image": "registry.example.org/web:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def refused(lines: Iterable[str]) -> list[str]:
    """Return the requests of the controller that the API server refused."""
    return [line for line in lines if _REFUSED.search(line)]


def test_the_roles_of_the_manifests_are_enough(caplog: pytest.LogCaptureFixture) -> None:
    """From the start through policies of every kind to the end, with webhooks taken away."""
    lines: list[str] = []
    caplog.set_level(logging.DEBUG, "pyverno")

    async def run() -> None:
        async with Sandbox(Settings(namespaces=("shop",), log_request=lines.append)) as sandbox:
            admin = load_kubeconfig(sandbox.kubeconfig)
            async with Client(admin, qps=0) as client:
                await install_definitions(client)
                cluster = Cluster(client)
                await cluster.write(*manifests(InstallSettings()), SETTINGS)
                access = Access(admin.server, ca=admin.ca, token=await cluster.token())
                await _work(access, cluster, client)

    asyncio.run(run())
    assert [] == refused(lines)
    assert [] == [record.getMessage() for record in caplog.records if "forbidden" in repr(record.__dict__).lower()]
    assert any(" 201 " in line and line.endswith(USER) for line in lines)


async def _work(access: Access, cluster: Cluster, client: Client) -> None:
    port = free_port()
    settings = AdmissionSettings(
        address="127.0.0.1",
        port=port,
        server=f"127.0.0.1:{port}",
        certificates=CertificateSettings(server=f"127.0.0.1:{port}"),
        exceptions=ExceptionSettings(True, "*"),
        reports_account="system:serviceaccount:kyverno:reports",
        deployment=ACCOUNT,
        removes_webhooks=True,
    )
    controller = AdmissionController(access, settings, AnswerLog())
    stop = asyncio.Event()
    running = asyncio.create_task(controller.run(stop))
    try:
        await until("the webhooks are in place", lambda: controller.ready.is_set() or running.done())
        await cluster.write(*documents())
        await until("policies are at work", lambda: controller.is_settled or running.done())
        with pytest.raises(StatusError, match="needs-team"):
            await cluster.write(pod("denied"))
        await cluster.write(pod("good", team="a"), {**SETTINGS, "metadata": {"name": "other", "namespace": "shop"}})
        policies = GVR("policies.kyverno.io", "v1", "validatingpolicies")
        native = GVR("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
        await until("a policy became native", lambda: _names(client, native))
        await client.delete(policies, "becomes-native")
        await until("it is gone with its policy", lambda: _has_none(client, native))
        await until("what follows from answers is written", lambda: controller.is_idle or running.done())
        await until("everything is written", lambda: controller.is_settled or running.done())
    finally:
        stop.set()
        await running


async def _names(client: Client, gvr: GVR) -> list[str]:
    return [item["metadata"]["name"] for item in (await client.list(gvr))["items"]]


async def _has_none(client: Client, gvr: GVR) -> bool:
    return not await _names(client, gvr)
