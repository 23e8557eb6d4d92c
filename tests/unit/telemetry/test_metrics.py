"""Metrics: all of Kyverno's admission controller, and the settings of the ConfigMap."""

from __future__ import annotations

import pytest

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.controllers.background.controller import BackgroundController, BackgroundSettings
from pyverno.controllers.certificates.secrets import CertificateSettings
from pyverno.controllers.certificates.serving import ServingCertificates
from pyverno.controllers.cleanup.metrics import CleanupMetrics
from pyverno.controllers.reports.controller import ReportsController, ReportsSettings
from pyverno.controllers.state.policyinfo import PolicyInfo
from pyverno.engine.host import NO_HOST
from pyverno.kube.admissionreview import AdmissionRequest, BadReviewError
from pyverno.kube.json import JSONObject
from pyverno.offline.library import compile_policies
from pyverno.telemetry.catalog import METRICS
from pyverno.telemetry.instruments import DEFAULT_BUCKETS, Reading
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.metricsettings import MetricSettings, Namespaces
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.webhook.admission import answer
from pyverno.webhook.policies import Policies
from pyverno.webhook.routes import read_route
from tests.support.certificatereplicas import Replica
from tests.support.webhookserver import MemoryWorld, review_body
from tests.unit.telemetry.test_observer import POD, POLICY, QUESTION, outcome

RESULT = {
    *("policy_validation_mode", "policy_type", "policy_background_mode", "policy_namespace", "policy_name"),
    *("resource_kind", "resource_namespace", "resource_request_operation", "rule_name", "rule_result", "rule_type"),
    *("rule_execution_cause", "dry_run"),
}
REQUEST = {
    *("resource_kind", "resource_namespace", "resource_request_operation", "request_allowed", "request_webhook"),
}
CEL = {
    *("policy_name", "policy_namespace", "resource_kind", "resource_namespace", "resource_request_operation"),
    *("execution_cause", "result"),
}
MODE, BACKGROUND = {"policy_validation_mode"}, {"policy_background_mode"}
KYVERNO = {
    "kyverno_admission_requests": ("counter", REQUEST),
    "kyverno_admission_review_duration_seconds": ("histogram", REQUEST),
    "kyverno_policy_results": ("counter", RESULT),
    "kyverno_policy_execution_duration_seconds": ("histogram", RESULT),
    "kyverno_validating_policy_results": ("counter", CEL | MODE | BACKGROUND),
    "kyverno_validating_policy_execution_duration_seconds": ("histogram", CEL | MODE | BACKGROUND),
    "kyverno_image_validating_policy_results": ("counter", CEL | MODE | BACKGROUND),
    "kyverno_image_validating_policy_execution_duration_seconds": ("histogram", CEL | MODE | BACKGROUND),
    "kyverno_mutating_policy_results": ("counter", CEL | BACKGROUND),
    "kyverno_mutating_policy_execution_duration_seconds": ("histogram", CEL | BACKGROUND),
    "kyverno_generating_policy_results": ("counter", CEL),
    "kyverno_generating_policy_execution_duration_seconds": ("histogram", CEL),
    "kyverno_http_requests": ("counter", {"http_method", "http_url"}),
    "kyverno_http_requests_duration_seconds": ("histogram", {"http_method", "http_url"}),
    "kyverno_controller_reconcile": ("counter", {"controller_name"}),
    "kyverno_controller_requeue": ("counter", {"controller_name", "num_requeues"}),
    "kyverno_controller_drop": ("counter", {"controller_name"}),
    "kyverno_client_queries": ("counter", {"operation", "client_type", "resource_kind", "resource_namespace"}),
    "kyverno_events_dropped": ("counter", set()),
    "kyverno_breaker_total": ("counter", {"circuit_name"}),
    "kyverno_breaker_drops": ("counter", {"circuit_name"}),
    "kyverno_info": ("gauge", {"version"}),
}
"""Instruments of Kyverno's admission controller; those of policies are in `controllers.state.policyinfo`."""

CACHES = {"kyverno_cache_stale_seconds": "gauge", "kyverno_globalcontext_entry_unavailable": "gauge"}
"""Further instruments of the cluster's caches."""


def readings(metrics: Metrics) -> dict[str, Reading]:
    """Return the readings by name."""
    return {reading.name: reading for reading in metrics.read()}


def exposed(text: str) -> Metrics:
    """Return metrics with this `metricsExposure`."""
    metrics = Metrics()
    metrics.settings = MetricSettings.read({"metricsExposure": text})
    assert () == metrics.settings.problems
    metrics.begin()
    return metrics


def in_cel(kind: str, spec: JSONObject) -> AdmissionOutcome:
    """Return the results of a CEL policy for the Pod."""
    constraints = {
        "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    }
    policy = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "cel"},
        "spec": {"matchConstraints": constraints, **spec},
    }
    route = read_route({"ValidatingPolicy": "/vpol/cel", "MutatingPolicy": "/mpol/cel"}[kind])
    assert route is not None
    return answer(QUESTION, route, MemoryWorld(Policies(compile_policies([policy]))), NO_HOST)


def test_every_metric_of_kyverno_is_there_with_its_type_and_labels() -> None:
    """Metrics without a value are included."""
    found = {name: (each.kind, set(each.labels)) for name, each in readings(Metrics()).items()}
    assert KYVERNO == {name: found.get(name) for name in KYVERNO}


def test_every_metric_of_the_table_has_an_instrument() -> None:
    """The types are equal, and no other instrument exists."""
    metrics = Metrics()
    PolicyInfo(metrics.instruments, lambda: (), Namespaces)
    CleanupMetrics(metrics.instruments)
    client = Client(Access("https://192.0.2.1"))
    ServingCertificates(client, CertificateSettings(), Replica(client, CertificateSettings()), metrics)
    scanning = Metrics()
    ReportsController(Access("https://192.0.2.1"), ReportsSettings(), scanning)
    working = Metrics()
    BackgroundController(Access("https://192.0.2.1"), BackgroundSettings(), working)
    found = {**readings(working), **readings(scanning), **readings(metrics)}
    assert {name: reading.kind for name, reading in found.items()} | CACHES == {
        metric.name: metric.kind for metric in METRICS.values()
    }


def test_every_metric_has_a_help_and_a_type_in_the_text() -> None:
    """Scrapers read both."""
    text = Metrics().exposition().decode()
    for name, (kind, _) in KYVERNO.items():
        shown = f"{name.removesuffix('_total')}_total" if kind == "counter" else name
        assert f"# TYPE {shown} {kind}\n" in text
        assert f"# HELP {shown} " in text
    assert "process_resident_memory_bytes" in text


def test_results_are_counted_and_timed_once_for_each_rule() -> None:
    """The duration of a review is divided among its rules."""
    metrics = Metrics()
    for seconds in (0.02, 0.3, 0.3):
        metrics.answered(QUESTION, "/validate/fail", outcome(), seconds)
    found = readings(metrics)
    [count] = found["kyverno_policy_results"].numbers.values()
    [spread] = found["kyverno_policy_execution_duration_seconds"].spreads.values()
    assert (3, 3) == (count, sum(spread.counts))
    assert spread.total == pytest.approx(0.62)
    assert [0.025, 0.5] == [DEFAULT_BUCKETS[place] for place, counted in enumerate(spread.counts) if counted]


@pytest.mark.parametrize(
    ("kind", "spec", "word", "labels"),
    [
        (
            "ValidatingPolicy",
            {"validations": [{"expression": "false"}]},
            "validating",
            ("Deny", "true", "cel", "", "Pod", "default", "create", "admission_request", "fail"),
        ),
        (
            "MutatingPolicy",
            {
                "mutations": [
                    {
                        "patchType": "ApplyConfiguration",
                        "applyConfiguration": {"expression": 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'},
                    }
                ]
            },
            "mutating",
            ("true", "cel", "", "Pod", "default", "create", "admission_request", "pass"),
        ),
    ],
)
def test_policies_in_cel_have_metrics_of_their_own(
    kind: str, spec: JSONObject, word: str, labels: tuple[str, ...]
) -> None:
    """Their labels are those of their policy family."""
    metrics = Metrics()
    metrics.answered(QUESTION, "/any", in_cel(kind, spec), 0.1)
    found = readings(metrics)
    assert {labels: 1} == found[f"kyverno_{word}_policy_results"].numbers
    assert [labels] == list(found[f"kyverno_{word}_policy_execution_duration_seconds"].spreads)
    assert {} == found["kyverno_policy_results"].numbers


def test_a_metric_that_is_switched_off_is_not_shown() -> None:
    """It is not counted either."""
    metrics = exposed('{"kyverno_policy_results": {"enabled": false}}')
    metrics.answered(QUESTION, "/validate/fail", outcome(), 0.02)
    assert "kyverno_policy_results" not in metrics.exposition().decode()
    assert "kyverno_policy_execution_duration_seconds_count" in metrics.exposition().decode()


def test_a_metric_goes_without_the_labels_that_are_switched_off() -> None:
    """Series that become equal are added up."""
    name = "kyverno_admission_requests"
    metrics = exposed(f'{{"{name}": {{"disabledLabelDimensions": ["resource_namespace", "resource_kind"]}}}}')
    for namespace in ("a", "b"):
        admission_request = AdmissionRequest(
            "v1", "1", {"kind": {"kind": "Pod"}, "operation": "CREATE", "namespace": namespace}
        )
        metrics.answered(admission_request, "/validate/fail", AdmissionOutcome(outcome().answer), 0.02)
    found = readings(metrics)[name]
    assert {("create", "false", "ValidatingWebhookConfiguration"): 2} == found.numbers
    assert ("resource_request_operation", "request_allowed", "request_webhook") == found.labels


def test_the_key_of_a_metric_is_its_name_without_total() -> None:
    """This is Kyverno's rule; a metric whose name ends in `total` keeps it."""
    metrics = exposed('{"kyverno_policy_results_total": {"enabled": false}}')
    assert "kyverno_policy_results_total" in metrics.exposition().decode()


def test_a_metric_may_have_buckets_of_its_own() -> None:
    """The order does not matter; other metrics have those of `bucketBoundaries`."""
    metrics = Metrics()
    own = '{"kyverno_policy_execution_duration_seconds": {"bucketBoundaries": [2, 1]}}'
    metrics.settings = MetricSettings.read({"bucketBoundaries": "0.5", "metricsExposure": own})
    metrics.begin()
    metrics.answered(QUESTION, "/validate/fail", outcome(), 1.5)
    lines = metrics.exposition().decode().splitlines()
    name = "kyverno_policy_execution_duration_seconds_bucket"
    assert [("1.0", "0.0"), ("2.0", "1.0"), ("+Inf", "1.0")] == [
        (line.partition('le="')[2].partition('"')[0], line.split()[-1]) for line in lines if line.startswith(name)
    ]
    name = "kyverno_admission_review_duration_seconds_bucket"
    assert ["0.0", "1.0"] == [line.split()[-1] for line in lines if line.startswith(name)]


def test_buckets_and_labels_wait_for_the_next_beginning() -> None:
    """A change of the ConfigMap applies to namespaces at once, and to the rest when counters are reset."""
    metrics = Metrics()
    metrics.settings = MetricSettings.read(
        {"namespaces": '{"exclude": ["default"]}', "metricsExposure": '{"kyverno_http_requests": {"enabled": false}}'}
    )
    metrics.answered(QUESTION, "/validate/fail", outcome(), 0.1)
    found = readings(metrics)
    assert ({}, 1) == (found["kyverno_admission_requests"].numbers, len(found["kyverno_http_requests"].numbers))
    metrics.begin()
    assert "kyverno_http_requests" not in readings(metrics)


def test_counters_are_reset() -> None:
    """Counts and pending counts are dropped; gauges that read a value remain."""
    metrics = Metrics()
    metrics.answered(QUESTION, "/validate/fail", outcome(), 0.1)
    metrics.begin()
    found = readings(metrics)
    assert not any(each.numbers or each.spreads for each in found.values() if each.kind != "gauge")
    assert 1 == len(found["kyverno_info"].numbers)


def test_results_go_by_the_namespace_of_their_policy() -> None:
    """Results of cluster policies are always counted."""
    own = {**POLICY, "kind": "Policy", "metadata": {"name": "own", "namespace": "default"}}
    route = read_route("/validate/fail")
    assert route is not None
    world = MemoryWorld(Policies(compile_policies([POLICY, own])))
    metrics = Metrics()
    metrics.settings = MetricSettings.read({"namespaces": '{"exclude": ["default"]}'})
    metrics.answered(QUESTION, "/validate/fail", answer(QUESTION, route, world, NO_HOST), 0.1)
    found = readings(metrics)["kyverno_policy_results"]
    place = found.labels.index("policy_name")
    assert ["check"] == [labels[place] for labels in found.numbers]


def test_unknown_paths_share_one_series() -> None:
    """Callers choose the path, so it is no label."""
    metrics = Metrics()
    for path in ("/x", "/y/z", "*"):
        metrics.failed(path, BadReviewError(404, "no"))
    assert {("POST", "other"): 3} == readings(metrics)["kyverno_http_requests"].numbers


def test_what_controllers_do_is_counted() -> None:
    """The label is the name of the controller."""
    metrics = Metrics()
    metrics.reconciled("webhook-controller")
    metrics.requeued("webhook-controller", 2)
    metrics.gave_up("event-generator")
    metrics.queried("update_status", "clusterpolicies", "")
    metrics.dropped_event()
    metrics.count_breaker_call("admission reports", is_open=False)
    metrics.count_breaker_call("admission reports", is_open=True)
    found = readings(metrics)
    assert {("webhook-controller",): 1} == found["kyverno_controller_reconcile"].numbers
    assert {("webhook-controller", "2"): 1} == found["kyverno_controller_requeue"].numbers
    assert {("event-generator",): 1} == found["kyverno_controller_drop"].numbers
    assert {("update_status", "dynamic", "clusterpolicies", ""): 1} == found["kyverno_client_queries"].numbers
    assert {(): 1} == found["kyverno_events_dropped"].numbers
    assert ({("admission reports",): 2}, {("admission reports",): 1}) == (
        found["kyverno_breaker_total"].numbers,
        found["kyverno_breaker_drops"].numbers,
    )


def test_one_pod_is_enough_for_the_labels_of_a_request() -> None:
    """Labels come from the request, not from the object."""
    body = review_body(POD)["request"]
    admission_request = AdmissionRequest("v1", "1", {**body, "operation": "DELETE", "dryRun": True})
    metrics = Metrics()
    metrics.answered(admission_request, "/validate/fail", outcome(), 0.1)
    found = readings(metrics)["kyverno_policy_results"]
    [labels] = found.numbers
    said = dict(zip(found.labels, labels, strict=True))
    assert ("delete", "true", "Pod") == (
        said["resource_request_operation"],
        said["dry_run"],
        said["resource_kind"],
    )
