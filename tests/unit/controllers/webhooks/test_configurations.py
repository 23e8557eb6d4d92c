"""Webhook configurations: the rules, selectors, conditions and paths that follow from policies."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.compiler.compile import compile_document
from pyverno.controllers.state.policystore import own_paths
from pyverno.controllers.webhooks.configurations import Endpoint, Settings, Sources, configurations
from pyverno.controllers.webhooks.rules import Entry, unite, write_rules
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.yaml.documents import Document
from pyverno.policy.cel.policies import CelPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.webhook.configuration import Configuration

PATTERN: JSONObject = {"validate": {"pattern": {"metadata": {"labels": {"a": "?*"}}}}}
PATCH: JSONObject = {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}}
ALL = ["CONNECT", "CREATE", "DELETE", "UPDATE"]


def rule(kinds: list[str], action: JSONObject = PATTERN, **more: Any) -> JSONObject:
    """Return a rule for kinds."""
    return {"name": "rule", "match": {"any": [{"resources": {"kinds": kinds}}]}, **action, **more}


def legacy(
    name: str, *rules: JSONObject, kind: str = "ClusterPolicy", is_valid: bool = True, **spec: Any
) -> ClusterPolicy:
    """Return a decoded policy without autogen; a stored policy may be invalid."""
    metadata = {"name": name, "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}}
    if kind == "Policy":
        metadata["namespace"] = "team"
    found = compile_document(
        Document(
            {
                "apiVersion": "kyverno.io/v1",
                "kind": kind,
                "metadata": metadata,
                "spec": {"rules": list(rules), "background": False, **spec},
            }
        )
    )
    assert is_valid == (found.errors == ())
    assert isinstance(found.written, ClusterPolicy)
    return found.written


def cel(name: str, kind: str = "ValidatingPolicy", resources: str = "services", **spec: Any) -> CelPolicy:
    """Return a decoded CEL policy for a core resource."""
    constraints = {
        "resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resources]}
        ],
        **spec.pop("matchConstraints", {}),
    }
    metadata = {"name": name, **({"namespace": "team"} if kind.startswith("Namespaced") else {})}
    body = {"validations": [{"expression": "true"}]} if "Validating" in kind else {}
    found = compile_document(
        Document(
            {
                "apiVersion": "policies.kyverno.io/v1",
                "kind": kind,
                "metadata": metadata,
                "spec": {"matchConstraints": constraints, **body, **spec},
            }
        )
    )
    assert () == found.errors
    assert isinstance(found.written, CelPolicy)
    return found.written


def hooks(*policies: ClusterPolicy | CelPolicy, **more: Any) -> dict[str, JSONObject]:
    """Return all webhooks of both configurations by name."""
    sources = Sources(
        legacy=tuple(policy for policy in policies if isinstance(policy, ClusterPolicy)),
        cel=tuple(policy for policy in policies if isinstance(policy, CelPolicy)),
        kinds=BUILTIN_KINDS,
        endpoint=Endpoint(ca_bundle=b"CA"),
        **more,
    )
    return {hook["name"]: hook for found in configurations(sources) for hook in found["webhooks"]}


def test_a_validating_policy_is_registered_for_its_kinds() -> None:
    """The default is all four operations; Pods include their ephemeral containers."""
    [(name, hook)] = hooks(legacy("check", rule(["Pod"]))).items()
    assert "validate.kyverno.svc-fail" == name
    assert {
        "name": "validate.kyverno.svc-fail",
        "clientConfig": {
            "service": {"name": "kyverno-svc", "namespace": "kyverno", "path": "/validate/fail", "port": 443},
            "caBundle": "Q0E=",
        },
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ALL,
                "resources": ["pods", "pods/ephemeralcontainers"],
                "scope": "Namespaced",
            }
        ],
        "failurePolicy": "Fail",
        "sideEffects": "NoneOnDryRun",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
        "matchPolicy": "Equivalent",
        "objectSelector": {},
    } == hook


def test_a_mutating_policy_is_registered_for_create_and_update() -> None:
    """Its webhook is a mutating one and may be reinvoked."""
    [hook] = hooks(legacy("add", rule(["ConfigMap"], PATCH))).values()
    assert ("mutate.kyverno.svc-fail", "IfNeeded", ["CREATE", "UPDATE"]) == (
        hook["name"],
        hook["reinvocationPolicy"],
        hook["rules"][0]["operations"],
    )


def test_failure_policies_never_share_a_webhook() -> None:
    """`forceFailurePolicyIgnore` sets Ignore on all of them."""
    policies = (legacy("a", rule(["Pod"])), legacy("b", rule(["Secret"]), failurePolicy="Ignore"))
    assert {"validate.kyverno.svc-fail": "Fail", "validate.kyverno.svc-ignore": "Ignore"} == {
        name: hook["failurePolicy"] for name, hook in hooks(*policies).items()
    }
    [(name, hook)] = hooks(*policies, settings=Settings(forces_ignore=True)).items()
    assert ("validate.kyverno.svc-ignore", "Ignore") == (name, hook["failurePolicy"])


def test_copies_for_pod_controllers_are_registered_too() -> None:
    """A policy for Pods denies the Deployment that would create them."""
    policy = compile_document(
        Document(
            {
                "apiVersion": "kyverno.io/v1",
                "kind": "ClusterPolicy",
                "metadata": {"name": "check"},
                "spec": {"rules": [rule(["Pod"])]},
            }
        )
    ).written
    assert isinstance(policy, ClusterPolicy)
    [hook] = hooks(policy).values()
    assert {
        ("", "pods"),
        ("", "pods/ephemeralcontainers"),
        ("", "replicationcontrollers"),
        ("apps", "daemonsets"),
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("batch", "cronjobs"),
        ("batch", "jobs"),
    } == {(each["apiGroups"][0], resource) for each in hook["rules"] for resource in each["resources"]}


OPERATIONS: list[tuple[JSONObject, list[str]]] = [
    ({"match": {"any": [{"resources": {"kinds": ["Secret"], "operations": ["DELETE"]}}]}}, ["DELETE"]),
    (
        {"exclude": {"any": [{"resources": {"kinds": ["Secret"], "operations": ["CONNECT", "DELETE"]}}]}},
        ["CREATE", "UPDATE"],
    ),
    ({"exclude": {"any": [{"resources": {"kinds": ["Secret"], "operations": ["DELETE"], "names": ["x"]}}]}}, ALL),
    ({"exclude": {"any": [{"resources": {"kinds": ["Pod"], "operations": ["DELETE"]}}]}}, ALL),
    ({"exclude": {"all": [{"resources": {"kinds": ["Secret"], "operations": ["DELETE"]}}]}}, ALL),
]


@pytest.mark.parametrize(("more", "expected"), OPERATIONS)
def test_operations_come_from_match_and_exclude(more: JSONObject, expected: list[str]) -> None:
    """Only an exclusion of kinds and operations alone removes operations."""
    [hook] = hooks(legacy("check", rule(["Secret"], **more))).values()
    assert expected == hook["rules"][0]["operations"]


KINDS: list[tuple[str, str, str, str]] = [
    ("*", "*", "*", "*"),
    ("*/*", "*", "*/*", "*"),
    ("*/scale", "*", "*/scale", "*"),
    ("Deployment/scale", "apps", "deployments/scale", "Namespaced"),
    ("apps/v1/StatefulSet", "apps", "statefulsets", "Namespaced"),
    ("Namespace", "", "namespaces", "*"),
    ("batch/*/CronJob", "batch", "cronjobs", "Namespaced"),
]


@pytest.mark.parametrize(("kind", "group", "resource", "scope"), KINDS)
def test_kinds_become_resources(kind: str, group: str, resource: str, scope: str) -> None:
    """Wildcards stay wildcards; other kinds are resolved by discovery."""
    [hook] = hooks(legacy("check", rule([kind]))).values()
    assert {(group, resource, scope)} == {
        (each["apiGroups"][0], name, each["scope"])
        for each in hook["rules"]
        for name in each["resources"]
        if name != "pods/ephemeralcontainers"
    }


@pytest.mark.parametrize(
    ("kind", "versions"),
    [
        ("HorizontalPodAutoscaler", ["v1", "v2"]),
        ("autoscaling/*/HorizontalPodAutoscaler", ["v1", "v2"]),
        ("v1/HorizontalPodAutoscaler", ["v1"]),
    ],
)
def test_a_kind_without_a_version_is_registered_in_all_served_versions(kind: str, versions: list[str]) -> None:
    """Policies receive objects in the version of the request."""
    [hook] = hooks(legacy("check", rule([kind]))).values()
    assert versions == sorted(version for each in hook["rules"] for version in each["apiVersions"])


def test_a_kind_that_is_not_served_has_no_rule() -> None:
    """The API server accepts the configuration without it, and the policy's status reports it."""
    policy = legacy("check", rule(["Nonesuch"]))
    assert {} == hooks(policy)


def test_a_generate_rule_watches_triggers_and_what_it_made() -> None:
    """CONNECT applies to triggers only."""
    generate = {
        "generate": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "b", "data": {"data": {}}}
    }
    [hook] = hooks(legacy("make", rule(["Namespace"], generate))).values()
    assert {("namespaces", *ALL), ("configmaps", "CREATE", "DELETE", "UPDATE")} == {
        (each["resources"][0], *each["operations"]) for each in hook["rules"]
    }


def test_match_conditions_give_a_path_of_its_own() -> None:
    """Conditions of the ConfigMap are not added there."""
    condition = {"name": "not-leases", "expression": "request.resource.resource != 'leases'"}
    policy = legacy("check", rule(["Secret"]), kind="Policy", webhookConfiguration={"matchConditions": [condition]})
    general = Configuration.read({"matchConditions": '[{"name": "general", "expression": "true"}]'})
    found = hooks(policy, legacy("other", rule(["Pod"])), configuration=general)
    own = found["validate.kyverno.svc-fail-finegrained-team-check"]
    assert "/validate/fail/finegrained/team/check" == own["clientConfig"]["service"]["path"]
    assert [condition] == own["matchConditions"]
    assert [{"name": "general", "expression": "true"}] == found["validate.kyverno.svc-fail"]["matchConditions"]
    assert {("Policy", "team/check")} == own_paths([policy])


def test_the_longest_timeout_of_a_webhook_counts_up_to_thirty() -> None:
    """A policy can only raise it above the default."""
    slow = legacy("slow", rule(["Pod"]), webhookConfiguration={"timeoutSeconds": 25})
    quick = legacy("quick", rule(["Pod"]), webhookConfiguration={"timeoutSeconds": 3})
    assert [25] == [hook["timeoutSeconds"] for hook in hooks(slow, quick).values()]
    assert [10] == [hook["timeoutSeconds"] for hook in hooks(quick).values()]


def test_policies_without_admission_have_no_webhook() -> None:
    """They are for background scans only."""
    assert {} == hooks(
        legacy("check", rule(["Pod"]), admission=False, background=True),
        cel("c", evaluation={"admission": {"enabled": False}}),
    )


def test_cel_policies_share_a_webhook_by_selectors_and_failure_policy() -> None:
    """The path names all policies with these selectors; the rules are those with the failure policy."""
    found = hooks(cel("b"), cel("a", failurePolicy="Ignore", resources="secrets"))
    assert {"vpol.validate.kyverno.svc-fail", "vpol.validate.kyverno.svc-ignore"} == set(found)
    assert {"/vpol/a/b"} == {hook["clientConfig"]["service"]["path"] for hook in found.values()}
    assert ["secrets"] == found["vpol.validate.kyverno.svc-ignore"]["rules"][0]["resources"]
    assert "timeoutSeconds" not in found["vpol.validate.kyverno.svc-fail"]


def test_cel_policies_with_other_selectors_have_another_webhook() -> None:
    """Their names contain a digest of the selectors."""
    labelled = {"namespaceSelector": {"matchLabels": {"env": "prod"}}}
    found = hooks(cel("a"), cel("b", matchConstraints=labelled))
    assert 2 == len(found)
    assert all(len(name) == len("vpol.validate.kyverno.svc-fail-12345678") for name in found)


@pytest.mark.parametrize(
    ("spec", "key", "value"),
    [
        ({"webhookConfiguration": {"timeoutSeconds": 7}}, "timeoutSeconds", 7),
        ({"matchConstraints": {"matchPolicy": "Exact"}}, "matchPolicy", "Exact"),
    ],
)
def test_cel_policies_with_own_settings_have_their_own_webhook(spec: JSONObject, key: str, value: Any) -> None:
    """Policies with different timeouts or match policies cannot share a webhook."""
    found = hooks(cel("a", **spec), cel("b"))
    assert value == found["vpol.validate.kyverno.svc-fail-finegrained-a"][key]
    assert key not in found["vpol.validate.kyverno.svc-fail"]


def test_namespaced_cel_policies_are_registered_for_their_namespace_only() -> None:
    """The selector uses the name label that every namespace has."""
    [(name, hook)] = hooks(cel("a", kind="NamespacedValidatingPolicy")).items()
    assert ("nvpol.validate.kyverno.svc-fail", "/nvpol/a") == (name, hook["clientConfig"]["service"]["path"])
    assert {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team"]}]} == hook[
        "namespaceSelector"
    ]


def test_cel_copies_for_pod_controllers_are_registered_too() -> None:
    """Rules are sorted and unique."""
    [hook] = hooks(cel("a", resources="pods"), cel("b", resources="pods")).values()
    assert [[""], ["apps"], ["batch"], ["batch"]] == [each["apiGroups"] for each in hook["rules"]]
    assert [
        ["pods"],
        ["daemonsets", "deployments", "replicasets", "statefulsets"],
        ["cronjobs"],
        ["jobs"],
    ] == [each["resources"] for each in hook["rules"]]


def conditions(hook: JSONObject) -> list[tuple[str, str]]:
    """Return names and expressions of the match conditions of a webhook."""
    return [(each["name"], each["expression"]) for each in hook.get("matchConditions") or ()]


def conditioned(*expressions: str, **more: Any) -> CelPolicy:
    """Return a policy with match conditions `c0`, `c1` and so on."""
    written = [{"name": f"c{index}", "expression": text} for index, text in enumerate(expressions)]
    return cel("a", matchConditions=written, **more)


def test_conditions_that_an_api_server_knows_make_a_webhook_of_its_own() -> None:
    """Conditions of the ConfigMap are not added, and conditions on the namespace stay with the engine."""
    general = Configuration.read({"matchConditions": '[{"name": "all", "expression": "true"}]'})
    policy = conditioned("request.userInfo.username != 'root'", "namespaceObject.metadata.name == 'x'")
    found = hooks(policy, cel("b"), configuration=general)
    own = found["vpol.validate.kyverno.svc-fail-finegrained-a"]
    assert ("/vpol/a", [("c0", "request.userInfo.username != 'root'")]) == (
        own["clientConfig"]["service"]["path"],
        conditions(own),
    )
    assert ("/vpol/b", []) == (
        found["vpol.validate.kyverno.svc-fail"]["clientConfig"]["service"]["path"],
        conditions(found["vpol.validate.kyverno.svc-fail"]),
    )


@pytest.mark.parametrize(
    "expressions",
    [
        ("true", "image('nginx').registry() == 'x'"),
        ("true", "request.object.metadata.name == 'x'"),
    ],
)
def test_conditions_that_an_api_server_does_not_know_are_left_to_the_engine(expressions: tuple[str, ...]) -> None:
    """One condition with a Kyverno function, the request object or variables moves all conditions to the engine."""
    policy = conditioned(*expressions)
    assert {"vpol.validate.kyverno.svc-fail": []} == {name: conditions(hook) for name, hook in hooks(policy).items()}


def test_conditions_with_names_that_kubernetes_does_not_take_are_left_to_the_engine() -> None:
    """Policies may use any name, and prefixes for pod controllers can make a name too long."""
    written = [{"name": "not a name", "expression": "true"}]
    assert {"vpol.validate.kyverno.svc-fail"} == set(hooks(cel("a", matchConditions=written)))
    for length, expected in ((63 - len("autogen-cronjobs-"), 3), (63, 0)):
        long = [{"name": "n" * length, "expression": "true"}]
        [(name, hook)] = hooks(cel("a", resources="pods", matchConditions=long)).items()
        assert ("vpol.validate.kyverno.svc-fail-finegrained-a", expected) == (name, len(conditions(hook)))


def test_conditions_with_variables_are_left_to_the_engine() -> None:
    """Match conditions of a webhook cannot have variables."""
    policy = conditioned(
        "variables.x == 1",
        kind="MutatingPolicy",
        variables=[{"name": "x", "expression": "1"}],
        mutations=[{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/x'}]"}}],
    )
    assert {"mpol.validate.kyverno.svc-fail": []} == {name: conditions(hook) for name, hook in hooks(policy).items()}


def test_conditions_about_namespaces_alone_still_make_a_webhook_of_its_own() -> None:
    """That webhook has no conditions: an API server gives webhooks no namespace (2be74f07)."""
    [(name, hook)] = hooks(conditioned("namespaceObject.metadata.name == 'x'")).items()
    assert ("vpol.validate.kyverno.svc-fail-finegrained-a", []) == (name, conditions(hook))


def test_a_policy_for_pods_has_its_conditions_for_every_kind_that_it_matches() -> None:
    """Each condition holds for objects of other kinds, and its paths are adjusted like those of autogen."""
    [hook] = hooks(conditioned("object.spec.hostNetwork == true", resources="pods")).values()
    pod = "(object.apiVersion == 'v1' && object.kind =='Pod')"
    cron = "(object.apiVersion == 'batch/v1' && object.kind =='CronJob')"
    controllers = " || ".join(
        f"(object.apiVersion == '{group}/v1' && object.kind =='{kind}')"
        for group, kind in (
            ("apps", "DaemonSet"),
            ("apps", "Deployment"),
            ("apps", "ReplicaSet"),
            ("apps", "StatefulSet"),
            ("batch", "Job"),
        )
    )
    assert [
        ("autogen-c0", f"!({pod}) || (object.spec.hostNetwork == true)"),
        ("autogen-cronjobs-c0", f"!({cron}) || (object.spec.jobTemplate.spec.template.spec.hostNetwork == true)"),
        ("autogen-defaults-c0", f"!({controllers}) || (object.spec.template.spec.hostNetwork == true)"),
    ] == conditions(hook)


def test_a_request_without_object_passes_the_conditions_on_kinds() -> None:
    """Otherwise each deletion would be an evaluation error, which `Fail` turns into a denial."""
    deleting = {
        "resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "DELETE"], "resources": ["pods"]}
        ]
    }
    [hook] = hooks(conditioned("true", matchConstraints=deleting)).values()
    assert {"object == null || !("} == {text[:20] for _, text in conditions(hook)}


def test_a_synchronizing_policy_filters_creations_only() -> None:
    """An update that no longer matches must reach the webhook, so that generated objects are deleted."""
    generate = {"generate": [{"expression": "generator.Apply('x', [])"}]}
    for evaluation, expected in (
        ({"synchronize": {"enabled": True}}, "request.operation != 'CREATE' || (true)"),
        ({}, "true"),
    ):
        policy = conditioned("true", kind="GeneratingPolicy", evaluation=evaluation, **generate)
        [(name, hook)] = hooks(policy).items()
        assert ("gpol.validate.kyverno.svc-ignore-finegrained-a", [("c0", expected)]) == (name, conditions(hook))
        assert ALL == hook["rules"][0]["operations"]


def test_more_conditions_than_an_api_server_takes_are_left_to_the_engine() -> None:
    """The limit is 64 conditions for one webhook, including the one on bootstrap resources."""
    [most] = hooks(conditioned(*["true"] * 64)).values()
    [many] = hooks(conditioned(*["true"] * 65)).values()
    assert (64, 0) == (len(conditions(most)), len(conditions(many)))
    settings = Settings(excludes_bootstrap=True)
    for number, expected in ((63, 64), (64, 1)):
        [hook] = hooks(conditioned(*["true"] * number), settings=settings).values()
        assert expected == len(conditions(hook))


def test_every_webhook_has_a_name_of_its_own() -> None:
    """The API server rejects a configuration with duplicate names."""
    images: dict[str, Any] = {
        "matchImageReferences": [{"glob": "*"}],
        "attestors": [],
        "validations": [{"expression": "true"}],
    }
    policies = [cel("a", kind, **images) for kind in ("ImageValidatingPolicy", "NamespacedImageValidatingPolicy")]
    names = [
        hook["name"]
        for found in configurations(Sources(cel=tuple(policies), kinds=BUILTIN_KINDS))
        for hook in found["webhooks"]
    ]
    assert 4 == len(set(names)) == len(names)
    assert {"ivpol.validate.kyverno.svc-fail", "ivpol.mutate.kyverno.svc-fail"} < set(names)
    long = cel("a" * 240, webhookConfiguration={"timeoutSeconds": 3})
    [name] = hooks(long)
    assert 253 == len(name)


def test_selectors_of_the_config_map_are_merged() -> None:
    """Labels are united; on a conflict the ConfigMap wins."""
    general = Configuration.read({"webhooks": '{"namespaceSelector": {"matchLabels": {"env": "any", "x": "y"}}}'})
    labelled = {"namespaceSelector": {"matchLabels": {"env": "prod", "tier": "a"}}}
    [hook] = hooks(cel("a", matchConstraints=labelled), configuration=general).values()
    assert {"matchLabels": {"env": "any", "tier": "a", "x": "y"}} == hook["namespaceSelector"]


def test_bootstrap_resources_can_be_left_alone() -> None:
    """A cluster whose replicas are all gone must be able to start again."""
    found = hooks(
        legacy("a", rule(["*"])),
        legacy("b", rule(["*"]), failurePolicy="Ignore"),
        settings=Settings(excludes_bootstrap=True),
    )
    assert ["kyverno-exclude-bootstrap-resources"] == [
        each["name"] for each in found["validate.kyverno.svc-fail"]["matchConditions"]
    ]
    assert "matchConditions" not in found["validate.kyverno.svc-ignore"]


def test_without_updates_fixed_webhooks_cover_everything() -> None:
    """Four fixed webhooks replace those of policies."""
    found = hooks(settings=Settings(updates=False))
    assert {
        "mutate.kyverno.svc-fail",
        "mutate.kyverno.svc-ignore",
        "validate.kyverno.svc-fail",
        "validate.kyverno.svc-ignore",
    } == set(found)
    assert {"*/*"} == {hook["rules"][0]["resources"][0] for hook in found.values()}


def test_a_server_outside_of_the_cluster_is_named_by_url() -> None:
    """This serves development and the sandbox."""
    endpoint = Endpoint(server="127.0.0.1:9443", ca_bundle=b"CA")
    assert {"url": "https://127.0.0.1:9443/validate", "caBundle": "Q0E="} == endpoint.client_config("/validate")


def test_the_objects_carry_labels_and_annotations_of_the_config_map() -> None:
    """One label identifies them when they are deleted."""
    configuration = Configuration.read({"webhookLabels": '{"a": "b"}', "webhookAnnotations": '{"c": "d"}'})
    validating, mutating = configurations(Sources(configuration=configuration))
    assert {"a": "b", "webhook.kyverno.io/managed-by": "kyverno"} == validating["metadata"]["labels"]
    assert {"c": "d"} == mutating["metadata"]["annotations"]
    assert ("ValidatingWebhookConfiguration", []) == (validating["kind"], validating["webhooks"])


def test_entries_that_a_wider_one_covers_are_dropped() -> None:
    """An entry covers only its own operation, with the wildcards of Kubernetes."""
    pods = Entry("", "v1", "pods", "", "Namespaced", "CREATE")
    status = pods._replace(subresource="status")
    everything = Entry("*", "*", "*", "*", "*", "CREATE")
    assert {everything} == unite([pods, status, everything])
    main = everything._replace(subresource="")
    assert {main, status} == unite([pods, status, main])
    below = pods._replace(subresource="*")
    assert {pods, below} == unite([pods, status, below])
    delete = pods._replace(operation="DELETE")
    assert {everything, delete} == unite([everything, delete])
    assert [["CREATE", "DELETE"]] == [each["operations"] for each in write_rules([pods, delete])]


def test_a_namespaced_policy_keeps_to_its_namespace_whatever_it_selects() -> None:
    """The policy's own namespaceSelector has no effect; the one of the ConfigMap is added."""
    general = Configuration.read({"webhooks": '{"namespaceSelector": {"matchLabels": {"env": "prod"}}}'})
    labelled = {"namespaceSelector": {"matchLabels": {"other": "yes"}}}
    [hook] = hooks(
        cel("a", kind="NamespacedValidatingPolicy", matchConstraints=labelled), configuration=general
    ).values()
    own = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team"]}
    assert {"matchLabels": {"env": "prod"}, "matchExpressions": [own]} == hook["namespaceSelector"]


def test_rules_of_cel_policies_are_copied_without_names_and_exclusions() -> None:
    """The copy has group, versions, resources, operations and scope; the engine checks names and exclusions."""
    written = {
        "apiGroups": ["apps", ""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE", "CREATE"],
        "resources": ["pods/exec", "deployments"],
        "resourceNames": ["web"],
        "scope": "Namespaced",
    }
    excluded = [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}]
    constraints = {"resourceRules": [written], "excludeResourceRules": excluded}
    [hook] = hooks(cel("a", matchConstraints=constraints)).values()
    assert [
        {
            "apiGroups": ["", "apps"],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["deployments", "pods/exec"],
            "scope": "Namespaced",
        }
    ] == hook["rules"]


def test_without_reports_validation_has_no_side_effects() -> None:
    """This applies to rules, in shared webhooks or not; CEL policies may have side effects."""
    settings = Settings(reports_admission=False)
    found = hooks(legacy("a", rule(["Pod"])), legacy("b", rule(["Pod"], PATCH)), cel("c"), settings=settings)
    assert {
        "validate.kyverno.svc-fail": "None",
        "mutate.kyverno.svc-fail": "NoneOnDryRun",
        "vpol.validate.kyverno.svc-fail": "NoneOnDryRun",
    } == {name: hook["sideEffects"] for name, hook in found.items()}
    static = hooks(settings=Settings(reports_admission=False, updates=False))
    assert {"None", "NoneOnDryRun"} == {hook["sideEffects"] for hook in static.values()}


@pytest.mark.parametrize(
    ("configured", "expected"), [({}, True), ({"mutateDigest": True}, True), ({"mutateDigest": False}, False)]
)
def test_policies_for_images_change_objects_unless_mutate_digest_is_off(configured: JSONObject, expected: bool) -> None:
    """They write digests into the object before validation."""
    more: dict[str, Any] = {
        "matchImageReferences": [{"glob": "*"}],
        "attestors": [],
        "validations": [{"expression": "true"}],
        "validationConfigurations": configured,
    }
    assert expected is ("ivpol.mutate.kyverno.svc-fail" in hooks(cel("a", "ImageValidatingPolicy", **more)))


def test_the_reinvocation_of_policies_in_cel_is_left_to_the_api_server() -> None:
    """Its `reinvocationPolicy` does not reach the webhook."""
    mutations = [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/x'}]"}}]
    [hook] = hooks(cel("a", "MutatingPolicy", mutations=mutations, reinvocationPolicy="IfNeeded")).values()
    assert "reinvocationPolicy" not in hook
