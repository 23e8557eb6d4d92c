"""Whole requests in the log: only on request, and never the data of a Secret."""

from __future__ import annotations

import logging

import pytest

from pyverno.engine.host import NO_HOST
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.kube.json import JSONObject
from pyverno.offline.library import compile_policies
from pyverno.telemetry.logs import AnswerLog
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.telemetry.payloadlog import PayloadLog
from pyverno.webhook.admission import answer
from pyverno.webhook.policies import Policies
from pyverno.webhook.routes import read_route
from tests.support.webhookserver import MemoryWorld, review_body

WORD = "c2VjcmV0LXdvcmQ="
SECRET: JSONObject = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "db",
        "namespace": "default",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": f'{{"data":{{"password":"{WORD}"}}}}'},
    },
    "data": {"password": WORD},
    "stringData": {"other": WORD},
}
POD: JSONObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}}
LEAKING: JSONObject = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "check"},
    "spec": {
        "rules": [
            {
                "name": "rule",
                "match": {"any": [{"resources": {"kinds": ["Secret"]}}]},
                "validate": {
                    "failureAction": "Enforce",
                    "message": "wrong: {{ request.object.data.password }}",
                    "deny": {},
                },
            }
        ]
    },
}


def request_on(body: JSONObject, old: JSONObject | None = None) -> AdmissionRequest:
    """Return a request on an object."""
    request = review_body(body)["request"]
    return AdmissionRequest("admission.k8s.io/v1", "uid-1", request | ({"oldObject": old} if old else {}))


def fields(caplog: pytest.LogCaptureFixture) -> list[JSONObject]:
    """Return the fields of the log entries."""
    return [record.fields for record in caplog.records]


@pytest.fixture(autouse=True)
def default_verbosity(caplog: pytest.LogCaptureFixture) -> None:
    """Capture the log at the default verbosity."""
    caplog.set_level(logging.INFO, "pyverno")


def test_nothing_is_dumped_by_default(caplog: pytest.LogCaptureFixture) -> None:
    """This covers requests and patches."""
    PayloadLog().answered(
        request_on(POD), "/mutate", AdmissionOutcome(AdmissionResponse(patch=[{"op": "remove", "path": "/a"}])), 0
    )
    assert [] == fields(caplog)


def test_a_request_is_dumped_with_its_answer(caplog: pytest.LogCaptureFixture) -> None:
    """The request is logged unchanged."""
    PayloadLog(payloads=True).answered(
        request_on(POD), "/validate", AdmissionOutcome(AdmissionResponse(allowed=False, message="no")), 0
    )
    [found] = fields(caplog)
    assert request_on(POD).request == found["admission.request"]
    assert {"allowed": False, "patch": [], "message": "no", "warnings": []} == found["admission.response"]


def test_a_patch_is_dumped(caplog: pytest.LogCaptureFixture) -> None:
    """A request without a patch has no such line."""
    patch = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
    log = PayloadLog(patches=True)
    log.answered(request_on(POD), "/mutate", AdmissionOutcome(AdmissionResponse(patch=patch)), 0)
    log.answered(request_on(POD), "/mutate", AdmissionOutcome(AdmissionResponse()), 0)
    assert [{"uid": "uid-1", "path": "/mutate", "patch": patch}] == fields(caplog)


def test_the_data_of_a_secret_is_in_no_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Sources are the object, the old object, a copy in an annotation, a patch, and the message of a rule."""
    admission_request = request_on(SECRET, SECRET)
    route = read_route("/validate/fail")
    assert route is not None
    outcome = answer(admission_request, route, MemoryWorld(Policies(compile_policies([LEAKING]))), NO_HOST)
    assert WORD in outcome.answer.message
    patched = AdmissionOutcome(
        AdmissionResponse(patch=[{"op": "add", "path": "/data/password", "value": WORD}]), outcome.review
    )
    for each in (outcome, patched):
        for observer in (AnswerLog(), PayloadLog(payloads=True, patches=True)):
            observer.answered(admission_request, "/validate/fail", each, 0)
    found = fields(caplog)
    assert "password" in repr(found)
    assert WORD not in repr(found)
    assert "db" == found[0]["name"]
