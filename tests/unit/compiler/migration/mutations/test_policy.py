"""Mutate rules in CEL: the table of cases, and what surrounds mutations."""

from __future__ import annotations

import pytest

from pyverno.engine.request import Operation, Request
from pyverno.kube.json import JSONObject
from tests.support.migrationcases import convert, engine_with, judge, policy_of, rows_of

ROWS = rows_of("mutations.yaml")
CONVERTED = [row for row in ROWS if "becomes" in row]
REFUSED = [row for row in ROWS if "refused" in row]
SEEDS: list[JSONObject] = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "n", "labels": {"app": app}},
        "spec": {
            "containers": [
                {"name": "web", "image": "nginx:latest", "env": [{"name": "b", "value": "c"}], "tty": True},
                {"name": "other", "image": "nginx"},
            ],
            "initContainers": [{"name": "b", "image": "x"}, {"name": "web", "image": "nginx"}],
            "volumes": [{"name": "web", "emptyDir": {}}, {"name": "v", "hostPath": {"path": "/var/x", "type": ""}}],
        },
    }
    for app in ("web", "other")
]


def title(row: JSONObject) -> str:
    """Return the name of a row's test."""
    return str(row["claim"])


def expressions(document: JSONObject) -> list[str]:
    """Return the expressions of the mutations."""
    entries = document["spec"]["mutations"]
    return [(each.get("jsonPatch") or each["applyConfiguration"])["expression"] for each in entries]


@pytest.mark.parametrize("row", CONVERTED, ids=title)
def test_a_rule_becomes_the_mutations_that_the_table_shows(row: JSONObject) -> None:
    """Mutations, match conditions and the codes of notes, in the words of the table."""
    ((document,), notes, _) = convert(policy_of(row))
    conditions = {each["name"]: each["expression"] for each in document["spec"].get("matchConditions", [])}
    expected = (row["becomes"], row.get("matchConditions", {}), row.get("notes", []))
    assert expected == (expressions(document), conditions, [*notes])


@pytest.mark.parametrize("row", CONVERTED, ids=title)
def test_mutations_leave_the_same_objects(row: JSONObject) -> None:
    """On seeds and generated objects, created and updated, once and applied again."""
    policy = policy_of(row)
    found = judge([policy], convert(policy)[0], count=40, kinds=[row["kind"]], seeds=SEEDS * (row["kind"] == "Pod"))
    assert None is found.counterexample
    assert found.requests


@pytest.mark.parametrize("row", REFUSED, ids=title)
def test_a_patch_without_an_equal_form_is_refused_with_its_code(row: JSONObject) -> None:
    """The refusal names the field and the reason; nothing is written."""
    documents, _, refused = convert(policy_of(row))
    assert () == documents
    assert refused is not None
    assert row["refused"] == refused.code
    assert refused.path.startswith("mutate")
    assert refused.reason


AUTOGEN: list[JSONObject] = [
    {"patchStrategicMerge": {"spec": {"securityContext": {"+(runAsNonRoot)": True}}}},
    {"patchStrategicMerge": {"metadata": {"labels": {"team": "a"}}, "spec": {"(hostNetwork)": True}}},
    {
        "foreach": [
            {
                "list": "request.object.spec.containers",
                "patchStrategicMerge": {
                    "spec": {"containers": [{"name": "{{ element.name }}", "imagePullPolicy": "Always"}]}
                },
            },
            {
                "list": "request.object.spec.initContainers || `[]`",
                "patchStrategicMerge": {
                    "spec": {"initContainers": [{"(name)": "{{ element.name }}", "imagePullPolicy": "Always"}]}
                },
            },
        ]
    },
]


@pytest.mark.parametrize("mutate", AUTOGEN, ids=["merge", "condition", "foreach"])
def test_a_rule_for_pods_changes_the_templates_of_all_controllers(mutate: JSONObject) -> None:
    """One policy reads the Pod by a variable and writes below the path of another one."""
    policy = policy_of({"kind": "Pod", "mutate": mutate})
    policy["metadata"].pop("annotations")
    resources = policy["spec"]["rules"][0]["match"]["any"][0]["resources"]
    resources["kinds"] = ["Pod"]
    ((document,), _, _) = convert(policy)
    names = [each["name"] for each in document["spec"]["variables"]]
    assert ["pod", "podPath"] == [name for name in names if name in ("pod", "podPath")]
    found = judge([policy], [document], count=80)
    assert None is found.counterexample
    assert 14 <= len(found.requests)


def test_preconditions_of_a_pod_rule_are_a_variable() -> None:
    """Match conditions cannot read the variable that holds the Pod."""
    precondition = {"key": "{{ request.object.spec.hostNetwork || `false` }}", "operator": "Equals", "value": True}
    policy = policy_of(
        {
            "kind": "Pod",
            "preconditions": {"all": [precondition]},
            "mutate": {"patchStrategicMerge": {"spec": {"dnsPolicy": "ClusterFirstWithHostNet"}}},
        }
    )
    policy["metadata"].pop("annotations")
    policy["spec"]["rules"][0]["match"]["any"][0]["resources"]["kinds"] = ["Pod"]
    ((document,), _, _) = convert(policy)
    assert "applies" in [each["name"] for each in document["spec"]["variables"]]
    assert "matchConditions" not in document["spec"]
    assert None is judge([policy], [document], count=80).counterexample


TARGETS = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "p"},
    "spec": {
        "rules": [
            {
                "name": "r",
                "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "operations": ["CREATE", "UPDATE"]}}]},
                "mutate": {
                    "targets": [
                        {
                            "apiVersion": "v1",
                            "kind": "Secret",
                            "name": "s*",
                            "namespace": "{{ request.object.metadata.namespace }}",
                            "preconditions": {
                                "all": [{"key": "{{ target.type }}", "operator": "Equals", "value": "Opaque"}]
                            },
                        }
                    ],
                    "patchStrategicMerge": {
                        "metadata": {"labels": {"from": "{{ request.object.metadata.name }}", "+(team)": "none"}}
                    },
                },
            }
        ]
    },
}
SECRETS: list[JSONObject] = [
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "type": kind}
    for name, namespace, kind in (
        ("s1", "default", "Opaque"),
        ("s2", "default", "other"),
        ("x", "default", "Opaque"),
        ("s3", "team-a", "Opaque"),
    )
]


def test_targets_are_chosen_and_changed_alike() -> None:
    """By name, namespace and preconditions; the trigger is read from the request."""
    ((document,), notes, _) = convert(TARGETS)
    assert ("targets-listed",) == notes
    found = judge([TARGETS], [document], count=40, kinds=["ConfigMap"], objects=SECRETS)
    assert None is found.counterexample
    assert found.first["effects"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"targets": [{}, {}]}, "several-targets"),
        ({"targets": [{"apiVersion": "v1", "kind": "Nothing"}]}, "unknown-kind"),
        ({"targets": [{"apiVersion": "v1", "kind": "{{ request.object.data.kind }}"}]}, "computed-kind"),
        (
            {
                "targets": [
                    {"apiVersion": "v1", "kind": "Secret", "context": [{"name": "a", "variable": {"value": "b"}}]}
                ]
            },
            "target-context",
        ),
        (
            {
                "targets": [
                    {
                        "apiVersion": "v1",
                        "kind": "Secret",
                        "selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                    }
                ]
            },
            "target-selector",
        ),
    ],
    ids=["several", "unknown", "computed", "context", "selector"],
)
def test_targets_without_an_equal_form_are_refused(change: JSONObject, code: str) -> None:
    """With the code of the reason."""
    rule = TARGETS["spec"]["rules"][0]  # type: ignore[index]
    policy = {**TARGETS, "spec": {"rules": [{**rule, "mutate": {**rule["mutate"], **change}}]}}
    refused = convert(policy)[2]
    assert refused is not None
    assert code == refused.code


def test_settings_of_the_policy_stay() -> None:
    """The failure policy, the webhook's timeout and the evaluation at admission are carried over."""
    policy = policy_of({"kind": "ConfigMap", "mutate": {"patchStrategicMerge": {"data": {"a": "b"}}}})
    policy["spec"] |= {"failurePolicy": "Ignore", "webhookTimeoutSeconds": 5, "admission": False}
    ((document,), _, _) = convert(policy)
    settings = [document["spec"].get(name) for name in ("failurePolicy", "webhookConfiguration", "evaluation")]
    assert ["Ignore", {"timeoutSeconds": 5}, {"admission": {"enabled": False}}] == settings


def test_kinds_that_need_other_mutations_are_distinguished() -> None:
    """The same merge is another one where a list has no keys."""
    policy = policy_of({"kind": "Pod", "mutate": {"patchStrategicMerge": {"metadata": {"labels": {"+(a)": "b"}}}}})
    resources = policy["spec"]["rules"][0]["match"]["any"][0]["resources"]
    resources["kinds"] = ["ConfigMap", "Secret"]
    ((document,), _, _) = convert(policy)
    assert 1 == len(expressions(document))
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    changed = engine_with([document]).review(Request.from_manifest(body, operation=Operation.CREATE)).resource
    assert {"a": "b"} == changed["metadata"]["labels"]
