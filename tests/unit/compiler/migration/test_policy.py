"""Tests of `migration.policy`: whole policies, judged beside what they become."""

from __future__ import annotations

import pytest

from pyverno.engine.request import Request
from tests.support.conversions import convert, differences, policy, rule
from tests.support.migrationcases import engine_with

PRIVILEGED = {"spec": {"containers": [{"=(securityContext)": {"=(privileged)": False}}]}}
IMAGES = {"spec": {"containers": [{"image": "ghcr.io/*"}]}}


def test_rules_of_one_scope_become_one_policy() -> None:
    """Both rules are validations of one policy that keeps the name."""
    written = policy(rule("a", PRIVILEGED), rule("b", IMAGES))
    found = convert(written)
    assert (["demo"], True) == ([each["metadata"]["name"] for each in found.documents], found.is_complete)
    assert [("demo",), ("demo",)] == [each.policies for each in found.rules]
    assert [] == differences(written, found.documents)


def test_rules_of_different_scopes_become_policies_of_their_own() -> None:
    """Names hold the rule, and stay unique and short."""
    long = "r" * 60
    written = policy(rule("a", PRIVILEGED), rule(long, {"spec": {"=(type)": "!NodePort"}}, kinds=["Service"]))
    found = convert(written)
    names = [each["metadata"]["name"] for each in found.documents]
    assert "demo-a" == names[0]
    assert all(len(each) <= 63 for each in names)
    assert [] == differences(written, found.documents)


def test_copies_for_controllers_read_the_template() -> None:
    """One variable is the spec of the Pod, wherever it is."""
    document = convert(policy(rule("a", PRIVILEGED))).documents[0]
    variable = document["spec"]["variables"][0]
    assert ("podSpec", 3) == (variable["name"], len(document["spec"]["matchConstraints"]["resourceRules"]))
    resources = [each["resources"] for each in document["spec"]["matchConstraints"]["resourceRules"]]
    assert ["pods", "pods/ephemeralcontainers", "replicationcontrollers"] == resources[0]


def test_without_autogen_only_pods_are_matched() -> None:
    """If the engine makes no copies, the policy in CEL makes none either."""
    written = policy(rule("a", PRIVILEGED), annotations={"pod-policies.kyverno.io/autogen-controllers": "none"})
    found = convert(written)
    rules = found.documents[0]["spec"]["matchConstraints"]["resourceRules"]
    assert [["pods", "pods/ephemeralcontainers"]] == [each["resources"] for each in rules]
    assert [] == differences(written, found.documents)


def test_an_unconvertible_rule_stays_behind() -> None:
    """The old policy keeps it, with the autogen that it had."""
    bad = rule("b", IMAGES, subjects=None)
    bad["match"]["any"][0]["clusterRoles"] = ["admin"]
    written = policy(rule("a", PRIVILEGED), bad)
    written["spec"]["background"] = False
    found = convert(written)
    assert found.remaining is not None
    assert ["b"] == [each["name"] for each in found.remaining["spec"]["rules"]]
    refused = found.rules[1].refused
    assert refused is not None
    assert ("roles", "match.any[0].clusterRoles") == (refused.code, refused.path)


def test_actions_by_namespace_become_a_policy_each() -> None:
    """Enforce in one namespace and Audit elsewhere: two policies with complementary conditions."""
    written = policy(rule("a", IMAGES, kinds=["Pod"]))
    written["spec"]["rules"][0]["validate"]["failureActionOverrides"] = [{"action": "Enforce", "namespaces": ["prod"]}]
    found = convert(written)
    actions = {each["metadata"]["name"]: each["spec"]["validationActions"] for each in found.documents}
    assert {"demo-enforce": ["Deny"], "demo-audit": ["Audit"]} == actions
    assert [] == differences(written, found.documents, count=200)


def test_updates_of_what_failed_before_are_excused() -> None:
    """An enforcing rule lets an update pass whose old object failed too (allowExistingViolations)."""
    written = policy(rule("a", IMAGES, action="Enforce"))
    found = convert(written)
    names = [each["name"] for each in found.documents[0]["spec"]["variables"]]
    assert ["podSpec", "oldPodSpec", "failedBefore"] == names
    assert [] == differences(written, found.documents, count=150)
    strict = policy(rule("a", IMAGES, action="Enforce"))
    strict["spec"]["rules"][0]["validate"]["allowExistingViolations"] = False
    assert [] == differences(strict, convert(strict).documents, count=150)


def test_settings_of_the_policy_are_kept() -> None:
    """failurePolicy, background, timeouts, labels and annotations."""
    written = policy(rule("a", IMAGES), annotations={"policies.kyverno.io/title": "T"})
    written["metadata"]["labels"] = {"team": "a"}
    written["spec"] |= {"background": False, "emitWarning": True}
    written["spec"]["webhookConfiguration"] = {"failurePolicy": "Ignore", "timeoutSeconds": 5}
    document = convert(written).documents[0]
    spec = document["spec"]
    assert ({"team": "a"}, "T") == (
        document["metadata"]["labels"],
        document["metadata"]["annotations"]["policies.kyverno.io/title"],
    )
    assert ("Ignore", {"timeoutSeconds": 5}, {"background": {"enabled": False}}, ["Audit", "Warn"]) == (
        spec["failurePolicy"],
        spec["webhookConfiguration"],
        spec["evaluation"],
        spec["validationActions"],
    )


def test_fields_without_effect_on_a_verdict_are_left_out() -> None:
    """Properties of reports with a note; schemaValidation decides nothing in Kyverno."""
    written = policy(rule("a", IMAGES))
    written["spec"]["schemaValidation"] = False
    written["spec"]["rules"][0]["reportProperties"] = {"team": "a"}
    found = convert(written)
    assert {"report-properties"} == {note.code for each in found.rules for note in each.notes}
    assert [] == differences(written, found.documents)


def test_a_generated_name_counts_as_the_name() -> None:
    """Of an object that has none yet, in match and exclude."""
    entry = rule("a", {"metadata": {"labels": {"app": "?*"}}}, kinds=["ConfigMap"])
    entry["match"]["any"][0]["resources"]["names"] = ["web-*"]
    written = policy(entry)
    documents = convert(written).documents
    unnamed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "web-", "namespace": "default"}}
    for kind in (written, *documents):
        review = engine_with([kind]).review(Request.from_manifest(unnamed))
        assert ["fail"] == [result.status.value for result in review.results]


def test_a_namespaced_policy_stays_in_its_namespace() -> None:
    """A Policy becomes a NamespacedValidatingPolicy."""
    written = policy(rule("a", IMAGES))
    written["kind"], written["metadata"]["namespace"] = "Policy", "team-a"
    document = convert(written).documents[0]
    assert ("NamespacedValidatingPolicy", "team-a") == (document["kind"], document["metadata"]["namespace"])


@pytest.mark.parametrize(
    "block",
    [
        {"names": ["web*", "a"]},
        {"namespaces": ["team-*", "prod"]},
        {"selector": {"matchLabels": {"app": "we*"}}},
        {"selector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x", "web"]}]}},
        {"annotations": {"corp/*": "a?b"}},
        {"operations": ["UPDATE"]},
    ],
)
@pytest.mark.parametrize("section", ["match", "exclude"])
def test_scopes_match_the_same_requests(block: dict[str, object], section: str) -> None:
    """Names, namespaces, labels, annotations and operations, in match and in exclude."""
    entry = rule("a", {"metadata": {"labels": {"app": "?*"}}}, kinds=["ConfigMap", "Secret"])
    if section == "match":
        entry["match"]["any"][0]["resources"] |= block
    else:
        entry["exclude"] = {"any": [{"resources": {"kinds": ["ConfigMap"], **block}}]}
    written = policy(entry)
    found = differences(written, convert(written).documents, count=90)
    # few objects: some rules never refuse one in their scope
    assert [] == [each for each in found if "never" not in each]


def test_rules_in_cel_are_taken_over() -> None:
    """Expressions stay as they are, but for the fields of Pods that controllers have in a template."""
    entry = rule("a", None)
    entry["validate"]["cel"] = {
        "expressions": [{"expression": "!has(object.spec.hostNetwork) || !object.spec.hostNetwork", "message": "no"}]
    }
    written = policy(entry)
    found = convert(written)
    assert (
        "!has(variables.podSpec.hostNetwork) || !variables.podSpec.hostNetwork"
        == (found.documents[0]["spec"]["validations"][0]["expression"])
    )
    assert [] == differences(written, found.documents)
