"""NamespaceLifecycle."""

from __future__ import annotations

import pytest

from kubesandbox.admission.plugins.lifecycle import check_namespace
from pyverno.engine.request import Operation
from pyverno.kube.status import StatusError
from tests.support.admissionstage import cluster, config_map, in_store, namespace, request


def refusal(attributes, *bodies) -> StatusError:
    _, view = cluster(*bodies)
    with pytest.raises(StatusError) as refused:
        check_namespace(attributes, view)
    return refused.value


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_never_end(name):
    """The three that every cluster needs cannot be deleted."""
    error = refusal(request(None, old=namespace(name), operation=Operation.DELETE))
    assert 403 == error.status
    assert f'namespaces "{name}" is forbidden: this namespace may not be deleted' == error.message


def test_other_namespaces_may_be_deleted():
    """Only the namespaces of the system are protected."""
    _, view = cluster()
    check_namespace(request(None, old=namespace("kube-node-lease"), operation=Operation.DELETE), view)


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
def test_objects_need_a_namespace_that_exists(operation):
    """A write into a missing namespace gives 404 for the namespace."""
    body = config_map()
    body["metadata"]["namespace"] = "nowhere"
    error = refusal(request(body, operation=operation))
    assert (404, 'namespaces "nowhere" not found') == (error.status, error.message)


def test_deletions_need_no_namespace():
    """Objects left over in a deleted namespace can be deleted."""
    body = config_map()
    body["metadata"]["namespace"] = "nowhere"
    _, view = cluster()
    check_namespace(request(None, old=body, operation=Operation.DELETE), view)


def test_nothing_is_added_to_a_namespace_that_ends():
    """The refusal has a message and the cause that controllers look for; updates are still allowed."""
    ending = {**namespace("x"), "status": {"phase": "Terminating"}}
    error = refusal(request(config_map()), ending)
    why = "unable to create new content in namespace x because it is being terminated"
    assert (403, f'configmaps "c" is forbidden: {why}') == (error.status, error.message)
    (cause,) = error.causes
    assert ("NamespaceTerminating", "namespace x is being terminated", "metadata.namespace") == (
        cause.reason,
        cause.message,
        cause.field,
    )
    store, view = cluster()
    in_store(store, ending)
    check_namespace(request(config_map(), old=config_map(), operation=Operation.UPDATE), view)


def test_access_reviews_do_not_reveal_which_namespaces_exist():
    """A LocalSubjectAccessReview in a namespace that does not exist is answered like any other."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "LocalSubjectAccessReview",
        "metadata": {"namespace": "nowhere"},
    }
    _, view = cluster()
    check_namespace(request(review), view)
