"""The manifests of an installation: complete, least privilege, and judged by our own policies."""

from __future__ import annotations

from pathlib import Path

import yaml

from pyverno.controllers.definitions import definitions
from pyverno.controllers.manifests import InstallSettings, manifests
from pyverno.controllers.workdefinitions import work_definitions
from pyverno.engine.engine import Engine
from pyverno.engine.phases import VALIDATING
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.offline.library import load_policies
from pyverno.policy.kinds import POLICY_KINDS

ROOT = Path(__file__).parents[3]


def test_every_kind_of_ours_has_a_definition_with_one_stored_version() -> None:
    """Namespaced twins included; Kubernetes' own kinds are there already."""
    found = {each["metadata"]["name"]: each for each in definitions()}
    assert {
        *(f"{kind.plural}.{kind.group}" for kind in POLICY_KINDS if kind.group != "admissionregistration.k8s.io"),
        *(each["metadata"]["name"] for each in work_definitions()),
    } == set(found)
    for definition in found.values():
        versions = definition["spec"]["versions"]
        assert 1 == sum(version["storage"] for version in versions)
        assert all("alpha" not in version["name"] for version in versions if version["storage"])


def test_the_controller_is_bound_to_no_wildcard_but_reading_policies() -> None:
    """It writes webhook configurations, admission policies and status everywhere, and reads its own secrets only."""
    rules = [
        (each["kind"], rule)
        for each in manifests(InstallSettings())
        if each["kind"] in ("ClusterRole", "Role")
        for rule in each.get("rules", ())
    ]
    cluster = [rule for kind, rule in rules if kind == "ClusterRole"]
    assert not [rule for rule in cluster if "secrets" in rule["resources"] or "*" in rule["verbs"]]
    written = {
        resource for rule in cluster if {"create", "delete"} <= set(rule["verbs"]) for resource in rule["resources"]
    }
    words, things = (
        ("mutating", "validating"),
        ("webhookconfigurations", "admissionpolicies", "admissionpolicybindings"),
    )
    assert {f"{word}{thing}" for word in words for thing in things} == written
    [secrets] = [
        rule for kind, rule in rules if kind == "Role" and "get" in rule["verbs"] and "secrets" in rule["resources"]
    ]
    assert ["kyverno-svc.kyverno.svc.kyverno-tls-ca", "kyverno-svc.kyverno.svc.kyverno-tls-pair"] == secrets[
        "resourceNames"
    ]


def test_the_deployment_passes_the_restricted_pod_security_standard() -> None:
    """By our own library, through autogen."""
    [deployment] = [each for each in manifests(InstallSettings()) if each["kind"] == "Deployment"]
    policies = load_policies(ROOT / "policies" / "pod-security")
    review = Engine(policies).review(Request.from_manifest(deployment), VALIDATING)
    assert [] == [(each.rule.policy.name, each.message) for each in review.results if each.status is not Status.PASS]
    assert review.results


def test_settings_reach_the_deployment() -> None:
    """Namespace, image, replicas and arguments."""
    settings = InstallSettings("policy", "example.org/pyverno:2", 3, ("--enablePolicyException",))
    found = list(manifests(settings))
    [deployment] = [each for each in found if each["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert ("policy", 3) == (deployment["metadata"]["namespace"], deployment["spec"]["replicas"])
    assert "example.org/pyverno:2" == container["image"]
    assert "--enablePolicyException" == container["args"][-1]
    [config] = [each for each in found if each["kind"] == "ConfigMap"]
    assert "[*/*,policy,*]" in config["data"]["resourceFilters"]
    assert yaml.safe_load(config["data"]["webhooks"])["namespaceSelector"]["matchExpressions"]
