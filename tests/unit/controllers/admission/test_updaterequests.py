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

ETCD = 1_572_864
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


@pytest.mark.parametrize("size", [100, 550_000, 700_000, 1_000_000, 1_048_000])
def test_etcd_takes_the_update_request_of_every_config_map(size: int) -> None:
    """Both versions may be as large as a ConfigMap can be; what triggers work is not lost by its size (68130831)."""
    body = written("UPDATE", config_map(size, "a"), config_map(size, "b"))
    assert len(orjson.dumps(body)) < ETCD
    sent = body["spec"]["context"]["admissionRequestInfo"]["admissionRequest"]
    assert sent["oldObject"]["data"]["text"] == "a" * size
    assert ("object" in sent) is (size < 600_000)


@pytest.mark.parametrize("operation", ["CREATE", "DELETE"])
def test_one_version_stays_as_it_is(operation: str) -> None:
    """There is one object, which the API server stored in etcd itself."""
    large = config_map(1_048_000, "a")
    before, after = (None, large) if operation == "CREATE" else (large, None)
    body = written(operation, before, after)
    assert len(orjson.dumps(body)) < ETCD
    sent = body["spec"]["context"]["admissionRequestInfo"]["admissionRequest"]
    assert (before, after) == (sent["oldObject"], sent["object"])
