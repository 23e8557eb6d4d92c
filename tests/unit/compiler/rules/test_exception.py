"""Exceptions of kyverno.io as they are compiled."""

from __future__ import annotations

import pytest

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import Status
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: m, deny: {}}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: team}
spec:
  exceptions: [{policyName: p, ruleNames: [r]}]
  match: {any: [{resources: {kinds: [KIND]}}]}
"""
POD: JSONObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "team"}}


@pytest.mark.parametrize(
    ("kind", "statuses"), [("Pod", [Status.SKIP]), ("Pod/ephemeralcontainers", [Status.SKIP]), ("Job", [Status.FAIL])]
)
def test_an_exception_for_pods_covers_their_ephemeral_containers(kind: str, statuses: list[Status]) -> None:
    """As a rule for Pods does: otherwise nobody could debug a Pod that is exempt."""
    compilation = compile_documents(load_documents(POLICY.replace("KIND", kind)))
    assert () == compilation.errors
    request = Request.from_manifest(POD, operation=Operation.UPDATE, old=POD, subresource="ephemeralcontainers")
    review = Engine(PolicySet(compilation.policies, compilation.exceptions)).review(request)
    assert statuses == [result.status for result in review.results]
