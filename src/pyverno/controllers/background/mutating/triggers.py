"""The admission requests of UpdateRequests, as the engine takes them, with the present state of their objects.

A created object is read again: its creation may have been refused after the webhooks allowed it. So is an updated one
that was left out of its UpdateRequest, because two versions of it are more than etcd takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, Protocol

from pyverno.cluster.client import Client
from pyverno.controllers.background.namespaces import KnownNamespaces, find_namespace
from pyverno.controllers.background.work import Awaited, Done, Waiting
from pyverno.engine.request import Operation, Request, User
from pyverno.errors import HostError
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.resource import Resource
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import UpdateRequest
from pyverno.value import replace
from pyverno.webhook.configuration import Configuration

__all__ = ["ClusterFacts", "Triggers", "with_cluster_facts"]

_NOT_FOUND: Final = 404
_READ_AGAIN: Final = (0.05, 0.1, 0.2, 0.4)
"""Pauses in which an object that is being created is read again."""

_CREATION_SECONDS: Final = 60.0
"""How long a creation may take after the webhooks allowed it: the longest time that an API server gives a request."""


class ClusterFacts(KnownNamespaces, Protocol):
    """The cluster's state (`controllers.state.clusterstate.ClusterState`)."""

    @property
    def kinds(self) -> KindTable:
        """The kinds that the cluster serves."""
        ...

    @property
    def configuration(self) -> Configuration:
        """The ConfigMap."""
        ...


async def with_cluster_facts(request: Request, cluster: ClusterFacts, client: Client) -> Request:
    """Return a request that knows the namespace of its object, and the settings for all policies.

    Raises HostError or StatusError when the namespace cannot be read.
    """
    found = await find_namespace(request.namespace, cluster, client) if request.namespace else None
    if found is not None:
        request = replace(request, namespace_labels=Resource(found).labels, namespace_object=found)
    return request.with_settings(cluster.configuration.evaluation)


class Triggers:
    """Makes requests of UpdateRequests."""

    def __init__(
        self, client: Client, cluster: ClusterFacts, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Take the client, what is known of the cluster, and the time in UTC."""
        self._client = client
        self._cluster = cluster
        self._now = now

    async def request(self, update: UpdateRequest) -> Request | Waiting | Done:
        """Return the request that caused an UpdateRequest.

        A Waiting while its object is not there yet; Done when the object will not come. Raises HostError and
        StatusError.
        """
        admission = update.spec.context.request
        if not isinstance(admission, dict):
            return await self._of_policy_event(update)
        context = update.spec.context
        user = User.from_json(context.user).with_roles(context.roles, context.cluster_roles)
        asked = Request.from_admission_review(admission, user=user)
        request = await with_cluster_facts(asked, self._cluster, self._client)
        if request.subresource and request.gvr is not None:
            owner = self._cluster.kinds.by_resource(request.gvr)
            request = request if owner is None else request.with_kind(owner.gvk)
        if request.subresource:
            return request
        if request.operation is Operation.UPDATE and request.object is None and isinstance(request.old, dict):
            return await self._update(request, Resource(request.old), update)
        if request.operation is not Operation.CREATE or not isinstance(request.object, dict):
            return request
        return await self._create(request, update)

    async def _of_policy_event(self, update: UpdateRequest) -> Request | Done:
        """Return the request for an object that an UpdateRequest names without an admission request."""
        trigger = update.spec.resource
        info = self._info(trigger.api_version, trigger.kind)
        live = await self._read(info, trigger.namespace, trigger.name)
        if live is None or (trigger.uid and Resource(live).uid != trigger.uid):
            return Done(f"the trigger {trigger.kind} `{trigger.name}` is gone")
        return await with_cluster_facts(Request.from_policy_event(live, gvr=info.gvr), self._cluster, self._client)

    async def _create(self, request: Request, update: UpdateRequest) -> Request | Waiting | Done:
        view = Resource(request.object)
        name = view.name or request.name
        if not name:  # a name that the API server makes up is not known to webhooks that mutate
            return request
        info = self._info(view.api_version, view.kind)
        for pause in (*_READ_AGAIN, 0.0):
            live = await self._read(info, request.namespace, name)
            if live is not None:
                break
            await asyncio.sleep(pause)
        else:
            return self._missing(info, request.namespace, name, update)
        if view.uid and Resource(live).uid != view.uid:
            return Done(f"{info.kind} `{name}` is another object by now")
        return request.with_object(live)

    async def _update(self, request: Request, before: Resource, update: UpdateRequest) -> Request | Waiting | Done:
        name = before.name or request.name
        info = self._info(before.api_version, before.kind)
        for pause in (*_READ_AGAIN, 0.0):
            live = await self._read(info, request.namespace, name)
            if live is None or (before.uid and Resource(live).uid != before.uid):
                return Done(f"{info.kind} `{name}` is gone, or another object by now")
            if _version(live) != _version(request.old):
                return request.with_object(live)
            await asyncio.sleep(pause)
        if self._age(update.raw) > _CREATION_SECONDS:
            return Done(f"the update of {info.kind} `{name}` was never stored")
        awaited = (Awaited(info.gvr, request.namespace if info.namespaced else "", name),)
        return Waiting(f"the update of {info.kind} `{name}` is not stored yet", awaited, _CREATION_SECONDS)

    def _missing(self, info: KindInfo, namespace: str, name: str, update: UpdateRequest) -> Waiting | Done:
        if self._age(update.raw) > _CREATION_SECONDS:
            return Done(f"{info.kind} `{name}` was never created, or is gone")
        namespace = namespace if info.namespaced else ""
        awaited = (Awaited(info.gvr, namespace, name),)
        return Waiting(f"{info.kind} `{name}` is not created yet", awaited, _CREATION_SECONDS)

    def _age(self, body: Mapping[str, object]) -> float:
        metadata = body.get("metadata")
        written = metadata.get("creationTimestamp") if isinstance(metadata, dict) else None
        if not isinstance(written, str):
            return 0.0
        created = datetime.strptime(written, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        return (self._now() - created).total_seconds()

    async def _read(self, info: KindInfo, namespace: str, name: str) -> JSONObject | None:
        try:
            return await self._client.get(info.gvr, name, namespace if info.namespaced else "")
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise
            return None

    def _info(self, api_version: str, kind: str) -> KindInfo:
        info = self._cluster.kinds.find(GVK(*parse_api_version(api_version), kind))
        if info is None:
            raise HostError(f"the cluster does not serve {kind} of {api_version}")
        return info


def _version(body: JSON) -> str:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return str(metadata.get("resourceVersion") or "") if isinstance(metadata, dict) else ""
