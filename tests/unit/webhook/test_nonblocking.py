"""Reviews on the event loop: they use data that the Host has in memory, and nothing else."""

from __future__ import annotations

import pytest

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.host import NO_HOST, NoHost, Read, Reader
from pyverno.engine.phases import MUTATING, VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.kube.apipath import parse_api_path
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.yaml.documents import load_documents
from pyverno.webhook.nonblocking import NeedsWorkerError, NonblockingHost

SETTINGS: JSONObject = {"metadata": {"name": "settings"}, "data": {"a": "1"}}


class _Remembering(NoHost):
    """Has one ConfigMap and one global context entry in memory; other entries would have to be computed."""

    allows_http_in_namespaces = True

    def cached_config_map(self, namespace: str, name: str) -> JSONObject | None:
        return SETTINGS if (namespace, name) == ("default", "settings") else None

    def is_entry_cached(self, name: str) -> bool:
        return name == "near"

    def object_at_hand(self, api_version: str, kind: str, namespace: str, name: str) -> JSONObject | None:
        return SETTINGS if (kind, namespace, name) == ("ConfigMap", "default", "settings") else None

    def is_read_granted(self, reader: Reader, read: Read) -> bool:
        return read.name == "settings"

    def global_entry(self, name: str) -> JSON:
        return [name]


def test_what_is_in_memory_is_answered_at_once() -> None:
    """ConfigMaps, entries and objects in the memory of the Host need no worker thread."""
    host = NonblockingHost(_Remembering())
    assert SETTINGS == host.config_map("default", "settings")
    assert ["near"] == host.global_entry("near")
    assert SETTINGS == host.get_object("v1", "ConfigMap", "default", "settings")
    assert host.allows_http_in_namespaces


def test_what_is_not_in_memory_needs_a_worker() -> None:
    """Cases are an object that is not in memory, and an entry that would have to be computed."""
    host = NonblockingHost(_Remembering())
    with pytest.raises(NeedsWorkerError):
        host.config_map("default", "other")
    with pytest.raises(NeedsWorkerError):
        host.global_entry("far")
    with pytest.raises(NeedsWorkerError):
        host.get_object("v1", "ConfigMap", "default", "other")
    with pytest.raises(NeedsWorkerError):
        host.get_object("v1", "ConfigMap", "default", "settings", subresource="status")


def test_a_host_without_memory_needs_a_worker_for_everything() -> None:
    """Only clock, randomness, kinds and supplied variables need no worker."""
    host = NonblockingHost(NO_HOST)
    for ask in (
        lambda: host.config_map("default", "settings"),
        lambda: host.global_entry("near"),
        lambda: host.api_call(parse_api_path("/version"), method="GET", body=None),
        lambda: host.lookup_host("example.com"),
    ):
        with pytest.raises(NeedsWorkerError):
            ask()
    assert BUILTIN_KINDS is host.kinds
    assert not host.allows_http_in_namespaces


_DEAR = """
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: dear}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps]}]
  validations: [{expression: "object.data.all(a, object.data.all(b, a != b || a == b))"}]
"""


@pytest.mark.parametrize("keys", [200, 600])
def test_a_review_that_computes_for_long_needs_a_worker(keys: int) -> None:
    """It stops on the loop without a result; in a worker it has the same result as without a time limit."""
    engine = Engine(compile_documents(load_documents(_DEAR)).policy_set())
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    request = Request.from_manifest({**body, "data": {f"k{number}": "x" for number in range(keys)}})
    hurried, patient = NonblockingHost(NO_HOST, seconds=0), NonblockingHost(NO_HOST, seconds=3600)
    with pytest.raises(NeedsWorkerError):
        engine.review(request, VALIDATING, budget=hurried.budget(None))
    assert engine.review(request, VALIDATING) == engine.review(request, VALIDATING, budget=patient.budget(None))


def test_a_review_that_is_over_within_the_patience_needs_no_worker() -> None:
    """The clock is read before each rule; a review that ends in time stays on the loop."""
    budget = NonblockingHost(NO_HOST, seconds=3600).budget(None)
    request = Request.from_manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": "b"}})
    review = Engine(compile_documents(load_documents(_DEAR)).policy_set()).review(request, VALIDATING, budget=budget)
    assert [result.status.value for result in review.results] == ["pass"]


def test_a_review_of_images_needs_a_worker() -> None:
    """The event loop neither reads a registry nor looks up cached data of images."""
    policy = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: check
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["*"]
      attestors: [{entries: [{keys: {publicKeys: "k8s://keys/signing", rekor: {url: "https://x", ignoreTlog: true}}}]}]
"""
    compiled = compile_documents(load_documents(policy))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}
    pod["spec"] = {"containers": [{"name": "web", "image": "nginx"}]}
    engine = Engine(PolicySet(compiled.policies), NonblockingHost(NO_HOST))
    with pytest.raises(NeedsWorkerError):
        engine.review(Request.from_manifest(pod), MUTATING)
