"""Existing objects in a cluster: mutated once, when a request triggers a rule or a policy changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.backgroundcluster import BackgroundCluster, background_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[BackgroundCluster]:
    """Run one cluster for all tests; each test has its own namespace and policies."""
    with background_cluster() as found:
        yield found


def config_map(place: str, labels: str = "", data: str = "a: b") -> str:
    """Return a ConfigMap."""
    namespace, name = place.split("/")
    return f"""---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: {namespace}, labels: {{{labels}}}}}
data: {{{data}}}
"""


def namespace(name: str, labels: str = "") -> str:
    """Return a Namespace."""
    return f"---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n"


def labels(body: Any) -> Any:
    """Return the labels of an object."""
    return body["metadata"].get("labels") or {}


def rule(name: str, own: str, mutate: str, *, match: str = "kinds: [ConfigMap], names: [trigger]") -> str:
    """Return a ClusterPolicy of one rule with triggers in one namespace."""
    return f"""---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: {name}}}
spec:
  rules:
  - name: change
    match: {{any: [{{resources: {{{match}, namespaces: [{own}]}}}}]}}
    mutate:
{mutate}
"""


def test_a_request_changes_the_targets_of_a_rule(cluster: BackgroundCluster) -> None:
    """Targets have names with wildcards, variables, a selector, preconditions and context."""
    cluster.apply(namespace("targets"))
    for name, more in (("app-1", "tier: web"), ("app-2", "tier: web, pinned: 'true'"), ("app-3", "tier: db")):
        cluster.apply(config_map(f"targets/{name}", more))
    cluster.apply(
        rule(
            "targets",
            "targets",
            """
      targets:
      - apiVersion: v1
        kind: ConfigMap
        namespace: "{{ request.object.metadata.namespace }}"
        name: "app-*"
        selector: {matchLabels: {tier: web}}
        context:
        - name: own
          variable: {jmesPath: target.metadata.name}
        preconditions:
          all:
          - {key: "{{ target.metadata.labels.pinned || 'false' }}", operator: NotEquals, value: "true"}
      patchStrategicMerge:
        metadata: {labels: {changed-by: "{{ request.object.data.by }}", own: "{{ own }}"}}""",
        )
    )
    cluster.apply(config_map("targets/trigger", data="by: alice"))
    found = cluster.until("v1", "ConfigMap", "targets/app-1", lambda body: "changed-by" in labels(body))
    assert {"tier": "web", "changed-by": "alice", "own": "app-1"} == labels(found)
    cluster.no_requests()
    for name in ("app-2", "app-3"):
        assert "changed-by" not in labels(cluster.get("v1", "ConfigMap", f"targets/{name}"))


def test_a_change_of_a_config_map_rolls_a_deployment_out(cluster: BackgroundCluster) -> None:
    """An annotation in the pod template holds the version of the ConfigMap."""
    cluster.apply(
        namespace("rollout")
        + config_map("rollout/trigger")
        + """---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: rollout}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""
    )
    cluster.apply(
        rule(
            "rollout",
            "rollout",
            """
      targets:
      - {apiVersion: apps/v1, kind: Deployment, namespace: rollout, name: web}
      patchStrategicMerge:
        spec: {template: {metadata: {annotations: {config: "{{ request.object.metadata.resourceVersion }}"}}}}""",
            match="kinds: [ConfigMap], names: [trigger], operations: [UPDATE]",
        )
    )
    cluster.apply(config_map("rollout/trigger", data="a: c"))
    found = cluster.until(
        "apps/v1", "Deployment", "rollout/web", lambda body: body["spec"]["template"]["metadata"].get("annotations")
    )
    assert found["metadata"]["generation"] == 2
    cluster.no_requests()


def test_changes_are_reported_on_the_trigger_or_on_the_target(cluster: BackgroundCluster) -> None:
    """A rule reports on its trigger, a MutatingPolicy on each changed object."""
    own = "reported"
    cluster.apply(namespace(own) + config_map(f"{own}/other"))
    target = f"      targets: [{{apiVersion: v1, kind: ConfigMap, namespace: {own}, name: other}}]\n"
    cluster.apply(rule(own, own, f"{target}      patchStrategicMerge: {{metadata: {{labels: {{a: b}}}}}}"))
    cluster.apply(config_map(f"{own}/trigger"))
    cluster.until("v1", "ConfigMap", f"{own}/other", lambda body: labels(body).get("a") == "b")
    cluster.apply(mutating(own, constraints("configmaps", names="other")))
    cluster.until("v1", "ConfigMap", f"{own}/other", lambda body: labels(body).get("seen"))
    reports = cluster.wait_for(
        lambda: len(found := cluster.list("reports.kyverno.io/v1", "EphemeralReport", own)) == 2 and found, "reports"
    )
    shown = {
        (each["metadata"]["ownerReferences"][0]["name"], result["source"], result["properties"]["patched-target"])
        for each in reports
        for result in each["spec"]["results"]
    }
    other = f"/v1, Kind=ConfigMap Name=other Namespace={own}"
    assert {("trigger", "kyverno", other), ("other", "KyvernoMutatingPolicy", other)} == shown


def test_a_deletion_triggers_rules_that_list_it(cluster: BackgroundCluster) -> None:
    """`request.object` holds the deleted object."""
    cluster.apply(namespace("deletion") + config_map("deletion/trigger") + config_map("deletion/other"))
    cluster.apply(
        rule(
            "deletion",
            "deletion",
            """
      targets: [{apiVersion: v1, kind: ConfigMap, namespace: deletion, name: other}]
      patchStrategicMerge: {metadata: {labels: {gone: "{{ request.object.metadata.name }}"}}}""",
            match="kinds: [ConfigMap], names: [trigger], operations: [DELETE]",
        )
    )
    cluster.delete("v1", "ConfigMap", "deletion/trigger")
    cluster.until("v1", "ConfigMap", "deletion/other", lambda body: labels(body).get("gone") == "trigger")


def test_a_policy_changes_what_exists_when_it_is_stored(cluster: BackgroundCluster) -> None:
    """Each existing trigger is evaluated without user and operation; an update of the policy repeats it."""
    cluster.apply(namespace("stored") + config_map("stored/trigger") + config_map("stored/other"))
    mutate = """
      mutateExistingOnPolicyUpdate: true
      targets: [{apiVersion: v1, kind: ConfigMap, namespace: stored, name: other}]
      patchStrategicMerge: {metadata: {labels: {seen: "{{ request.operation || 'BACKGROUND' }}-1"}}}"""
    cluster.apply(rule("stored", "stored", mutate))
    cluster.until("v1", "ConfigMap", "stored/other", lambda body: labels(body).get("seen") == "BACKGROUND-1")
    cluster.apply(rule("stored", "stored", mutate.replace("-1", "-2")))
    cluster.until("v1", "ConfigMap", "stored/other", lambda body: labels(body).get("seen") == "BACKGROUND-2")
    cluster.no_requests()


def test_one_update_request_covers_all_objects_of_a_rule(cluster: BackgroundCluster) -> None:
    """A stored policy has one UpdateRequest, whose size does not grow with the number of triggers (68130831)."""
    cluster.apply(namespace("many") + config_map("many/target"))
    cluster.apply("".join(config_map(f"many/trigger-{number}") for number in range(30)))
    mutate = """
      mutateExistingOnPolicyUpdate: true
      targets: [{apiVersion: v1, kind: ConfigMap, namespace: many, name: target}]
      patchStrategicMerge: {metadata: {labels: {seen: "{{ missing.data.a }}"}}}"""
    text = rule("many", "many", mutate, match='kinds: [ConfigMap], names: ["trigger-*"]')
    context = "context: [{name: missing, configMap: {name: missing, namespace: many}}]\n    mutate:"
    cluster.apply(text.replace("mutate:", context, 1))
    [found] = cluster.wait_for(lambda: [each for each in cluster.requests() if each.get("message")], "a reason to wait")
    assert ("many", True) == (found["policy"], len(json.dumps(found)) < 4096)
    cluster.apply(config_map("many/missing", data="a: b"))
    cluster.until("v1", "ConfigMap", "many/target", lambda body: labels(body).get("seen") == "b")
    cluster.no_requests()


def test_an_unchanged_spec_does_not_mutate_again(cluster: BackgroundCluster) -> None:
    """A new label on the policy does not start another evaluation of existing objects."""
    own = "labelled"
    cluster.apply(namespace(own) + config_map(f"{own}/trigger") + config_map(f"{own}/target"))
    text = rule(
        own,
        own,
        f"""
      mutateExistingOnPolicyUpdate: true
      targets: [{{apiVersion: v1, kind: ConfigMap, namespace: {own}, name: target}}]
      patchStrategicMerge: {{metadata: {{labels: {{seen: "true"}}}}}}""",
    )
    cluster.apply(text)
    cluster.until("v1", "ConfigMap", f"{own}/target", lambda body: labels(body).get("seen"))
    cluster.no_requests()
    cluster.apply(config_map(f"{own}/target"))
    cluster.apply(text.replace(f"metadata: {{name: {own}}}", f"metadata: {{name: {own}, labels: {{a: b}}}}"))
    cluster.wait_for(lambda: not cluster.requests() and cluster.cluster.running["background"].is_idle, "it is idle")
    assert {} == labels(cluster.get("v1", "ConfigMap", f"{own}/target"))


def test_subresources_of_targets_are_written_through_them(cluster: BackgroundCluster) -> None:
    """Examples are a scale, which has a kind of its own, and the status of a node."""
    cluster.apply(
        namespace("parts")
        + """---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: parts}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
---
apiVersion: v1
kind: Node
metadata: {name: gpu}
"""
    )
    cluster.apply(
        rule(
            "parts",
            "parts",
            """
      targets: [{apiVersion: apps/v1, kind: Deployment/scale, namespace: parts, name: web}]
      patchStrategicMerge: {spec: {replicas: 0}}""",
        ).rstrip()
        + """
  - name: capacity
    match: {any: [{resources: {kinds: [ConfigMap], names: [trigger], namespaces: [parts]}}]}
    mutate:
      targets: [{apiVersion: v1, kind: Node/status, name: gpu}]
      patchesJson6902: |-
        [{"op": "add", "path": "/status/capacity", "value": {"example.com/gpu": "2"}}]
"""
    )
    cluster.apply(config_map("parts/trigger"))
    cluster.until("apps/v1", "Deployment", "parts/web", lambda body: body["spec"]["replicas"] == 0)
    cluster.until("v1", "Node", "gpu", lambda body: (body.get("status") or {}).get("capacity"))


def test_a_target_that_fails_does_not_stop_the_others_and_is_tried_again(cluster: BackgroundCluster) -> None:
    """Status and event give the reason; targets that were written are not written again."""
    cluster.apply(namespace("failing") + config_map("failing/one") + config_map("failing/two"))
    cluster.apply(
        rule(
            "failing",
            "failing",
            """
      targets:
      - {apiVersion: v1, kind: ConfigMap, namespace: failing, name: one}
      - {apiVersion: v1, kind: ConfigMap, namespace: failing, name: two}
      patchesJson6902: |-
        [{"op": "add", "path": "/data/list", "value": "{{ target.data.list || '' }}x"},
         {"op": "test", "path": "/data/a", "value": "b"}]""",
        )
    )
    cluster.apply(config_map("failing/two", data="a: wrong"))
    cluster.apply(config_map("failing/trigger"))
    cluster.until("v1", "ConfigMap", "failing/one", lambda body: body["data"].get("list"))
    failed = cluster.wait_for(
        lambda: next((each for each in cluster.requests() if each.get("retryCount", 0) >= 2), None), "it is retried"
    )
    assert ("Failed", "failing/ConfigMap/two") == (failed["state"], failed["message"].partition(":")[0])
    events = [each for each in cluster.events() if each["reason"] == "PolicyError"]
    assert ["two"] == [each["related"]["name"] for each in events if each["regarding"]["name"] == "failing"]
    cluster.apply(config_map("failing/two"))
    cluster.until("v1", "ConfigMap", "failing/two", lambda body: body["data"].get("list") == "x")
    cluster.no_requests()
    assert "x" == cluster.get("v1", "ConfigMap", "failing/one")["data"]["list"]


def mutating(name: str, spec: str, *, kind: str = "MutatingPolicy", own: str = "") -> str:
    """Return a MutatingPolicy that labels existing objects."""
    return f"""---
apiVersion: policies.kyverno.io/v1
kind: {kind}
metadata: {{name: {name}{f", namespace: {own}" if own else ""}}}
spec:
  evaluation: {{mutateExisting: {{enabled: true}}}}
{spec}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{{metadata: Object.metadata{{labels: {{"seen": request.userInfo.username != "" ? "user" : "none"}}}}}}
"""


def constraints(resource: str, *, names: str, field: str = "matchConstraints", operations: str = "'*'") -> str:
    """Return matchConstraints for one core resource."""
    return f"""
  {field}:
    resourceRules:
    - {{apiGroups: [''], apiVersions: [v1], operations: [{operations}], resources: [{resource}],
       resourceNames: [{names}]}}"""


def test_a_mutating_policy_changes_what_it_matches_when_it_is_stored(cluster: BackgroundCluster) -> None:
    """Match conditions apply to each object; a NamespacedMutatingPolicy covers its own namespace only."""
    for own in ("cel-one", "cel-two"):
        cluster.apply(namespace(own) + config_map(f"{own}/settings") + config_map(f"{own}/kept", "pinned: 'true'"))
    conditions = (
        "\n  matchConditions: [{name: not-pinned, expression: \"!('pinned' in object.metadata.?labels.orValue({}))\"}]"
    )
    spec = constraints("configmaps", names="settings, kept") + conditions
    cluster.apply(mutating("one", spec, kind="NamespacedMutatingPolicy", own="cel-one"))
    cluster.until("v1", "ConfigMap", "cel-one/settings", lambda body: labels(body).get("seen") == "none")
    cluster.no_requests()
    assert {"pinned": "true"} == labels(cluster.get("v1", "ConfigMap", "cel-one/kept"))
    assert {} == labels(cluster.get("v1", "ConfigMap", "cel-two/settings"))


def test_conditions_on_the_user_see_the_user_of_the_request(cluster: BackgroundCluster) -> None:
    """The rule runs later under another account, but sees name and roles of the requester."""
    own = "by-user"
    cluster.apply(namespace(own) + config_map(f"{own}/admins") + config_map(f"{own}/nobody"))
    for name, subject in (("admins", "kubernetes-admin"), ("nobody", "alice")):
        mutate = f"""
      targets: [{{apiVersion: v1, kind: ConfigMap, namespace: {own}, name: {name}}}]
      patchStrategicMerge: {{metadata: {{labels: {{by: "{{{{ request.userInfo.username }}}}"}}}}}}"""
        text = rule(f"{own}-{name}", own, mutate)
        matched = f"namespaces: [{own}]}}, subjects: [{{kind: User, name: {subject}}}]}}]}}"
        cluster.apply(
            text.replace(f"namespaces: [{own}]}}}}]}}", matched).replace("spec:", "spec:\n  background: false")
        )
    cluster.apply(config_map(f"{own}/trigger"))
    cluster.until("v1", "ConfigMap", f"{own}/admins", lambda body: labels(body).get("by") == "kubernetes-admin")
    cluster.no_requests()
    assert {} == labels(cluster.get("v1", "ConfigMap", f"{own}/nobody"))


@pytest.mark.parametrize(
    ("own", "targets"),
    [
        ("by-rules", constraints("configmaps", names="by-rules", field="targetMatchConstraints")),
        (
            "by-expression",
            "\n  targetMatchConstraints:\n"
            "    expression: resource.get('v1', 'configmaps', object.metadata.namespace, 'by-expression')",
        ),
    ],
)
def test_a_request_changes_the_targets_of_a_mutating_policy(cluster: BackgroundCluster, own: str, targets: str) -> None:
    """Targets come from rules or from an expression, which sees the request and its user."""
    cluster.apply(namespace(own) + config_map(f"{own}/{own}"))
    cluster.apply(mutating(own, constraints("secrets", names="token", operations="CREATE") + targets))
    cluster.no_requests()
    secret = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: token, namespace: {own}}}\n"
    cluster.apply(secret)
    cluster.until("v1", "ConfigMap", f"{own}/{own}", lambda body: labels(body).get("seen") == "user")
    cluster.no_requests()


def test_a_stored_policy_works_for_the_triggers_that_exist(cluster: BackgroundCluster) -> None:
    """The expression that selects targets is evaluated once for each trigger."""
    own = "existing-triggers"
    cluster.apply(namespace(own) + config_map(f"{own}/one") + config_map(f"{own}/two"))
    for name in ("one", "none"):
        cluster.apply(f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: {own}}}\n")
    expression = f"resource.get('v1', 'configmaps', '{own}', object.metadata.name)"
    targets = f'\n  targetMatchConstraints: {{expression: "{expression}"}}'
    spec = constraints("secrets", names="one") + targets
    cluster.apply(mutating(own, spec))
    cluster.until("v1", "ConfigMap", f"{own}/one", lambda body: labels(body).get("seen") == "none")
    cluster.no_requests()
    assert {} == labels(cluster.get("v1", "ConfigMap", f"{own}/two"))


def test_filtered_objects_are_not_changed_by_mutating_policies(cluster: BackgroundCluster) -> None:
    """`resourceFilters` exclude them, except where a rule names targets."""
    own = "filtered"
    settings = cluster.get("v1", "ConfigMap", "kyverno/kyverno")
    filters = f"{settings['data'].get('resourceFilters', '')} [ConfigMap,{own},kept]"
    text = f"""---
apiVersion: v1
kind: ConfigMap
metadata: {{name: kyverno, namespace: kyverno}}
data: {{resourceFilters: "{filters}"}}
"""
    cluster.apply(text + namespace(own) + config_map(f"{own}/kept") + config_map(f"{own}/settings"))
    spec = constraints("configmaps", names="settings, kept")
    cluster.apply(mutating(own, spec, kind="NamespacedMutatingPolicy", own=own))
    cluster.until("v1", "ConfigMap", f"{own}/settings", lambda body: labels(body).get("seen"))
    cluster.no_requests()
    assert {} == labels(cluster.get("v1", "ConfigMap", f"{own}/kept"))


def test_a_deleted_policy_has_no_work_left(cluster: BackgroundCluster) -> None:
    """Its requests are completed, and so are those for a removed rule."""
    cluster.apply(
        rule(
            "left",
            "left",
            "      targets: [{apiVersion: v1, kind: ConfigMap, namespace: left, name: x}]\n"
            "      patchStrategicMerge: {metadata: {labels: {a: b}}}",
        )
    )
    for number, (policy, name, kind) in enumerate(
        (("gone", "x", "mutate"), ("left", "gone", "mutate"), ("gone", "", "cel-mutate"))
    ):
        cluster.apply(f"""---
apiVersion: kyverno.io/v2
kind: UpdateRequest
metadata: {{name: ur-left-{number}, namespace: kyverno}}
spec: {{requestType: {kind}, policy: {policy}, rule: "{name}", resource: {{}}, context: {{}}, deleteDownstream: false}}
""")
    cluster.no_requests()
