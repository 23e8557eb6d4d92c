"""The requests of cases are those that an API server sends."""

from __future__ import annotations

from pyverno.compiler.equivalence.case import Case
from pyverno.engine.request import Operation
from pyverno.policy.kinds import KNOWN_KINDS


def test_a_namespace_has_the_label_with_its_name() -> None:
    """Beside labels of its own."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}
    request = Case(body, Operation.CREATE, labels={"env": "prod"}).request()
    assert {"env": "prod", "kubernetes.io/metadata.name": "n"} == request.namespace_labels


def test_a_namespace_is_in_itself() -> None:
    """As the API server sends it."""
    request = Case({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, Operation.CREATE).request()
    assert ("n", None) == (request.namespace, request.namespace_labels)


def test_a_deletion_has_only_the_old_object() -> None:
    """The new one is null."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    request = Case(body, Operation.DELETE).request()
    assert (None, body) == (request.object, request.old)


def test_options_belong_to_the_parent() -> None:
    """They have no metadata: name and namespace are those of the request."""
    (pod,) = KNOWN_KINDS.by_kind("Pod")
    case = Case({"apiVersion": "v1", "kind": "PodExecOptions"}, Operation.CONNECT, subresource="exec", parent=pod)
    request = case.request()
    assert "v1/Pod/exec CONNECT" == case.name
    assert ("Pod", "exec", "default") == (request.gvk.kind, request.subresource, request.namespace)
