"""The ConfigMap `kyverno-metrics`: each key is independent, and namespaces select what is counted."""

from __future__ import annotations

import pytest

from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.metricsettings import Exposure, MetricSettings, Namespaces
from pyverno.webhook.admission import ALLOWED


def test_keys_that_can_not_be_read_keep_their_defaults() -> None:
    """Each problem names its key; the other keys apply."""
    found = MetricSettings.read({"namespaces": '{"include": "a"}', "bucketBoundaries": "1, 2.5", "else": "x"})
    assert MetricSettings(buckets=(1.0, 2.5), problems=("namespaces: `include` must be a list of texts",)) == found


def test_a_metric_may_go_without_labels() -> None:
    """The key is the metric's name without `_total`."""
    text = '{"kyverno_policy_results": {"enabled": false, "disabledLabelDimensions": ["rule_name"]}}'
    found = MetricSettings.read({"metricsExposure": text})
    assert {"kyverno_policy_results": Exposure(enabled=False, disabled_labels=("rule_name",))} == found.exposures


@pytest.mark.parametrize(("text", "seconds"), [("24h", 86_400), ("0", 0), ("-1s", 0)])
def test_the_interval_is_a_duration_of_go(text: str, seconds: float) -> None:
    """Zero and negative durations mean never."""
    assert seconds == MetricSettings.read({"metricsRefreshInterval": text}).refresh_seconds


@pytest.mark.parametrize("text", ["1, nan", "inf", "1,,2", "1, x"])
def test_a_boundary_is_a_number(text: str) -> None:
    """An invalid boundary is a problem, and the default buckets remain."""
    found = MetricSettings.read({"bucketBoundaries": text, "metricsRefreshInterval": "1 day"})
    assert ((), 0, 2) == (found.buckets, found.refresh_seconds, len(found.problems))


@pytest.mark.parametrize("text", ['{"a": {"enabled": 1}}', '{"a": []}', '{"a": {"bucketBoundaries": ["1"]}}', "[]"])
def test_an_exposure_of_a_wrong_form_is_a_problem(text: str) -> None:
    """It has no effect."""
    assert 1 == len(MetricSettings.read({"metricsExposure": text}).problems)


@pytest.mark.parametrize(
    ("settings", "namespace", "expected"),
    [
        (Namespaces(), "any", True),
        (Namespaces(include=("a",)), "b", False),
        (Namespaces(include=("a",), exclude=("a",)), "a", False),
        (Namespaces(include=("a",)), "-", True),
    ],
)
def test_excluded_namespaces_are_not_counted(settings: Namespaces, namespace: str, expected: bool) -> None:
    """Cluster-scoped resources are always counted."""
    assert expected == settings.counts(namespace)


@pytest.mark.parametrize(("namespace", "expected"), [("test", 0), ("shop", 1)])
def test_requests_of_other_namespaces_are_not_counted(namespace: str, expected: int) -> None:
    """A change of the ConfigMap applies at once."""
    metrics = Metrics()
    metrics.settings = MetricSettings.read({"namespaces": '{"exclude": ["test"]}'})
    admission_request = AdmissionRequest(
        "v1", "1", {"kind": {"kind": "Pod"}, "operation": "CREATE", "namespace": namespace}
    )
    metrics.answered(admission_request, "/validate/fail", ALLOWED, 0.1)
    assert expected == metrics.exposition().decode().count("\nkyverno_admission_requests_total{")
