"""The admission requests of UpdateRequests, as the engine takes them: confirmed by the API server.

Another webhook may have refused a change after ours allowed it, and whoever may write UpdateRequests can make one up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, Protocol

from pyverno.cluster.client import Client
from pyverno.controllers.background.namespaces import KnownNamespaces, find_namespace
from pyverno.controllers.background.work import Awaited, Done, Waiting, part_of, refused
from pyverno.controllers.evidence import Evidence, Refuted, Unprovable, Unsettled
from pyverno.engine.request import Request, User
from pyverno.errors import HostError
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.resource import Resource
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import UpdateRequest, revision_of
from pyverno.value import replace
from pyverno.webhook.configuration import Configuration

# trust rows: update-request

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

    def roles_of(self, user: User, namespace: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the roles (`ns:name`) and cluster roles that bindings give to a user."""
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
        self._evidence = Evidence(client, lambda: self._cluster.kinds)

    async def request(self, update: UpdateRequest, *, reads_old: bool = True) -> Request | Waiting | Done:
        """Return the request that caused an UpdateRequest, as the API server confirms it.

        A Waiting while its change is not stored yet; Done when it will not be, or never was. Rules that read no old
        object (`reads_old`) do not need the history of the API server. Raises HostError and StatusError.
        """
        admission = update.spec.context.request
        if not isinstance(admission, dict):
            return await self._of_policy_event(update)
        asked = Request.from_admission_review(admission, user=User.from_json(update.spec.context.user))
        if asked.subresource and asked.gvr is not None:
            owner = self._cluster.kinds.by_resource(asked.gvr)
            asked = asked if owner is None else asked.with_kind(owner.gvk)
        found = await self._confirm(asked, update, reads_old=reads_old)
        if not isinstance(found, Request):
            return found
        user = found.user.with_roles(*self._cluster.roles_of(found.user, found.namespace))
        return await with_cluster_facts(replace(found, user=user), self._cluster, self._client)

    async def _confirm(self, request: Request, update: UpdateRequest, *, reads_old: bool) -> Request | Waiting | Done:
        """Return what the API server confirms of a request; whoever makes an UpdateRequest may write anything in it."""
        revision = revision_of(update.raw)
        for pause in (*_READ_AGAIN, 0.0):
            found = await self._evidence.confirm(request, revision=revision)
            if not isinstance(found, Unsettled):
                break
            await asyncio.sleep(pause)
        if isinstance(found, Unsettled):
            return self._unsettled(found, update)
        if isinstance(found, Unprovable):
            found = part_of(found, reads_old=reads_old, kept=update.spec.context.kept)
        refuted = found if isinstance(found, Refuted) else await self._evidence.vouch(found)
        if isinstance(found, Request) and refuted is None:  # guard: background: targets change for confirmed requests
            return found
        return refused(refuted)

    async def _of_policy_event(self, update: UpdateRequest) -> Request | Done:
        """Return the request for an object that an UpdateRequest names without an admission request."""
        trigger = update.spec.resource
        info = self._info(trigger.api_version, trigger.kind)
        live = await self._read(info, trigger.namespace, trigger.name)
        if live is None or (trigger.uid and Resource(live).uid != trigger.uid):
            return Done(f"the trigger {trigger.kind} `{trigger.name}` is gone")
        return await with_cluster_facts(Request.from_policy_event(live, gvr=info.gvr), self._cluster, self._client)

    def _unsettled(self, found: Unsettled, update: UpdateRequest) -> Waiting | Done:
        if self._age(update.raw) > _CREATION_SECONDS:
            return refused(Refuted(f"{found.message}, and was not within {_CREATION_SECONDS:g} seconds"))
        awaited = (Awaited(found.info.gvr, found.namespace, found.name),)
        return Waiting(found.message, awaited, _CREATION_SECONDS)

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
