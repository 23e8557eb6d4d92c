"""Lookups that the server's own policies use."""

from __future__ import annotations

import asyncio

import pytest

from kubesandbox.admission.policies.host import StoreHost, kinds_of
from kubesandbox.authorization.access import EverythingAllowed
from kubesandbox.storage.store import Key
from kubesandbox.types.resources import ResourceType
from pyverno.engine.host import AuthorizingHost
from pyverno.engine.request import User
from pyverno.errors import HostError
from pyverno.kube.gvk import GVK
from pyverno.lang.cel.host import AuthorizationCheck
from tests.support.admissionstage import TABLE, cluster, config_map, namespace


def host(*bodies) -> StoreHost:
    _, view = cluster(*bodies)
    return StoreHost(view, EverythingAllowed(), User("jane"), kinds_of(TABLE))


def test_objects_are_found_by_kind_and_name():
    """For cluster-scoped objects the given namespace is ignored."""
    found = host(config_map())
    assert config_map() == without_version(found.get_object("v1", "ConfigMap", "x", "c"))
    assert found.get_object("v1", "ConfigMap", "y", "c") is None
    assert "x" == found.get_object("v1", "Namespace", "ignored", "x")["metadata"]["name"]


def without_version(body):
    metadata = {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}
    return {**body, "metadata": metadata}


def test_lists_are_selected_by_labels():
    """No selector means all, and no namespace means everywhere."""
    found = host(config_map("a", labels={"app": "web"}), config_map("b"), namespace("y"))
    names = lambda selector, space="x": [  # noqa: E731
        body["metadata"]["name"] for body in found.list_objects("v1", "ConfigMap", space, selector)
    ]
    assert (["a", "b"], ["a"], ["a", "b"]) == (names(None), names({"matchLabels": {"app": "web"}}), names(None, ""))
    with pytest.raises(HostError):
        names({"matchLabels": {"bad key!": "x"}})


def test_unknown_kinds_are_errors():
    """A kind that is not served is not an empty list."""
    with pytest.raises(HostError, match='no matches for kind "Widget"'):
        host().list_objects("example.com/v1", "Widget", "x", None)


def test_questions_of_authorization_are_answered():
    """The engine knows the host as one that can answer them."""
    found = host()
    assert isinstance(found, AuthorizingHost)
    assert found.authorize(AuthorizationCheck({"resource": "pods"}, "get", None)).allowed


def test_all_served_kinds_are_known():
    """Scope and plural come from the table."""
    kinds = kinds_of(TABLE)
    assert len(list(TABLE)) == len(kinds)
    deployment = kinds.find(GVK("apps", "v1", "Deployment"))
    assert ("deployments", True) == (deployment.plural, deployment.namespaced)
    assert kinds.is_namespaced(GVK("", "v1", "Node")) is False


def test_parameters_that_only_a_webhook_converts_are_converted_before():
    """The engine does not wait: what was not prepared is an error, never taken for an object of the version."""
    versions = [
        ResourceType(
            "x.io",
            version,
            "widgets",
            "Widget",
            "widget",
            namespaced=True,
            crd="widgets.x.io",
            storage="v1",
            converts_by_webhook=True,
        )
        for version in ("v1", "v2")
    ]
    store, view = cluster(table=TABLE.with_types(versions))
    store.put(
        Key("widgets.x.io", "x", "w"),
        {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "x"}},
    )
    made = StoreHost(view, EverythingAllowed(), User("jane"), kinds_of(view.table))
    with pytest.raises(HostError, match="Widget objects cannot be converted here"):
        made.get_object("x.io/v2", "Widget", "x", "w")
    asyncio.run(made.prepare(GVK("x.io", "v2", "Widget")))
    found = made.get_object("x.io/v2", "Widget", "x", "w")
    assert found is not None
    assert "x.io/v2" == found["apiVersion"]
    assert [found] == list(made.list_objects("x.io/v2", "Widget", "x", None))
