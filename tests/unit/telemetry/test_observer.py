"""The observer of answers: metrics with Kyverno's names, and log lines with their fields."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import orjson
import pytest

from pyverno.engine.host import NO_HOST
from pyverno.kube.admissionreview import AdmissionRequest, BadReviewError
from pyverno.kube.json import JSONObject
from pyverno.offline.library import compile_policies
from pyverno.telemetry.logs import AnswerLog, LogSettings, set_up_logging
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.observer import AdmissionOutcome, Observers
from pyverno.webhook.admission import answer
from pyverno.webhook.policies import Policies
from pyverno.webhook.routes import read_route
from tests.support.webhookserver import MemoryWorld, Recorded, review_body

POD: JSONObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}}
POLICY: JSONObject = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "check"},
    "spec": {
        "rules": [
            {
                "name": "rule",
                "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                "validate": {
                    "failureAction": "Enforce",
                    "message": "no",
                    "pattern": {"metadata": {"labels": {"a": "?*"}}},
                },
            }
        ]
    },
}
QUESTION = AdmissionRequest("admission.k8s.io/v1", "uid-1", review_body(POD)["request"])


def outcome() -> AdmissionOutcome:
    """Return the outcome of a denial."""
    route = read_route("/validate/fail")
    assert route is not None
    return answer(QUESTION, route, MemoryWorld(Policies(compile_policies([POLICY]))), NO_HOST)


def test_metrics_have_the_names_and_labels_of_kyverno() -> None:
    """Existing dashboards keep working."""
    metrics = Metrics()
    metrics.answered(QUESTION, "/validate/fail", outcome(), 0.02)
    metrics.failed("/validate", BadReviewError(400, "no"))
    text = metrics.exposition().decode()
    request = (
        'request_allowed="false",request_webhook="ValidatingWebhookConfiguration",resource_kind="Pod",'
        'resource_namespace="default",resource_request_operation="create"'
    )
    assert f"kyverno_admission_requests_total{{{request}}} 1.0" in text
    assert f'kyverno_admission_review_duration_seconds_bucket{{le="0.025",{request}}} 1.0' in text
    assert (
        'kyverno_policy_results_total{dry_run="false",policy_background_mode="true",policy_name="check",'
        'policy_namespace="-",policy_type="cluster",policy_validation_mode="enforce",resource_kind="Pod",'
        'resource_namespace="default",resource_request_operation="create",'
        'rule_execution_cause="admission_request",rule_name="rule",rule_result="fail",rule_type="validate"} 1.0'
    ) in text
    assert 'kyverno_http_requests_total{http_method="POST",http_url="/validate"} 2.0' in text


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Capture the JSON log of a test."""
    stream = io.StringIO()
    before = logging.getLogger().handlers[:]
    set_up_logging(LogSettings("json"), stream)
    yield stream
    logging.getLogger().handlers[:] = before


def test_a_denial_is_logged_with_policy_rule_resource_user_and_verdict(lines: io.StringIO) -> None:
    """The request and each rule have one line; none contains the body of a resource."""
    AnswerLog().answered(QUESTION, "/validate/fail", outcome(), 0.5)
    request, rule = (orjson.loads(line) for line in lines.getvalue().splitlines())
    assert ("admission request denied", "alice", "Pod", "web", 1) == (
        request["msg"],
        request["user"],
        request["kind"],
        request["name"],
        request["results"],
    )
    assert ("validation failed", "check", "rule", "fail") == (
        rule["msg"],
        rule["policy"],
        rule["rule"],
        rule["verdict"],
    )


def test_a_refusal_is_logged_and_an_internal_error_with_its_traceback(lines: io.StringIO) -> None:
    """A bad request is the caller's fault, so its line has level info."""
    AnswerLog().failed("/validate", BadReviewError(400, "empty body"))
    try:
        raise KeyError("x")
    except KeyError as error:
        AnswerLog().failed("/validate", error)
    refused, broken = (orjson.loads(line) for line in lines.getvalue().splitlines())
    assert ("info", "empty body") == (refused["level"], refused["error"])
    assert "error" == broken["level"]
    assert "KeyError" in broken["error"]


def test_an_observer_that_breaks_does_not_disturb_the_others(lines: io.StringIO) -> None:
    """The answer was already sent; the exception is logged."""

    class Broken(Recorded):
        def answered(
            self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
        ) -> None:
            raise RuntimeError("broken")

    kept = Recorded()
    Observers(Broken(), kept).answered(QUESTION, "/validate", outcome(), 0)
    assert 1 == len(kept.answers)
    assert "an observer of answers failed" in lines.getvalue()
