"""The forger has a socket to the webhook's port: reviews of changes that no API server was asked for change nothing.

What the real API server stores still makes rules work: each forged operation has a twin that is real.
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from pyverno.controllers.admission import questions
from pyverno.controllers.background.generating import handlers as generating
from pyverno.controllers.background.mutating import triggers as mutating
from pyverno.controllers.reports import reconciler
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.policy.updaterequest import UPDATE_REQUESTS
from pyverno.report.ephemeral import EPHEMERAL_REPORTS
from pyverno.testing import BACKGROUND, REPORTS
from tests.support.backgroundcluster import BackgroundCluster, background_cluster

CONFIG_MAPS = GVR("", "v1", "configmaps")
PODS = GVR("", "v1", "pods")
DEPLOYMENTS = GVR("apps", "v1", "deployments")
EVENTS = GVR("events.k8s.io", "v1", "events")
POLICY_REPORTS = GVR("wgpolicyk8s.io", "v1alpha2", "policyreports")
WATCHED = (CONFIG_MAPS, PODS, DEPLOYMENTS, EVENTS, POLICY_REPORTS, UPDATE_REQUESTS)
PATHS = ("/validate/fail", "/validate/ignore", "/mutate/fail", "/gpol/forged-made", "/mpol/forged-changed")
WORD = "forged-role"
ADMIN = {"username": "system:admin", "groups": ["system:masters"]}

OBJECTS = """
apiVersion: v1
kind: Namespace
metadata: {name: victim}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: request-live, namespace: victim}
data: {role: user}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: target, namespace: victim}
data: {role: user}
---
apiVersion: v1
kind: Pod
metadata: {name: request-pod, namespace: victim}
spec: {containers: [{name: a, image: a}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: request-app, namespace: victim}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}
"""

_KINDS = (
    "ConfigMap, Pod, Deployment, Deployment/scale, Deployment/status, Pod/status, Pod/exec, Pod/ephemeralcontainers, "
    "Pod/eviction, Pod/binding"
)
_OPERATIONS = "operations: [CREATE, UPDATE, DELETE, CONNECT]"

POLICIES = f"""
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: forged-generates}}
spec:
  background: false
  rules:
  - name: make
    match: {{any: [{{resources: {{kinds: [{_KINDS}], names: ["request-*"], namespaces: [victim], {_OPERATIONS}}}}}]}}
    generate:
      apiVersion: v1
      kind: ConfigMap
      name: "made-{{{{ request.name || request.object.metadata.name }}}}-{{{{ to_lower(request.operation) }}}}"
      namespace: victim
      data: {{data: {{role: "{{{{ request.object.data.role || request.oldObject.data.role || 'none' }}}}",
        user: "{{{{ request.userInfo.username }}}}"}}}}
  - name: follow
    match: {{any: [{{resources: {{kinds: [ConfigMap], names: ["request-*"], namespaces: [victim]}}}}]}}
    generate:
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: "followed-{{{{ request.object.metadata.name }}}}"
      namespace: victim
      data: {{data: {{role: "{{{{ request.object.data.role }}}}"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: forged-changes}}
spec:
  background: false
  rules:
  - name: change
    match: {{any: [{{resources: {{kinds: [{_KINDS}], names: ["request-*"], namespaces: [victim], {_OPERATIONS}}}}}]}}
    mutate:
      targets: [{{apiVersion: v1, kind: ConfigMap, name: target, namespace: victim}}]
      patchStrategicMerge:
        data: {{role: "{{{{ request.object.data.role || request.oldObject.data.role || 'none' }}}}",
          last: "{{{{ request.operation }}}} {{{{ request.name }}}} {{{{ request.userInfo.username }}}}"}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: forged-reports}}
spec:
  background: false
  rules:
  - name: judge
    match: {{any: [{{resources: {{kinds: [{_KINDS}], names: ["request-*"], namespaces: [victim]}}}}]}}
    validate:
      failureAction: Audit
      message: the role is not user
      deny:
        conditions:
          any: [{{key: "{{{{ request.object.data.role || 'none' }}}}", operator: NotEquals, value: user}}]
---
apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {{name: forged-made}}
spec:
  matchConstraints:
    resourceRules:
    - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}}
  matchConditions:
  - name: named
    expression: "object.metadata.name.startsWith('request-')"
  generate:
  - expression: |
      generator.Apply("victim", [{{'apiVersion': dyn('v1'), 'kind': dyn('ConfigMap'),
        'metadata': dyn({{'name': 'cel-' + object.metadata.name}}), 'data': dyn(object.data)}}])
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {{name: forged-changed}}
spec:
  evaluation: {{mutateExisting: {{enabled: true}}}}
  matchConstraints:
    resourceRules:
    - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}}
  matchConditions: [{{name: named, expression: "object.metadata.?name.orValue('request-').startsWith('request-')"}}]
  targetMatchConstraints:
    resourceRules:
    - {{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps], resourceNames: [target]}}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: "Object{{metadata: Object.metadata{{labels: Object.metadata.labels{{seen: object.data.role}}}}}}"
"""


class Forger:
    """Posts reviews to the webhook's port."""

    def __init__(self, cluster: BackgroundCluster) -> None:
        self.cluster = cluster
        self._context = ssl._create_unverified_context()  # noqa: S323 - a forger does not care

    def post(self, request: JSONObject) -> None:
        """Post one request to the paths of all policies."""
        server = self.cluster.cluster.controller._server
        assert server is not None
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        for path in PATHS:
            asked = urllib.request.Request(
                f"https://127.0.0.1:{server.port}{path}?timeout=10s",
                data=json.dumps(body).encode(),
                headers={"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(asked, context=self._context) as reply:  # noqa: S310 - our own server
                assert 200 == reply.status


def state(cluster: BackgroundCluster) -> dict[str, JSONObject]:
    """Return everything that lasts, without what changes by itself."""
    found: dict[str, JSONObject] = {}
    for gvr in WATCHED:
        for item in cluster.run(cluster.client.list(gvr))["items"]:
            metadata = item["metadata"]
            if metadata.get("namespace") not in ("kube-system", "kyverno") or gvr == UPDATE_REQUESTS:
                found[f"{gvr.resource}/{metadata.get('namespace')}/{metadata['name']}"] = item
    return found


def idle(cluster: BackgroundCluster) -> None:
    """Wait until nothing is left of what follows from answers."""
    sandbox = cluster.cluster

    def is_done() -> bool:
        return sandbox.controller.is_idle and all(each.is_idle for each in sandbox.running.values())

    def left() -> list[JSONObject]:
        return cluster.requests() or cluster.run(cluster.client.list(EPHEMERAL_REPORTS[0]))["items"]

    end, calm = time.monotonic() + 60, 0
    while calm < 5:
        calm = calm + 1 if is_done() and not left() else 0
        assert time.monotonic() < end, [each.get("message") for each in left()]
        time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster() -> Iterator[BackgroundCluster]:
    """Run one cluster with objects that are older than its policies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(questions, "_PAUSES", (0.02, 0.05, 0.1, 0.3))
        patch.setattr(reconciler, "_YOUNG_SECONDS", 1.0)
        patch.setattr(reconciler, "_LOOK_SECONDS", 0.5)
        with background_cluster(further=(BACKGROUND, REPORTS)) as found:
            found.apply(OBJECTS)
            found.apply(POLICIES)
            idle(found)
            yield found


def review(
    kind: str,
    gvr: GVR,
    operation: str,
    name: str,
    *,
    subresource: str = "",
    user: JSONObject | None = None,
    **more: Any,
) -> JSONObject:
    """Return a request for an object of the victim's namespace."""
    return {
        "uid": f"forged-{operation.lower()}-{name}",
        "operation": operation,
        "kind": {"group": gvr.group, "version": gvr.version, "kind": kind},
        "resource": {"group": gvr.group, "version": gvr.version, "resource": gvr.resource},
        "namespace": "victim",
        "name": name,
        "userInfo": user or ADMIN,
        "dryRun": False,
        **({"subResource": subresource} if subresource else {}),
        **more,
    }


def config_map(name: str, *, uid: str = "u", version: str = "2", role: str = WORD, **more: Any) -> JSONObject:
    """Return a ConfigMap as a forger makes it up."""
    metadata = {"name": name, "namespace": "victim", "uid": uid, "resourceVersion": version, **more}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"role": role}}


def changed(body: JSONObject, **data: Any) -> JSONObject:
    """Return an object with the forger's contents."""
    return {**body, **data}


def _of_config_maps(live: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    uid, version = live["metadata"]["uid"], live["metadata"]["resourceVersion"]
    lie = changed(live, data={"role": WORD})
    earlier = config_map("request-live", uid=uid, version=str(int(version) - 1))

    def ask(operation: str, name: str, **more: Any) -> JSONObject:
        return review("ConfigMap", CONFIG_MAPS, operation, name, **more)

    ghost = config_map("request-ghost")
    yield "CREATE of nothing", ask("CREATE", "request-ghost", object=ghost)
    yield "CREATE of another uid", ask("CREATE", "request-live", object=config_map("request-live"))
    yield "CREATE without a name", ask("CREATE", "", object=config_map("", generateName="request-"))
    yield (
        "UPDATE of nothing",
        ask("UPDATE", "request-ghost", object=ghost, oldObject=config_map("request-ghost", role="x")),
    )
    yield "UPDATE of another uid", ask("UPDATE", "request-live", object=config_map("request-live"), oldObject=earlier)
    yield "UPDATE with false contents", ask("UPDATE", "request-live", object=lie, oldObject=live)
    yield "UPDATE of a version that never was", ask("UPDATE", "request-live", object=lie, oldObject=earlier)
    yield "UPDATE without versions", ask("UPDATE", "request-live", object={**lie, "metadata": {}}, oldObject={})
    yield "UPDATE of another object", ask("UPDATE", "request-live", object=lie, oldObject=config_map("target"))
    yield "UPDATE of another kind", ask("UPDATE", "request-live", object={**lie, "kind": "Pod"}, oldObject=live)
    yield "UPDATE as a dry run", {**ask("UPDATE", "request-live", object=lie, oldObject=live), "dryRun": True}
    yield "DELETE of nothing", ask("DELETE", "request-ghost", object=None, oldObject=ghost)
    yield "DELETE of what stays", ask("DELETE", "request-live", object=None, oldObject=live)
    yield "DELETE of another uid", ask("DELETE", "request-live", object=None, oldObject=config_map("request-live"))
    yield "DELETE without an object", ask("DELETE", "request-live", object=None, oldObject=None)
    yield "CONNECT", ask("CONNECT", "request-live", object=lie)


def _of_subresources(pod: JSONObject, app: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    def ask(kind: str, operation: str, subresource: str, name: str = "request-pod", **more: Any) -> JSONObject:
        return review(kind, PODS, operation, name, subresource=subresource, **more)

    options = {"apiVersion": "v1", "kind": "PodExecOptions", "command": [WORD], "data": {"role": WORD}}
    status = changed(pod, status={"phase": WORD}, data={"role": WORD})
    metadata = {key: app["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": 1}}
    ghost = changed(pod, metadata={**pod["metadata"], "name": "request-ghost", "uid": "u"}, data={"role": WORD})
    yield "exec", ask("PodExecOptions", "CONNECT", "exec", object=options)
    yield "exec in nothing", ask("PodExecOptions", "CONNECT", "exec", "request-ghost", object=options)
    yield "status", ask("Pod", "UPDATE", "status", object=status, oldObject=pod)
    yield "status of nothing", ask("Pod", "UPDATE", "status", "request-ghost", object=ghost, oldObject=ghost)
    yield "ephemeralcontainers", ask("Pod", "UPDATE", "ephemeralcontainers", object=status, oldObject=pod)
    for kind, name in (("Eviction", "eviction"), ("Binding", "binding")):
        group = "policy" if kind == "Eviction" else ""
        made = {"apiVersion": "policy/v1" if group else "v1", "kind": kind, "data": {"role": WORD}}
        made["metadata"] = {"name": "request-pod", "namespace": "victim"}
        yield name, ask(kind, "CREATE", name, object=made)
    large = {**scale, "spec": {"replicas": 99}, "data": {"role": WORD}}
    yield (
        "scale",
        review("Scale", DEPLOYMENTS, "UPDATE", "request-app", subresource="scale", object=large, oldObject=scale),
    )


NAMES = (
    *("CREATE of nothing", "CREATE of another uid", "CREATE without a name"),
    *("UPDATE of nothing", "UPDATE of another uid", "UPDATE with false contents", "UPDATE of a version that never was"),
    *("UPDATE without versions", "UPDATE of another object", "UPDATE of another kind", "UPDATE as a dry run"),
    *("DELETE of nothing", "DELETE of what stays", "DELETE of another uid", "DELETE without an object", "CONNECT"),
    *("exec", "exec in nothing", "status", "status of nothing", "ephemeralcontainers"),
    *("eviction", "binding", "scale"),
)


def _id(name: str) -> str:
    return name.replace(" ", "-")


UNPROVABLE = ("CONNECT", "exec", "eviction", "binding")


@pytest.fixture(scope="module")
def forged(cluster: BackgroundCluster) -> dict[str, JSONObject]:
    """Make up a request for every operation."""
    live, pod, app = (
        cluster.get(*place)
        for place in (
            ("v1", "ConfigMap", "victim/request-live"),
            ("v1", "Pod", "victim/request-pod"),
            ("apps/v1", "Deployment", "victim/request-app"),
        )
    )
    assert live is not None and pod is not None and app is not None
    found = {**dict(_of_config_maps(live)), **dict(_of_subresources(pod, app))}
    assert NAMES == tuple(found)
    return found


@pytest.mark.parametrize("name", NAMES, ids=_id)
def test_nothing_follows_from_a_forged_review(
    cluster: BackgroundCluster, forged: dict[str, JSONObject], name: str
) -> None:
    """No object is made or changed, no UpdateRequest, report or event is left, by whatever policy."""
    before = state(cluster)
    Forger(cluster).post(forged[name])
    idle(cluster)
    time.sleep(1.0)
    idle(cluster)
    after = state(cluster)
    if name in UNPROVABLE:  # their events say what was asked, of a pod that exists
        after = {key: body for key, body in after.items() if key in before or not key.startswith("events/")}
    assert before == after


def test_what_the_api_server_stores_is_followed(cluster: BackgroundCluster) -> None:
    """Twin: created, updated, scaled and deleted objects make, change and report as the policies require."""
    cluster.apply(real("request-real", "user"))
    made = ("followed-request-real", "made-request-real-create", "cel-request-real")
    for name in made:
        cluster.until("v1", "ConfigMap", f"victim/{name}", lambda body: body["data"]["role"] == "user")
    cluster.until(
        "v1", "ConfigMap", "victim/target", lambda body: "CREATE request-real" in body["data"].get("last", "")
    )
    cluster.apply(real("request-real", "root"))
    cluster.until("v1", "ConfigMap", "victim/followed-request-real", lambda body: body["data"]["role"] == "root")
    cluster.until("v1", "ConfigMap", "victim/made-request-real-update", lambda body: body["data"]["role"] == "root")
    cluster.until("v1", "ConfigMap", "victim/target", lambda body: "UPDATE request-real" in body["data"]["last"])
    cluster.wait_for(lambda: "fail" in results(cluster, "request-real"), "a report")
    cluster.wait_for(lambda: "request-real" in reported(cluster) or None, "an event")
    cluster.delete("v1", "ConfigMap", "victim/request-real")
    cluster.until("v1", "ConfigMap", "victim/made-request-real-delete", lambda body: body["data"]["role"] == "root")
    cluster.wait_for(lambda: cluster.get("v1", "ConfigMap", "victim/followed-request-real") is None or None, "deletion")
    cluster.until("v1", "ConfigMap", "victim/target", lambda body: "DELETE request-real" in body["data"]["last"])
    scale = cluster.run(cluster.client.get(DEPLOYMENTS, "request-app", "victim", subresource="scale"))
    wanted = {"spec": {"replicas": int(scale["spec"].get("replicas", 1)) + 1}}
    cluster.run(cluster.client.patch(DEPLOYMENTS, "request-app", wanted, "victim", subresource="scale"))
    cluster.until("v1", "ConfigMap", "victim/target", lambda body: "UPDATE request-app" in body["data"]["last"])
    idle(cluster)


def real(name: str, role: str) -> str:
    """Return a ConfigMap to apply."""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: victim}}\ndata: {{role: {role}}}\n"


def results(cluster: BackgroundCluster, name: str) -> list[str]:
    """Return the results that reports hold for an object."""
    reports = cluster.run(cluster.client.list(POLICY_REPORTS, "victim"))["items"]
    return [item["result"] for body in reports if body["scope"]["name"] == name for item in body["results"]]


def reported(cluster: BackgroundCluster) -> set[str]:
    """Return the names of objects that events are related to."""
    events = cluster.run(cluster.client.list(EVENTS))["items"]
    return {(event.get("related") or {}).get("name", "") for event in events}


def test_a_user_who_may_not_send_a_request_did_not_send_it(cluster: BackgroundCluster) -> None:
    """A forger who was fast enough to see a real creation claims it for a user without rights: nothing is made."""
    before = state(cluster)
    live = cluster.get("v1", "ConfigMap", "victim/request-live")
    for user in ({"username": "mallory"}, {"username": "mallory", "groups": ["system:authenticated"]}):
        Forger(cluster).post(review("ConfigMap", CONFIG_MAPS, "CREATE", "request-live", object=live, user=user))
    idle(cluster)
    assert before == {key: body for key, body in state(cluster).items() if key in before or "/events/" in key}


WRITTEN = (
    *("CREATE of nothing", "CREATE of another uid", "UPDATE of nothing", "UPDATE of a version that never was"),
    *("DELETE of nothing", "DELETE of another uid", "UPDATE of another object"),
)


@pytest.mark.parametrize("name", WRITTEN, ids=_id)
@pytest.mark.parametrize("request_type", ["generate", "mutate"])
def test_an_update_request_of_a_stranger_is_a_question_too(
    cluster: BackgroundCluster, forged: dict[str, JSONObject], name: str, request_type: str
) -> None:
    """Whoever may write UpdateRequests makes one up: it is finished, and nothing else is done."""
    before = state(cluster)
    asked = forged[name]
    body = asked["object"] or asked["oldObject"]
    trigger = {"apiVersion": "v1", "kind": "ConfigMap", **{key: body["metadata"][key] for key in ("namespace", "name")}}
    rule = "make" if request_type == "generate" else "change"
    written = {
        "apiVersion": "kyverno.io/v2",
        "kind": "UpdateRequest",
        "metadata": {"generateName": "ur-", "namespace": "kyverno"},
        "spec": {
            "requestType": request_type,
            "policy": "forged-generates" if request_type == "generate" else "forged-changes",
            "rule": rule,
            "resource": trigger,
            "ruleContext": [{"rule": rule, "trigger": {**trigger, "uid": body["metadata"]["uid"]}}],
            "context": {
                "userInfo": {"userInfo": ADMIN, "clusterRoles": ["cluster-admin"]},
                "admissionRequestInfo": {"admissionRequest": asked, "operation": asked["operation"]},
            },
        },
    }
    made = cluster.run(cluster.client.create(UPDATE_REQUESTS, written, "kyverno"))["metadata"]["name"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generating, "_WAIT_SECONDS", 0.5)
        patch.setattr(mutating, "_CREATION_SECONDS", 0.5)
        cluster.wait_for(lambda: made not in [each["name"] for each in cluster.requests()] or None, "the end")
    idle(cluster)
    assert before == state(cluster)
