"""The charts: what they render, what they refuse, and that they equal the output of `pyverno install`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripts.charts.__main__ import stale_files
from scripts.charts.controllers import controller_files

from pyverno.install.manifests import manifests
from pyverno.install.settings import InstallSettings
from pyverno.offline.adoption.schemacheck import SchemaCheck
from pyverno.telemetry.instruments import DEFAULT_BUCKETS
from tests.deploy.charts import CHARTS, RENDERS, golden_text, render

helm = pytest.importorskip("helm_python", reason="helm-python-sdk has no build for this platform")
SPLIT = {"mode": "split"}


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    """Return the objects of a kind by name."""
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}


def refusal(values: dict[str, Any], chart: str = "pyverno") -> str:
    """Return why values are refused."""
    with pytest.raises(helm.HelmError) as caught:
        render(values, chart)
    return str(caught.value)


def test_generated_files_are_fresh() -> None:
    """`make charts` would change nothing."""
    assert [] == [path.name for path, _ in stale_files()]


@pytest.mark.parametrize("name", RENDERS)
def test_a_render_is_its_golden_file(name: str) -> None:
    """`make snapshots` rewrites the files; people review the difference."""
    assert (Path(__file__).parent / "renders" / f"{name}.yaml").read_text(encoding="utf-8") == golden_text(name)


@pytest.mark.parametrize("chart", ["pyverno", "pyverno-policies"])
def test_a_chart_passes_the_lint_of_helm(chart: str) -> None:
    """The lint is strict: warnings fail it too."""
    report = helm.lint(str(CHARTS / chart), strict=True)
    assert ([], []) == (report["errors"], [each for each in report["messages"] if each["severity"] > 1])


@pytest.mark.parametrize("kind", ["ClusterRole", "Role"])
def test_controllers_may_do_what_install_lets_them_do(kind: str) -> None:
    """Each role of `pyverno install` is rendered with the same rules."""
    settings = InstallSettings(buckets=DEFAULT_BUCKETS)
    wanted = of_kind(list(manifests(settings)), kind)
    made = of_kind(render(SPLIT), kind)
    assert {name: role.get("rules") for name, role in wanted.items()} == {
        name: made[name].get("rules") for name in wanted
    }


def test_config_maps_hold_what_install_puts_there() -> None:
    """Filters, selectors and buckets are those of `pyverno install`."""
    wanted = of_kind(list(manifests(InstallSettings(buckets=DEFAULT_BUCKETS))), "ConfigMap")
    made = of_kind(render({}), "ConfigMap")
    assert wanted["kyverno-metrics"]["data"]["bucketBoundaries"] == made["kyverno-metrics"]["data"]["bucketBoundaries"]
    assert wanted["kyverno"]["data"]["resourceFilters"] == made["kyverno"]["data"]["resourceFilters"]
    assert {"kyverno", "kyverno-metrics"} == made.keys()


def test_ports_of_one_pod_do_not_collide() -> None:
    """All controllers in one pod, and all pods on the network of one node, have ports of their own."""
    on_host = {f"{part}Controller": {"hostNetwork": True} for part in ("admission", "background", "reports", "cleanup")}
    for values in ({}, {**SPLIT, **on_host}):
        pods = [each["spec"]["template"]["spec"] for each in of_kind(render(values), "Deployment").values()]
        containers = [container for pod in pods for container in pod["containers"]]
        ports = [port["containerPort"] for container in containers for port in container["ports"]]
        ports += [each["startupProbe"]["httpGet"]["port"] for each in containers if each["name"] != "kyverno"]
        assert (8, 8) == (len(ports), len(set(ports)))


def test_a_feature_becomes_a_flag_of_the_controllers_that_have_it() -> None:
    """Controllers without the flag would refuse it."""
    features = {
        "policyExceptions": {"enabled": True, "namespace": "*"},
        "omitEvents": {"eventTypes": ["PolicyApplied"]},
    }
    made = of_kind(render({**SPLIT, "features": features}), "Deployment")
    found = {name: set(each["spec"]["template"]["spec"]["containers"][0]["args"]) for name, each in made.items()}
    wanted = {"--enablePolicyException=true", "--exceptionNamespace=*", "--omitEvents=PolicyApplied"}
    assert wanted <= found["kyverno-admission-controller"]
    assert {"--omitEvents=PolicyApplied"} == wanted & found["kyverno-cleanup-controller"]


def test_a_disruption_budget_needs_two_replicas() -> None:
    """With one replica it would stop every drain of a node."""
    budget = {"podDisruptionBudget": {"enabled": True}}
    assert {} == of_kind(render({"admissionController": budget}), "PodDisruptionBudget")
    made = of_kind(render({"admissionController": {**budget, "replicas": 2}}), "PodDisruptionBudget")
    assert 1 == made["kyverno-admission-controller"]["spec"]["maxUnavailable"]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"admissionControler": {}}, "additional properties 'admissionControler' not allowed"),
        ({"platform": "gke"}, "at '/platform': value must be one of 'kubernetes', 'openshift'"),
        ({"fullnameOverride": "mine"}, "value fullnameOverride: names of objects are fixed"),
        ({"features": {"tuf": {"enabled": True}}}, "value features.tuf: TUF is not supported"),
        ({"admissionController": {"container": {"image": {"tag": "v1"}}}}, "all controllers run from one image"),
        ({"admissionController": {"replicas": 0}}, "admissionController.replicas: at least 1"),
        ({"ui": {"enabled": True}}, "value ui.enabled: the pages need a login: set ui.oidc"),
        ({"ui": {"enabled": True, "oidc": {"issuer": "https://a"}}}, "set ui.oidc.clientId and ui.publicUrl, too"),
        ({"namespaceOverride": "kube-system"}, "namespace kube-system: the controllers need one of their own"),
    ],
)
def test_values_without_a_meaning_are_refused_with_a_hint(values: dict[str, Any], text: str) -> None:
    """Typos by the schema, keys of Kyverno's chart with what to do instead."""
    assert text in refusal(values)


def test_values_equal_to_the_default_of_kyverno_are_accepted() -> None:
    """Empty and switched-off values of keys that this chart does not have change nothing."""
    values = {"fullnameOverride": None, "openreports": {}, "admissionController": {"createSelfSignedCert": False}}
    assert render({}) == render(values)


def test_every_definition_is_rendered_and_each_can_be_left_out() -> None:
    """By default they stay after `helm uninstall`, and with them the policies."""
    files = [path for path in controller_files(CHARTS) if path.parent.name == "crds"]
    made = of_kind(render({}), "CustomResourceDefinition")
    assert {path.stem for path in files} == made.keys()
    assert {"keep"} == {each["metadata"]["annotations"]["helm.sh/resource-policy"] for each in made.values()}
    less = of_kind(render({"crds": {"groups": {"openreports.io": {"reports": False}}}}), "CustomResourceDefinition")
    assert {"reports.openreports.io"} == made.keys() - less.keys()


@pytest.mark.parametrize(
    "login", [{}, {"oidc": RENDERS["ui"]["ui"]["oidc"], "publicUrl": "https://policy.example.org"}]
)
def test_the_pages_are_started_with_flags_that_the_command_has(login: dict[str, Any]) -> None:
    """Each flag of the container is one of `pyverno ui`, which accepts all of them together."""
    from pyverno.cli.ui.command import ui

    values = {"ui": {**RENDERS["ui"]["ui"], "insecureNoLogin": not login, "oidc": {}, **login}}
    [container] = of_kind(render(values), "Deployment")["kyverno-ui"]["spec"]["template"]["spec"]["containers"]
    word, *arguments = container["args"]
    assert "ui" == word
    known = {option for each in ui.params for option in each.opts}
    assert set() == {argument.split("=")[0] for argument in arguments} - known
    assert (not login) == ("--insecure-no-login" in arguments)
    assert bool(login) == ("--oidc-issuer=https://login.example.org" in arguments)
    assert {"--metrics", "--retention-days=30", "--allow-groups=platform,security"} <= set(arguments)


@pytest.mark.parametrize("version", [f"1.{minor}" for minor in range(32, 38)])
def test_every_supported_version_of_kubernetes_has_the_fields_of_every_render(version: str) -> None:
    """By the schemas of that version; definitions and kinds of other projects have none."""
    check = SchemaCheck(version=version)
    different = {json.dumps(each): each for values in RENDERS.values() for each in render(values)}
    found = {
        f"{each['kind']} {each['metadata']['name']}": problems
        for each in different.values()
        if each["kind"] != "CustomResourceDefinition"
        if (problems := [problem.message for problem in check.mismatches(each)])
    }
    assert {} == found


@pytest.mark.parametrize("kind", ["ValidatingPolicy", "ClusterPolicy"])
def test_policies_are_audited_by_default_in_both_dialects(kind: str) -> None:
    """The baseline has the same names in both."""
    made = render({"policyType": kind}, "pyverno-policies")
    assert ({kind}, 12) == ({each["kind"] for each in made}, len(made))
    if kind == "ValidatingPolicy":
        assert {"Audit"} == {action for each in made for action in each["spec"]["validationActions"]}
    else:
        rules = [rule["validate"] for each in made for rule in each["spec"]["rules"]]
        assert {"Audit"} == {each["failureAction"] for each in rules}


def test_a_policy_can_be_enforced_excluded_and_added_by_name() -> None:
    """With the names of values of Kyverno's chart."""
    values = {
        "policyType": "ClusterPolicy",
        "includeOtherPolicies": ["require-labels"],
        "validationFailureActionByPolicy": {"disallow-host-ports": "Enforce"},
        "policyExclude": {"disallow-host-ports": {"any": [{"resources": {"namespaces": ["ingress"]}}]}},
        "podSecuritySeverity": "low",
    }
    made = of_kind(render(values, "pyverno-policies"), "ClusterPolicy")
    [rule] = made["disallow-host-ports"]["spec"]["rules"]
    assert ("Enforce", ["ingress"]) == (
        rule["validate"]["failureAction"],
        rule["exclude"]["any"][0]["resources"]["namespaces"],
    )
    assert "low" == made["disallow-host-ports"]["metadata"]["annotations"]["policies.kyverno.io/severity"]
    assert "Audit" == made["require-labels"]["spec"]["rules"][0]["validate"]["failureAction"]
    assert "the library has no policy nope" in refusal({"policyExclude": {"nope": {}}}, "pyverno-policies")


CIDR = {"ipBlock": {"cidr": "10.0.0.10/32"}}
PEERS = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({}, None),
        ({"lookup": True}, None),
        ({"enabled": True}, []),
        ({"apiServerCIDRs": ["10.0.0.10/32"]}, [CIDR]),
        ({"ingressFrom": PEERS, "apiServerCIDRs": ["10.0.0.10/32"]}, [*PEERS, CIDR]),
        ({"enabled": False, "apiServerCIDRs": ["10.0.0.10/32"]}, None),
    ],
)
@pytest.mark.parametrize("mode", ["single", "split"])
def test_known_api_servers_alone_reach_the_webhook(mode: str, values: dict[str, Any], wanted: list[Any] | None) -> None:
    """The NetworkPolicy is there once their addresses are known; without a cluster there is none to look up."""
    objects = render({"mode": mode, "admissionController": {"networkPolicy": values}})
    found = of_kind(objects, "NetworkPolicy").get("kyverno-admission-controller")
    rules = found["spec"]["ingress"] if found is not None else []
    assert (None if found is None else wanted) == wanted
    assert [wanted or []] * len(rules[:1]) == [each.get("from") or [] for each in rules[:1]]


def test_addresses_of_api_servers_are_looked_up() -> None:
    """At the installation the chart takes the addresses of the Service `kubernetes`, and admits nobody else."""
    text = (CHARTS / "pyverno" / "templates" / "_helpers.tpl").read_text(encoding="utf-8")
    assert 'lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes"' in text
