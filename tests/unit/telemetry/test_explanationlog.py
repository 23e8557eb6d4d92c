"""Explanations of selected requests in the log: their selection, number and content."""

import logging

import pytest

import pyverno
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse, read_admission_review
from pyverno.kube.json import dump
from pyverno.telemetry.explanationlog import LIMIT, ExplanationLog
from pyverno.telemetry.observer import AdmissionOutcome

POLICIES = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: tags}
spec:
  rules:
  - name: latest
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: m, pattern: {spec: {hostPID: false}}}
"""
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"hostPID": True}}


def reviewed() -> tuple[AdmissionRequest, AdmissionOutcome]:
    """Return a request for the Pod, with its review."""
    review = pyverno.review(POD, pyverno.load_policies(POLICIES))
    request = {
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "name": "web",
        "namespace": "shop",
        "userInfo": {"username": "ada"},
        "object": POD,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    found = read_admission_review(dump(body))
    return found, AdmissionOutcome(AdmissionResponse(allowed=True), review)


def logged(caplog: pytest.LogCaptureFixture, *patterns: str, times: int = 1) -> list[dict]:
    """Return the log entries of some requests for the Pod at the same moment."""
    request, outcome = reviewed()
    observer = ExplanationLog(patterns, clock=lambda: 0.0)
    with caplog.at_level(logging.INFO, logger="pyverno.webhook"):
        for _ in range(times):
            observer.answered(request, "/validate", outcome, 0.001)
        observer.close()
    return [record.fields for record in caplog.records if record.message == "explanation"]


def test_a_chosen_request_is_explained_with_its_uid(caplog: pytest.LogCaptureFixture) -> None:
    """The lines equal those of `pyverno explain`."""
    [fields] = logged(caplog, "shop/Pod/*")
    assert ("u-1", "tags/latest: fail", True, 0) == (
        fields["uid"],
        fields["explanation"][0],
        "    spec.hostPID: wanted false, found true" in fields["explanation"],
        fields["omitted"],
    )


def test_other_requests_are_not_explained(caplog: pytest.LogCaptureFixture) -> None:
    """A pattern for another namespace selects nothing."""
    assert [] == logged(caplog, "prod/Pod/*")


def test_explanations_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """A frequent request stays within the limit of explanations a minute."""
    assert LIMIT == len(logged(caplog, "*", times=LIMIT + 5))
