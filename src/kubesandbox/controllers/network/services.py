"""Services: their Endpoints and EndpointSlices follow the pods that they select.

Their contents come from `serviceaddresses`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from kubesandbox.controllers.context import ControllerContext, is_namespace_ending, selector_of
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.network.serviceaddresses import (
    MANAGED_BY,
    SERVICE_NAME,
    endpoints_of,
    has_selector,
    slice_of,
)
from kubesandbox.controllers.objects import at, is_owned_by, labels_of, name_of, namespace_of, uid_of
from kubesandbox.local import LocalClient
from kubesandbox.storage.store import Change, ChangeKind, Key
from pyverno.kube.json import JSONObject, equal
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["ENDPOINTS_FORM", "SLICES_FORM", "Form", "ServiceFollower"]

SERVICES = "services"
ENDPOINTS = "endpoints"
SLICES = "endpointslices.discovery.k8s.io"


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a Service's addresses: how it is written, and how it is removed."""

    resource: str
    write: Callable[[LocalClient, JSONObject, list[JSONObject]], Awaitable[None]]
    forget: Callable[[LocalClient, Key], Awaitable[None]]


class ServiceFollower:
    """Writes one object per Service from the pods that it selects."""

    def __init__(self, context: ControllerContext, form: Form) -> None:
        """Take the tools and what is written."""
        self._context = context
        self._form = form

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Services, pods, and the objects when others change them."""
        return {SERVICES: itself, "pods": self._of_pod, self._form.resource: _of_object}

    async def reconcile(self, key: Key) -> float | None:
        """Write the addresses of one Service, or remove those of a deleted one."""
        client = self._context.client
        service = client.get(SERVICES, key.name, key.namespace)
        if service is None:
            await self._form.forget(client, key)
        elif has_selector(service):
            selects = selector_of(service)
            pods = [pod for pod in client.list("pods", key.namespace) if selects(labels_of(pod))]
            try:
                await self._form.write(client, service, pods)
            except StatusError as error:
                if not is_namespace_ending(error):
                    raise
        return None

    def _of_pod(self, change: Change) -> Iterable[Key]:
        if change.before is not None and change.kind is ChangeKind.MODIFIED and not _is_news(change):
            return ()
        bodies = [change.state.body, *([change.before.body] if change.before else [])]
        return dict.fromkeys(key for body in bodies for key in self._context.selecting(SERVICES, body))


async def _write_endpoints(client: LocalClient, service: JSONObject, pods: list[JSONObject]) -> None:
    wanted = endpoints_of(service, pods)
    found = client.get(ENDPOINTS, name_of(service), namespace_of(service))
    if found is None:
        await client.create(ENDPOINTS, wanted)
        return
    is_same = equal(found.get("subsets") or [], wanted.get("subsets", []))
    if not is_same or labels_of(found) != labels_of(wanted):
        metadata = {**found["metadata"], "labels": labels_of(wanted)}
        rest = {key: value for key, value in found.items() if key != "subsets"}
        subsets = {"subsets": wanted["subsets"]} if "subsets" in wanted else {}
        await client.update(ENDPOINTS, {**rest, "metadata": metadata, **subsets})


async def _forget_endpoints(client: LocalClient, key: Key) -> None:
    """Delete Endpoints with their Service, unless another client has created them."""
    found = client.get(ENDPOINTS, key.name, key.namespace)
    if found is not None and labels_of(found).get("endpoints.kubernetes.io/managed-by") == "endpoint-controller":
        await client.delete(ENDPOINTS, key.name, key.namespace, uid=uid_of(found))


async def _write_slice(client: LocalClient, service: JSONObject, pods: list[JSONObject]) -> None:
    wanted = slice_of(service, pods)
    maker = labels_of(wanted)[MANAGED_BY]
    for found in client.list(SLICES, namespace_of(service)):
        if is_owned_by(found, service) and labels_of(found).get(MANAGED_BY) == maker:
            break
    else:
        await client.create(SLICES, wanted)
        return
    fields = ("endpoints", "ports")
    is_same = all(equal(found.get(field) or [], wanted[field]) for field in fields)
    if not is_same or labels_of(found) != labels_of(wanted):
        metadata = {**found["metadata"], "labels": labels_of(wanted)}
        await client.update(SLICES, {**found, "metadata": metadata, **{field: wanted[field] for field in fields}})


async def _forget_slice(_client: LocalClient, _key: Key) -> None:
    """Leave the slice to the garbage collector, as the Service owns it."""


ENDPOINTS_FORM = Form(ENDPOINTS, _write_endpoints, _forget_endpoints)
"""The Endpoints of Services."""
SLICES_FORM = Form(SLICES, _write_slice, _forget_slice)
"""The EndpointSlices of Services, one each."""


def _of_object(change: Change) -> Iterable[Key]:
    if change.kind is ChangeKind.ADDED:
        return ()
    name = labels_of(change.state.body).get(SERVICE_NAME, change.state.key.name)
    return (Key(SERVICES, change.state.key.namespace, name),)


def _is_news(change: Change) -> bool:
    """Return whether a pod's address, readiness, labels or deletion have changed."""
    old, new = change.before.body if change.before else {}, change.state.body
    paths = (("metadata", "labels"), ("metadata", "deletionTimestamp"), ("status",))
    return any(at(old, *path) != at(new, *path) for path in paths)
