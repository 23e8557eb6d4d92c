"""The scale subresource, of built-in and of custom kinds."""

from __future__ import annotations

import pytest

from kubesandbox.apiserver import ApiServer
from kubesandbox.objects.patching import Patch
from kubesandbox.objects.scaling import get_scale, update_scale
from kubesandbox.parsing.requests import MERGE_PATCH
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from tests.unit.kubesandbox.serving import api_server, definition, deployment, run, type_of, widget, write


def serving() -> ApiServer:
    """Return a server with a deployment and a widget."""
    server = api_server()
    run(server.create(write(server, "deployments.apps"), deployment("d", 2)))
    run(server.create(write(server, "customresourcedefinitions.apiextensions.k8s.io", ""), definition()))
    run(server.create(write(server, "widgets.example.com"), widget("w", replicas=3)))
    return server


def scale(server: ApiServer, key: str, name: str, patch: JSONObject) -> JSONObject:
    """Patch a scale."""
    where = write(server, key, "default", name, subresource="scale")
    return run(update_scale(server, where, server.scale_patch(Patch(MERGE_PATCH, patch)))).body


def test_a_scale_shows_what_is_wanted_and_what_is_there() -> None:
    """The selector is written as text."""
    server = serving()
    body = run(get_scale(server, type_of(server, "deployments.apps"), "default", "d"))
    assert ("Scale", "autoscaling/v1", {"replicas": 2}, {"replicas": 0, "selector": "app=d"}) == (
        body["kind"],
        body["apiVersion"],
        body["spec"],
        body["status"],
    )
    custom = run(get_scale(server, type_of(server, "widgets.example.com"), "default", "w"))
    assert ({"replicas": 3}, {"replicas": 0}) == (custom["spec"], custom["status"])


@pytest.mark.parametrize(("key", "name"), [("deployments.apps", "d"), ("widgets.example.com", "w")])
def test_scaling_changes_the_number_of_replicas(key: str, name: str) -> None:
    """The generation rises, too."""
    server = serving()
    assert {"replicas": 5} == scale(server, key, name, {"spec": {"replicas": 5}})["spec"]
    state = server.get(type_of(server, key), "default", name)
    assert (5, 2) == (state.body["spec"]["replicas"], state.body["metadata"]["generation"])


def test_what_is_no_scale_is_refused() -> None:
    """Negative numbers, stale versions and missing objects are refused."""
    server = serving()
    with pytest.raises(StatusError) as caught:
        scale(server, "deployments.apps", "d", {"spec": {"replicas": -4}})
    assert (
        'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -4: must be greater than or equal to 0'
        == caught.value.message
    )
    with pytest.raises(StatusError, match="the object has been modified"):
        scale(server, "deployments.apps", "d", {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}})
    with pytest.raises(StatusError, match=r'deployments\.apps "x" not found'):
        scale(server, "deployments.apps", "x", {"spec": {"replicas": 1}})
