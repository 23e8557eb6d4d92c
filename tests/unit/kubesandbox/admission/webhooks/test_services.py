"""Addresses of webhooks' services."""

from __future__ import annotations

import pytest

from kubesandbox.admission.webhooks.hooks import ClientConfig
from kubesandbox.admission.webhooks.services import ServiceError, resolve_service
from tests.support.admissionstage import cluster

CLIENT = ClientConfig(namespace="x", service="hook", port=443)
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "hook", "namespace": "x"},
    "spec": {"ports": [{"name": "https", "port": 443}]},
}


def endpoints(**address):
    subset = {"addresses": [{"ip": "127.0.0.1", **address}], "ports": [{"name": "https", "port": 9443}]}
    metadata = {"name": "hook", "namespace": "x"}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]}


def slice_of(ready=True):
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "hook-1", "namespace": "x", "labels": {"kubernetes.io/service-name": "hook"}},
        "endpoints": [{"addresses": ["127.0.0.2"], "conditions": {"ready": ready}}],
        "ports": [{"name": "https", "port": 9444}],
    }


@pytest.mark.parametrize(
    ("bodies", "mapped", "expected"),
    [
        ([SERVICE, endpoints()], {}, ("127.0.0.1", 9443)),
        ([SERVICE, slice_of()], {}, ("127.0.0.2", 9444)),
        ([SERVICE, endpoints()], {("x", "hook"): ("localhost", 1)}, ("127.0.0.1", 9443)),
        ([SERVICE], {("x", "hook"): ("localhost", 1)}, ("localhost", 1)),
        ([], {("x", "hook"): ("localhost", 1)}, ("localhost", 1)),
        ([SERVICE, endpoints(targetRef={"kind": "Pod"})], {("x", "hook"): ("localhost", 1)}, ("localhost", 1)),
        (
            [{**SERVICE, "spec": {"type": "ExternalName", "externalName": "h.org", "ports": [{"port": 443}]}}],
            {},
            ("h.org", 443),
        ),
    ],
)
def test_endpoints_come_before_the_map(bodies, mapped, expected):
    """Endpoints of pods, which do not run, are passed over."""
    _, view = cluster(*bodies)
    assert expected == resolve_service(CLIENT, view, mapped)


@pytest.mark.parametrize(
    ("bodies", "why"),
    [
        ([], 'service "hook" not found'),
        ([SERVICE], 'no endpoints available for service "hook"'),
        ([SERVICE, slice_of(ready=False)], 'no endpoints available for service "hook"'),
        ([SERVICE, endpoints(targetRef={"kind": "Pod"})], 'no endpoints available for service "hook"'),
    ],
)
def test_services_without_an_address_are_errors(bodies, why):
    """The errors have the texts of the API server."""
    _, view = cluster(*bodies)
    with pytest.raises(ServiceError) as error:
        resolve_service(CLIENT, view, {})
    assert why == error.value.message


def test_a_service_is_called_by_its_name(tmp_path):
    """The connection goes to the mapped address; certificate and message have the name of the service."""
    import asyncio

    from pyverno.kube.status import StatusError
    from tests.support.admissionstage import (
        admission,
        admitted,
        answer,
        config_map,
        configuration,
        request,
        serving,
        webhook,
    )

    async def main():
        async with serving(tmp_path, hosts=("hook.x.svc",), allow=answer) as served:
            reference = {"service": {"namespace": "x", "name": "hook", "path": "/allow"}, "caBundle": served.bundle}
            _, view = cluster(configuration("Validating", webhook(reference)))
            services = {("x", "hook"): ("127.0.0.1", served.port)}
            await admitted(admission(view, services=services), request(config_map()))
            assert "hook.x.svc:443" == served.headers[0]["Host"]
        async with serving(tmp_path, hosts=("other.x.svc",), allow=answer) as served:
            services = {("x", "hook"): ("127.0.0.1", served.port)}
            with pytest.raises(StatusError) as refused:
                await admitted(admission(view, services=services), request(config_map()))
        assert 'Post "https://hook.x.svc:443/allow?timeout=10s": ' in refused.value.message
        assert refused.value.message.endswith("x509: certificate is valid for other.x.svc, not hook.x.svc")

    asyncio.run(main())
