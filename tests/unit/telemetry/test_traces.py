"""Answers as spans, with an in-memory exporter."""

from __future__ import annotations

from itertools import pairwise

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse, BadReviewError
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.telemetry.traces import Traces
from pyverno.webhook.admission import ALLOWED
from tests.unit.telemetry.test_observer import QUESTION, outcome
from tests.unit.telemetry.test_payloadlog import SECRET, WORD, request_on


def spans(
    admission_request: AdmissionRequest, answer: AdmissionOutcome, seconds: float = 0.5
) -> dict[str, ReadableSpan]:
    """Return the spans of one answer by name."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces = Traces(provider.get_tracer("test"))
    if seconds < 0:
        traces.failed("/validate/fail", BadReviewError(400, "no"))
    else:
        traces.answered(admission_request, "/validate/fail", answer, seconds)
    return {span.name: span for span in exporter.get_finished_spans()}


def test_a_request_has_spans_down_to_its_rules() -> None:
    """Spans are nested and within the time of the review."""
    found = spans(QUESTION, outcome())
    names = ["ADMISSION POST /validate/fail", "VALIDATE CREATE v1, Kind=Pod", "POLICY /check", "RULE rule"]
    assert sorted(names) == sorted(found)
    for above, below in pairwise(names):
        assert found[above].context.span_id == found[below].parent.span_id
        assert found[above].start_time <= found[below].start_time <= found[below].end_time <= found[above].end_time
    top = found[names[0]]
    assert top.parent is None
    assert 500_000_000 == top.end_time - top.start_time


def test_attributes_are_kyvernos() -> None:
    """They cover the request, the response, the policy and the rule."""
    found = spans(QUESTION, outcome())
    admission = found["VALIDATE CREATE v1, Kind=Pod"].attributes
    assert {
        "admission.request.name": "web",
        "admission.request.namespace": "default",
        "admission.request.uid": "uid-1",
        "admission.request.operation": "CREATE",
        "admission.request.dryrun": False,
        "admission.request.kind.kind": "Pod",
        "admission.request.kind.version": "v1",
        "admission.request.resource.resource": "pods",
        "admission.request.user.name": "alice",
        "admission.response.allowed": False,
        "admission.response.result.status": "Failure",
    }.items() <= dict(admission or {}).items()
    rule = dict(found["RULE rule"].attributes or {})
    assert {
        "kyverno.policy.group": "kyverno.io",
        "kyverno.policy.version": "v1",
        "kyverno.policy.kind": "ClusterPolicy",
        "kyverno.policy.name": "check",
        "kyverno.policy.namespace": "",
        "kyverno.rule.name": "rule",
        "kyverno.rule.result": "fail",
    } == rule


def test_texts_are_cut_at_256_characters() -> None:
    """Backends accept no longer ones."""
    found = spans(QUESTION, AdmissionOutcome(AdmissionResponse(allowed=False, message="x" * 1000)))
    message = (found["VALIDATE CREATE v1, Kind=Pod"].attributes or {})["admission.response.result.message"]
    assert "x" * 253 + "..." == message


def test_the_message_of_a_policy_on_a_secret_is_in_no_span() -> None:
    """The message may quote its data."""
    answer = AdmissionOutcome(AdmissionResponse(allowed=False, message=f"wrong: {WORD}", warnings=(WORD,)))
    found = spans(request_on(SECRET), answer)
    assert WORD not in repr([dict(span.attributes or {}) for span in found.values()])


def test_an_answer_without_a_review_has_no_rules() -> None:
    """A filtered request is an example."""
    assert 2 == len(spans(QUESTION, ALLOWED))


def test_a_refusal_is_an_error() -> None:
    """The reason is left out, because it holds a caller's text."""
    [span] = spans(QUESTION, ALLOWED, -1).values()
    assert (StatusCode.ERROR, "BadReviewError") == (span.status.status_code, span.status.description)
