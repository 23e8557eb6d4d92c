"""The admission request inside of an UpdateRequest: as it came, but never larger than etcd takes."""

from __future__ import annotations

import orjson
import pytest

from pyverno.compiler.compile import compile_documents
from pyverno.controllers.admission.updaterequests import update_requests
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.triggers import Triggers
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.offline.host import OfflineHost

POLICY: JSONObject = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "touch"},
    "spec": {
        "rules": [
            {
                "name": "touch",
                "match": {
                    "any": [{"resources": {"kinds": ["ConfigMap"], "operations": ["CREATE", "UPDATE", "DELETE"]}}]
                },
                "mutate": {
                    "targets": [{"apiVersion": "v1", "kind": "Secret", "name": "one", "namespace": "team"}],
                    "patchStrategicMerge": {"metadata": {"labels": {"seen": "yes"}}},
                },
            }
        ]
    },
}


def config_map(size: int, letter: str) -> JSONObject:
    """Return a ConfigMap of so many bytes."""
    metadata = {"name": "settings", "namespace": "team", "uid": "1"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": letter * size}}


def _all() -> tuple[tuple[str, JSONObject | None, JSONObject | None], ...]:
    before, after = config_map(9, "a"), config_map(9, "b")
    return ("CREATE", None, after), ("UPDATE", before, after), ("DELETE", before, None)


def written(operation: str, before: JSONObject | None, after: JSONObject | None) -> JSONObject:
    """Return the UpdateRequest of a request, as it is sent to the API server."""
    admission = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "operation": operation,
        "namespace": "team",
        "name": "settings",
        "userInfo": {"username": "alice"},
        "object": after,
        "oldObject": before,
    }
    request = Request.from_admission_review(admission)
    found = Triggers(PolicySet(compile_documents([Document(POLICY, "")]).policies)).of(request, OfflineHost())
    (spec,) = update_requests(found, request, admission)
    return spec.to_json("kyverno")


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_objects_are_referenced(operation: str) -> None:
    """Nothing of an object is in an UpdateRequest but what names it and its version, however large it is (68130831)."""
    before, after = (config_map(1_048_000, letter) for letter in "ab")
    body = written(operation, None if operation == "CREATE" else before, None if operation == "DELETE" else after)
    sent = body["spec"]["context"]["admissionRequestInfo"]["admissionRequest"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": before["metadata"]}
    assert (None if operation == "CREATE" else reference) == sent["oldObject"]
    assert (None if operation == "DELETE" else reference) == sent["object"]
    assert len(orjson.dumps(body)) < 2048


@pytest.mark.parametrize(("letter", "expected"), [("a", True), ("b", None)])
def test_an_update_that_changes_nothing_says_so(letter: str, expected: bool | None) -> None:
    """References of both versions are equal then, and there is no later version to wait for."""
    body = written("UPDATE", config_map(9, "a"), config_map(9, letter))
    sent = body["spec"]["context"]["admissionRequestInfo"]["admissionRequest"]
    assert expected == sent.get("pyverno.io/unchanged")


def test_what_is_deleted_is_kept_apart() -> None:
    """The request notes that its deleted object is in a Secret; others need none."""
    found = [written(*each)["metadata"].get("annotations") for each in _all()]
    assert [None, None, {"pyverno.io/kept-object": "true"}] == found
