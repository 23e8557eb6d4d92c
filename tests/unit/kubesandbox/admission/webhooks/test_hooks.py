"""Webhooks that receive a request."""

from __future__ import annotations

import asyncio

import pytest

from kubesandbox.admission.policies.requests import Versions
from kubesandbox.admission.webhooks.hooks import MUTATING, ClientConfig, HookSource
from kubesandbox.authorization.access import EverythingAllowed
from pyverno.engine.request import Operation
from pyverno.kube.status import StatusError
from tests.support.admissionstage import cluster, config_map, configuration, namespace, pod, request, webhook


def asked(attributes, **fields) -> bool:
    """Return whether a webhook with one rule is called."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"], **fields}
    _, view = cluster(configuration("Mutating", webhook({"url": "https://h"}, rules=[rule])))
    source = HookSource(MUTATING, view, EverythingAllowed(), (1, 35))
    return bool(invocations(source, attributes, view))


def invocations(source, attributes, view):
    """Return the calls that a request leads to."""
    versions = Versions(attributes, view)
    found = [asyncio.run(source.invocation(hook, type, versions)) for hook, type in source.candidates(attributes)]
    return [each for each in found if each is not None]


@pytest.mark.parametrize(
    ("fields", "subresource", "expected"),
    [
        ({}, "", True),
        ({}, "status", False),
        ({"resources": ["*/*"]}, "status", True),
        ({"resources": ["pods/*"]}, "exec", True),
        ({"resources": ["pods/*"]}, "", True),
        ({"resources": ["pods/exec"]}, "", False),
        ({"resources": ["*/exec"]}, "exec", True),
        ({"resources": ["services"]}, "", False),
        ({"apiGroups": ["apps"]}, "", False),
        ({"apiGroups": ["*"], "apiVersions": ["*"]}, "", True),
        ({"apiVersions": ["v2"]}, "", False),
        ({"operations": ["UPDATE", "DELETE"]}, "", False),
        ({"operations": ["CREATE"]}, "", True),
        ({"scope": "Namespaced"}, "", True),
        ({"scope": "Cluster"}, "", False),
    ],
)
def test_rules_name_the_requests_of_a_webhook(fields, subresource, expected):
    """Groups, versions, resources with subresources, operations and scope must all fit."""
    assert expected is asked(request(pod(), subresource=subresource), **fields)


def test_namespaces_belong_to_the_cluster():
    """A rule for objects of the cluster takes Namespaces, one for namespaced objects does not."""
    attributes = request(namespace("new"))
    assert asked(attributes, scope="Cluster")
    assert not asked(attributes, scope="Namespaced")


def test_a_missing_namespace_is_not_found():
    """Only a webhook with a namespaceSelector has to know the namespace."""
    body = config_map()
    body["metadata"]["namespace"] = "nowhere"
    attributes = request(body, operation=Operation.UPDATE)
    hook = webhook({"url": "https://h"}, namespaceSelector={"matchLabels": {"a": "b"}})
    _, view = cluster(configuration("Mutating", hook))
    with pytest.raises(StatusError, match='namespaces "nowhere" not found'):
        invocations(HookSource(MUTATING, view, EverythingAllowed(), (1, 35)), attributes, view)
    assert asked(attributes)


@pytest.mark.parametrize(
    ("client", "address"),
    [
        ({"url": "https://h/x"}, "https://h/x"),
        ({"service": {"namespace": "a", "name": "b"}}, "https://b.a.svc:443/"),
        ({"service": {"namespace": "a", "name": "b", "path": "p", "port": 8443}}, "https://b.a.svc:8443/p"),
    ],
)
def test_addresses_are_shown_as_an_api_server_shows_them(client, address):
    """Services have a name and a port in messages."""
    assert address == ClientConfig.of(client).address
