"""Values files of Kyverno's chart: each key of its examples has an effect here, or is refused with a hint."""

from __future__ import annotations

from typing import Any

import pytest

from tests.deploy.charts import render

helm = pytest.importorskip("helm_python", reason="helm-python-sdk has no build for this platform")
PARTS = ("admission", "background", "reports", "cleanup")
DRAIN = {"preStop": {"sleep": {"seconds": 7}}}


def of_kind(values: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Return the rendered objects of a kind by name."""
    return {each["metadata"]["name"]: each for each in render(values) if each["kind"] == kind}


def pod(values: dict[str, Any], part: str = "admission", kind: str = "Deployment") -> dict[str, Any]:
    """Return the pod of a controller."""
    return of_kind(values, kind)[f"kyverno-{part}"]["spec"]["template"]["spec"]


def filters(**config: Any) -> list[str]:
    """Return the resource filters of a configuration."""
    return of_kind({"config": config}, "ConfigMap")["kyverno"]["data"]["resourceFilters"].split("\n")


@pytest.mark.parametrize("secrets", [["first", "second"], [{"name": "first"}, "second"]])
def test_pull_secrets_are_given_as_names_or_as_references(secrets: list[object]) -> None:
    """Every pod refers to them, verification of images uses them, and the role lets controllers read them."""
    values = {"existingImagePullSecrets": secrets, "ui": {"enabled": True, "insecureNoLogin": True}}
    wanted = [{"name": "first"}, {"name": "second"}]
    made = pod(values, "admission-controller")
    assert [wanted] * 3 == [
        each["imagePullSecrets"] for each in (made, pod(values, "ui"), pod(values, "release-hook", "Job"))
    ]
    assert "--imagePullSecrets=first,second" in made["containers"][0]["args"]
    rules = of_kind(values, "Role")["kyverno:admission-controller"]["rules"]
    assert ["first", "second"] in [rule.get("resourceNames") for rule in rules]


def test_further_containers_join_the_pod_of_the_admission_controller() -> None:
    """Init containers, too."""
    container = {"name": "proxy", "image": "example.org/proxy:1"}
    made = pod(
        {"admissionController": {"extraContainers": [container], "extraInitContainers": [container]}},
        "admission-controller",
    )
    assert (container, [container]) == (made["containers"][-1], made["initContainers"])


def test_hooks_of_the_lifecycle_reach_each_container() -> None:
    """The admission controller has them below `container`, as in Kyverno's chart."""
    values = {f"{part}Controller": {"lifecycle": DRAIN} for part in PARTS[1:]}
    values["admissionController"] = {"container": {"lifecycle": DRAIN}}
    for mode in ("single", "split"):
        made = of_kind({"mode": mode, **values}, "Deployment").values()
        found = [each["lifecycle"] for one in made for each in one["spec"]["template"]["spec"]["containers"]]
        assert [DRAIN] * 4 == found


def test_the_job_that_removes_webhooks_is_placed_as_wanted() -> None:
    """Affinity in three keys, labels and annotations."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
    affinity = {key: {"requiredDuringSchedulingIgnoredDuringExecution": [term]} for key in ("podAffinity",)}
    affinity["podAntiAffinity"] = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]
    }
    values = {**affinity, "podLabels": {"team": "a"}, "podAnnotations": {"note": "b"}, "nodeSelector": {"disk": "ssd"}}
    template = of_kind({"webhooksCleanup": values}, "Job")["kyverno-release-hook"]["spec"]["template"]
    assert (affinity, {"disk": "ssd"}) == (template["spec"]["affinity"], template["spec"]["nodeSelector"])
    assert ("a", {"note": "b"}) == (template["metadata"]["labels"]["team"], template["metadata"]["annotations"])
    assert "affinity" not in pod({}, "release-hook", "Job")


def test_filters_of_namespaces_are_added_and_taken_away() -> None:
    """A namespace that is included is filtered; one that is excluded loses each filter that names it."""
    default = filters()
    assert [*default, "[Thing,*,*]", "[*/*,lab,*]"] == filters(
        resourceFiltersInclude=["[Thing,*,*]"], resourceFiltersIncludeNamespaces=["lab"]
    )
    assert any(",kube-public," in each for each in default)
    assert [each for each in default if ",kube-public," not in each] == filters(
        resourceFiltersExcludeNamespaces=["kube-public"]
    )
    assert "[Node,*,*]" in default
    assert "[Node,*,*]" not in filters(resourceFiltersExclude=["[Node,*,*]"])


def test_groups_of_alerts_stand_beside_those_of_the_chart() -> None:
    """With labels and annotations by which Prometheus finds them."""
    group = {"name": "mine", "rules": [{"alert": "Slow", "expr": "up < 1"}]}
    values = {
        "enabled": True,
        "spec": [group],
        "additionalLabels": {"release": "p"},
        "additionalAnnotations": {"a": "b"},
    }
    made = of_kind({"prometheusRule": values}, "PrometheusRule")["kyverno"]
    assert ["kyverno", "mine"] == [each["name"] for each in made["spec"]["groups"]]
    assert ("p", {"a": "b"}) == (made["metadata"]["labels"]["release"], made["metadata"]["annotations"])


@pytest.mark.parametrize(
    "values",
    [
        {"openreports": {"enabled": False, "installCrds": False}},
        {"cleanupController": {"enabled": True}},
        {"global": {"nodeSelector": {"a": "b"}}, "admissionController": {"nodeSelector": {"c": "d"}}},
        {f"{part}Controller": {"replicas": 1} for part in PARTS},
        {f"{part}Controller": {"serviceMonitor": {"enabled": True, "relabelings": [{"a": "b"}]}} for part in PARTS},
    ],
)
def test_further_keys_of_the_examples_are_accepted(values: dict[str, Any]) -> None:
    """Their effect is shown elsewhere."""
    assert render(values)


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        (
            {"webhooksCleanup": {"enable": True}},
            "no chart has this key: set webhooksCleanup.enabled",
        ),
        ({"networkPolicy": {"enabled": True}}, "networkPolicy.enabled: set networkPolicy.enabled of each controller"),
        ({"openreports": {"enabled": True}}, "openreports.enabled: set reportsController.extraArgs.openreportsEnabled"),
        ({"openreports": {"installCrds": True}}, "openreports.installCrds: the definitions are part of crds"),
        ({"openreports": {"typo": True}}, "additional properties 'typo' not allowed"),
        ({"reportsServer": {"enabled": True}}, "reportsServer: a reports server is not supported"),
        ({"imagePullSecrets": {"a": {"registry": "b"}}}, "imagePullSecrets: this chart creates no Secrets"),
        ({"admissionController": {"initContainer": {"image": {"tag": "a"}}}}, "there is no init container"),
    ],
)
def test_other_keys_are_refused_with_what_to_do(values: dict[str, Any], hint: str) -> None:
    """One key at a time."""
    with pytest.raises(helm.HelmError) as raised:
        render(values)
    assert hint in str(raised.value)
