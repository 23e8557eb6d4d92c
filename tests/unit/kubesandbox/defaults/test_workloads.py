"""Tests of `defaults.workloads`; whole objects are in the table of `test_walk`."""

from __future__ import annotations

import pytest

from kubesandbox.defaults.walk import BuiltinDefaults
from pyverno.kube.json import JSONObject
from pyverno.kube.schemas import schema_set

DEFAULTS = BuiltinDefaults(schema_set("1.35"))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"completions": 1, "parallelism": 1, "backoffLimit": 6}),
        ({"parallelism": 3}, {"parallelism": 3, "backoffLimit": 6}),
        ({"completions": 3}, {"completions": 3, "parallelism": 1, "backoffLimit": 6}),
        ({"backoffLimitPerIndex": 1}, {"completions": 1, "parallelism": 1, "backoffLimit": 2**31 - 1}),
    ],
)
def test_a_job_runs_once_by_default(spec: JSONObject, expected: JSONObject) -> None:
    """A Job with `parallelism` alone is a work queue, and gets no completions."""
    filled = DEFAULTS.fill("io.k8s.api.batch.v1.Job", {"spec": spec})["spec"]
    counted = {key: filled[key] for key in ("completions", "parallelism", "backoffLimit") if key in filled}
    assert expected == counted


def test_labels_of_the_template_become_labels_of_the_job() -> None:
    """Only where it has none of its own."""
    template = {"metadata": {"labels": {"a": "b"}}}
    job = "io.k8s.api.batch.v1.Job"
    assert {"a": "b"} == DEFAULTS.fill(job, {"spec": {"template": template}})["metadata"]["labels"]
    own = DEFAULTS.fill(job, {"metadata": {"labels": {"c": "d"}}, "spec": {"template": template}})
    assert {"c": "d"} == own["metadata"]["labels"]


def test_a_strategy_that_replaces_everything_does_not_roll() -> None:
    """Nothing is filled in then."""
    filled = DEFAULTS.fill("io.k8s.api.apps.v1.DeploymentSpec", {"strategy": {"type": "Recreate"}})
    assert {"type": "Recreate"} == filled["strategy"]


def test_the_behavior_of_an_autoscaler_is_completed() -> None:
    """Its own fields stay."""
    spec = {"maxReplicas": 2, "behavior": {"scaleUp": {"selectPolicy": "Min"}}}
    behavior = DEFAULTS.fill("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec", spec)["behavior"]
    assert "Min" == behavior["scaleUp"]["selectPolicy"]
    assert [("Pods", 4), ("Percent", 100)] == [(p["type"], p["value"]) for p in behavior["scaleUp"]["policies"]]
    assert [("Percent", 100)] == [(p["type"], p["value"]) for p in behavior["scaleDown"]["policies"]]
