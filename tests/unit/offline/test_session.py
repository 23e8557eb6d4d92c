"""Sessions: policies, fake cluster, values and user in one value, for every kind of review."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pyverno.compiler import compile_documents
from pyverno.engine.request import Operation, User
from pyverno.errors import UsageError
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.objects import ObjectStore
from pyverno.offline.session import Session
from pyverno.offline.values import PolicyValues, ResourceValues, Values

if TYPE_CHECKING:
    from pyverno.kube.json import JSONObject

POLICIES = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owned}
spec:
  background: false
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      message: "{{ request.userInfo.username }} must name an owner"
      pattern: {metadata: {labels: {owner: "?*"}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: known-owner}
spec:
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap], operations: [UPDATE]}}]}
    context:
    - name: owners
      configMap: {name: owners, namespace: default}
    validate:
      message: the owner is unknown
      deny: {conditions: {all: [{key: "{{ owners.data.known }}", operator: NotEquals, value: ada}]}}
"""
MANIFEST: JSONObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "default"},
}
OWNERS: JSONObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "owners", "namespace": "default"},
    "data": {"known": "ada"},
}


def opened(text: str = POLICIES, **more: Any) -> Session:
    """Return a session over policies."""
    return Session.open(compile_documents(load_documents(text)), **more)


def statuses(session: Session, operation: Operation | None = None) -> list[tuple[str, str]]:
    """Return policy and status of every result of the manifest."""
    return [
        (result.rule.policy.name, result.status.value)
        for result in session.review(MANIFEST, operation=operation).results
    ]


def test_a_session_is_made_of_documents() -> None:
    """No flags, no files: compiled policies are enough."""
    assert [("owned", "fail")] == statuses(opened())


def test_the_operation_of_the_values_is_overridden() -> None:
    """The operation that a review names takes precedence."""
    resources = (ResourceValues("settings", {"request.operation": "UPDATE"}),)
    session = opened(
        objects=ObjectStore([OWNERS]),
        values=Values(policies=(PolicyValues("known-owner", resources=resources),)),
    )
    assert [("owned", "fail"), ("known-owner", "pass")] == statuses(session)
    assert [("owned", "fail")] == statuses(session, operation=Operation.CREATE)


def test_an_unknown_operation_of_the_values_is_a_usage_error() -> None:
    """It names the value and the operations."""
    session = opened(values=Values(global_values={"request.operation": "READ"}))
    with pytest.raises(UsageError, match=r'value "READ", must be one of CREATE, UPDATE, DELETE, CONNECT'):
        session.review(MANIFEST)


def test_without_objects_there_is_no_cluster() -> None:
    """A rule that reads one is an error, not a pass."""
    session = opened()
    assert [("known-owner", "error"), ("owned", "fail")] == sorted(statuses(session, operation=Operation.UPDATE))


def test_requests_come_from_the_user_of_the_session() -> None:
    """Variables in policies show the user of the session."""
    (result,) = opened(user=User("root")).review(MANIFEST).results
    assert "root must name an owner" in result.message


def test_documents_that_are_not_valid_are_errors_of_the_session() -> None:
    """The remaining documents are still used."""
    session = opened(POLICIES.replace("pattern:", "patern:"))
    assert ["known-owner"] == [policy.info.name for policy in session.policies]
    assert 2 == len(session.compilation.items)
    assert session.errors


def test_payloads_are_reviewed_only_by_policies_that_read_payloads() -> None:
    """Also after manifests were reviewed with all policies."""
    session = opened()
    assert [("owned", "fail")] == statuses(session)
    assert () == session.payload(MANIFEST).results
