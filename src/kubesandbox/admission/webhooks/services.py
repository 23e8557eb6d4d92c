"""The address of a webhook's service: one of its endpoints, or the configured one.

The server has no pod network. Endpoints of pods are ignored, because pods run no containers here. This module must
never open a connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from kubesandbox.admission.webhooks.hooks import ClientConfig
from kubesandbox.parsing.requests import go_quote
from kubesandbox.storage.store import Key
from kubesandbox.view import ObjectReader
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON, JSONObject

__all__ = ["ServiceError", "ServiceMap", "resolve_service"]

ServiceMap = Mapping[tuple[str, str], tuple[str, int]]
"""Namespace and name of a service → host and port."""

_SLICE_LABEL = "kubernetes.io/service-name"


class ServiceError(PyvernoError):
    """A service has no address; the text is the API server's."""

    code = "service"


def resolve_service(client: ClientConfig, objects: ObjectReader, mapped: ServiceMap) -> tuple[str, int]:
    """Return host and port for a service reference; raises ServiceError."""
    service = objects.get(Key("services", client.namespace, client.service))
    found = None if service is None else _endpoint(service.body, client, objects)
    if found is None:
        found = mapped.get((client.namespace, client.service))
    if found is None:
        name = go_quote(client.service)
        raise ServiceError(
            f"service {name} not found" if service is None else f"no endpoints available for service {name}"
        )
    return found


def _endpoint(service: JSONObject, client: ClientConfig, objects: ObjectReader) -> tuple[str, int] | None:
    spec: JSON = service.get("spec") or {}
    port = next((each for each in spec.get("ports") or () if each.get("port") == client.port), None)
    if port is None:
        return None
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName") or ""), client.port
    name = port.get("name") or ""
    return next(chain(_of_endpoints(client, name, objects), _of_slices(client, name, objects)), None)


def _of_endpoints(client: ClientConfig, port: str, objects: ObjectReader) -> Iterator[tuple[str, int]]:
    found = objects.get(Key("endpoints", client.namespace, client.service))
    for subset in (found.body.get("subsets") or ()) if found is not None else ():
        for address in subset.get("addresses") or ():
            if not _is_pod(address):
                yield from ((str(address.get("ip")), number) for number in _numbers(subset.get("ports"), port))


def _of_slices(client: ClientConfig, port: str, objects: ObjectReader) -> Iterator[tuple[str, int]]:
    for stored in objects.all("endpointslices.discovery.k8s.io", client.namespace):
        labels = stored.body["metadata"].get("labels") or {}
        if labels.get(_SLICE_LABEL) != client.service:
            continue
        for endpoint in stored.body.get("endpoints") or ():
            ready = (endpoint.get("conditions") or {}).get("ready", True)
            if ready is not False and not _is_pod(endpoint):
                numbers = _numbers(stored.body.get("ports"), port)
                yield from ((str(each), number) for each in endpoint.get("addresses") or () for number in numbers)


def _numbers(ports: JSON, name: str) -> list[int]:
    return [int(each["port"]) for each in ports or () if each.get("port") and (each.get("name") or "") == name]


def _is_pod(address: JSONObject) -> bool:
    return (address.get("targetRef") or {}).get("kind") == "Pod"
