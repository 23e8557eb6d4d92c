"""The installation manifests: complete, with least privilege, and accepted by our own policies."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pyverno.cli.controller.services import REQUIRED
from pyverno.cluster.access import SERVICE_ACCOUNT
from pyverno.cluster.egress import SCOPED_TOKEN
from pyverno.controllers.state.recordkeys import RECORD_KEYS
from pyverno.engine.engine import Engine
from pyverno.engine.phases import VALIDATING
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.install.definitions import definitions
from pyverno.install.manifests import InstallSettings, manifests
from pyverno.install.reportdefinitions import report_definitions
from pyverno.install.workdefinitions import work_definitions
from pyverno.kube.json import JSONObject, encode
from pyverno.kube.reportapis import OPENREPORTS, POLICY_REPORTS
from pyverno.offline.library import load_policies
from pyverno.policy.kinds import POLICY_KINDS
from pyverno.policy.kinds import WATCHED_EXCEPTIONS as EXCEPTION_KINDS
from pyverno.policy.kinds import WATCHED_POLICIES as KINDS
from pyverno.telemetry.instruments import DEFAULT_BUCKETS
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.metricsettings import MetricSettings

ROOT = Path(__file__).parents[3]
GENERATED = {
    *("configmaps", "resourcequotas", "limitranges", "ingresses", "ingressclasses", "networkpolicies"),
    *("roles", "rolebindings", "resourceclaims", "resourceclaimtemplates"),
}
"""Resources that the background controller may write everywhere without further roles."""


REPORTS = {"policyreports", "clusterpolicyreports", "reports", "clusterreports"}
"""Resources that the reports controller writes."""


def deployments(settings: InstallSettings | None = None) -> dict[str, JSONObject]:
    """Return the Deployments of an installation by name."""
    found = manifests(settings or InstallSettings())
    return {each["metadata"]["name"]: each for each in found if each["kind"] == "Deployment"}


def test_every_kind_of_kyverno_has_a_definition_with_one_stored_version() -> None:
    """Namespaced kinds are included; kinds of Kubernetes itself are not."""
    found = {each["metadata"]["name"]: each for each in definitions()}
    assert {
        *(f"{kind.plural}.{kind.group}" for kind in POLICY_KINDS if kind.group != "admissionregistration.k8s.io"),
        *(each["metadata"]["name"] for each in work_definitions()),
        *(each["metadata"]["name"] for api in (POLICY_REPORTS, OPENREPORTS) for each in report_definitions(api)),
    } == set(found)
    for definition in found.values():
        versions = definition["spec"]["versions"]
        assert 1 == sum(version["storage"] for version in versions)
        is_report = definition["spec"]["group"] in ("wgpolicyk8s.io", "openreports.io")  # these have no stable version
        assert is_report or all("alpha" not in version["name"] for version in versions if version["storage"])


def test_the_controller_is_bound_to_no_wildcard() -> None:
    """It may write webhook configurations, admission policies and reports, and may read its own Secrets only."""
    rules = [
        (each["kind"], rule)
        for each in manifests(InstallSettings(secrets=("collector",)))
        if each["kind"] in ("ClusterRole", "Role")
        for rule in each.get("rules", ())
    ]
    assert not [rule for _, rule in rules if any("*" in word for key in rule for word in rule[key])]
    cluster = [rule for kind, rule in rules if kind == "ClusterRole"]
    assert not [rule for rule in cluster if "secrets" in rule["resources"]]
    written = {
        resource for rule in cluster if {"create", "delete"} <= set(rule["verbs"]) for resource in rule["resources"]
    }
    words, things = (
        ("mutating", "validating"),
        ("webhookconfigurations", "admissionpolicies", "admissionpolicybindings"),
    )
    assert {f"{word}{thing}" for word in words for thing in things} | GENERATED | REPORTS == written
    [deleted, secrets, *others] = sorted(
        (rule for kind, rule in rules if kind == "Role" and "get" in rule["verbs"] and "secrets" in rule["resources"]),
        key=lambda rule: "resourceNames" in rule,
    )
    assert ["get"] == deleted["verbs"]  # deleted objects have the names of requests
    service = "kyverno-svc.kyverno.svc"
    expected = [f"{service}.kyverno-tls-ca", f"{service}.kyverno-tls-pair", RECORD_KEYS, "collector"]
    named = [(rule["resourceNames"], rule["verbs"]) for rule in others]
    assert (expected, [([RECORD_KEYS], ["get"])]) == (secrets["resourceNames"], named)


@pytest.mark.parametrize("part", ["admission", "background", "reports"])
def test_every_watched_kind_may_be_read(part: str) -> None:
    """A new kind of policy must be readable for each controller."""
    readable = {
        (group, resource)
        for each in manifests(InstallSettings())
        if each["metadata"]["name"] == f"kyverno:{part}-controller:core"
        for rule in each.get("rules", ())
        if {"list", "watch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert {(gvr.group, gvr.resource) for gvr in (*KINDS, *EXCEPTION_KINDS)} <= readable


def test_the_manifests_pass_our_own_policies() -> None:
    """Policies are restricted pod security and best practices, with autogen."""
    settings = InstallSettings(image="ghcr.io/example/pyverno:0.1", replicas=3, user_namespaces=True)
    policies = load_policies(*(ROOT / "policies" / each for each in ("pod-security", "best-practices")))
    bad: list[tuple[str, str, str]] = []
    outcome: set[str] = set()
    for body in manifests(settings):
        for result in Engine(policies).review(Request.from_manifest(body), VALIDATING).results:
            outcome.add(body["kind"])
            if result.status not in (Status.PASS, Status.SKIP):
                bad.append((body["kind"], result.rule.policy.name, result.message))
    assert [] == bad
    assert {"Deployment", "ClusterRole", "PodDisruptionBudget"} <= outcome


def test_a_pod_mounts_its_token_explicitly() -> None:
    """It is not mounted by default; the token for services has an audience of its own."""
    for deployment in deployments().values():
        spec = deployment["spec"]["template"]["spec"]
        assert not spec["automountServiceAccountToken"]
        assert "hostUsers" not in spec
        mounts = {each["name"]: each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
        assert (str(SERVICE_ACCOUNT), str(SCOPED_TOKEN.parent)) == (mounts["access"], mounts["apicall"])


def test_a_controller_in_a_cluster_finds_its_environment() -> None:
    """The variables are those that it requires at the start."""
    for deployment in deployments().values():
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert set(REQUIRED) <= {each["name"] for each in container["env"]}


def test_definitions_are_small_and_describe_themselves() -> None:
    """`kubectl apply` keeps a copy in an annotation of at most 256 KiB."""
    for definition in definitions():
        assert len(encode(definition)) < 128 * 1024
        for version in (each for each in definition["spec"]["versions"] if each["served"]):
            schema = version["schema"]["openAPIV3Schema"]
            assert schema["description"]
            body = "results" if "results" in schema["properties"] else "spec"
            assert ("object", True) == (schema["type"], "type" in schema["properties"][body])
            assert all(schema["properties"][name]["description"] for name in ("apiVersion", "kind", body))


def test_metrics_begin_with_fewer_labels_on_histograms() -> None:
    """The printed ConfigMap of the metrics is valid and names existing metrics."""
    found = {
        each["metadata"]["name"]: each
        for each in manifests(InstallSettings(buckets=DEFAULT_BUCKETS))
        if each["kind"] == "ConfigMap"
    }
    settings = MetricSettings.read(found["kyverno-metrics"]["data"])
    assert ((), DEFAULT_BUCKETS) == (settings.problems, settings.buckets)
    known = {reading.name for reading in Metrics().read()}
    assert set(settings.exposures) <= known


def test_settings_reach_the_deployment() -> None:
    """Settings are namespace, image, replicas and arguments."""
    settings = InstallSettings("policy", "example.org/pyverno:2", 3, ("--enablePolicyException",))
    found = list(manifests(settings))
    deployment = deployments(settings)["kyverno-admission-controller"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert ("policy", 3) == (deployment["metadata"]["namespace"], deployment["spec"]["replicas"])
    assert "example.org/pyverno:2" == container["image"]
    assert "--enablePolicyException" == container["args"][-1]
    account = "system:serviceaccount:policy:kyverno-background-controller"
    assert f"--backgroundServiceAccountName={account}" in container["args"]
    [config, _metrics] = [each for each in found if each["kind"] == "ConfigMap"]
    assert "[*/*,policy,*]" in config["data"]["resourceFilters"]
    assert yaml.safe_load(config["data"]["webhooks"])["namespaceSelector"]["matchExpressions"]


def test_no_role_for_users_shows_update_requests() -> None:
    """Nothing is aggregated to `view`, `edit` or `admin`; the controllers alone read UpdateRequests."""
    shown = [
        body["metadata"]["name"]
        for body in manifests(InstallSettings())
        if body["kind"] == "ClusterRole"
        and any(label.startswith("rbac.authorization.k8s.io/aggregate-to-") for label in body["metadata"]["labels"])
        and any("updaterequests" in str(rule) or "*" in rule.get("resources", ()) for rule in body["rules"])
    ]
    assert [] == shown
