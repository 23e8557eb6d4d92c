"""Rights of a user in Kubernetes: the namespaces whose reports the user may list, and single reads.

The API server decides, by SubjectAccessReviews with the user name and groups of the login. Answers are cached for a
minute at most; without an answer nothing is shown. A login with a name that Kubernetes reserves (`system:`) has no
rights.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from pyverno.cluster.client import Client
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.ui.access.access import Access, access_to
from pyverno.ui.access.identity import Identity
from pyverno.ui.feed import REPORT_KINDS
from pyverno.ui.store.scope import Scope

__all__ = ["KubernetesRights"]

_REVIEWS: Final = GVR("authorization.k8s.io", "v1", "subjectaccessreviews")
_SECONDS: Final = 60.0
_DECISION_SECONDS: Final = 30.0
_MOST_PERSONS: Final = 1000
_MOST_DECISIONS: Final = 20_000
_AT_ONCE: Final = 8
_NOT_FOUND: Final = 404


class KubernetesRights:
    """Reads the rights of users from one cluster."""

    def __init__(
        self,
        client: Client,
        namespaces: Callable[[], Awaitable[Iterable[str]]],
        *,
        user_prefix: str = "",
        groups_prefix: str = "",
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the client, and the function that returns the namespaces with results.

        The prefixes are those that the API server puts before names that a proxy sends without them.
        """
        self._client = client
        self._prefixes = (user_prefix, groups_prefix)
        self._namespaces = namespaces
        self._now = now
        self._answers: OrderedDict[Identity, tuple[float, Scope]] = OrderedDict()
        self._asked: dict[Identity, asyncio.Task[Scope]] = {}
        self._decisions: OrderedDict[tuple[Identity, Access], tuple[float, bool]] = OrderedDict()
        self._served: tuple[float, tuple[GVR, ...]] | None = None
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def scope(self, identity: Identity) -> Scope:
        """Return the namespaces of a person; raises HostError when the API server does not decide."""
        known = self._answers.get(identity)
        if known is not None and self._now() - known[0] < _SECONDS:
            return known[1]
        running = self._asked.get(identity)
        if running is None:
            # the requests of a page come together: one of them asks about every namespace
            running = self._asked[identity] = asyncio.ensure_future(self._ask_and_keep(identity))
            running.add_done_callback(lambda task: self._forget(identity, task))
        return await asyncio.shield(running)

    async def may(self, identity: Identity, access: Access) -> bool:
        """Return whether a person may do something; raises HostError when the API server does not decide."""
        person = self._named(identity)
        if person is None:
            return False
        key = (person, access)
        known = self._decisions.get(key)
        if known is not None and self._now() - known[0] < _DECISION_SECONDS:
            return known[1]
        found = await self._decide(person, access)
        while len(self._decisions) >= _MOST_DECISIONS:
            self._decisions.popitem(last=False)
        self._decisions[key] = (self._now(), found)
        return found

    def _forget(self, identity: Identity, task: asyncio.Task[Scope]) -> None:
        self._asked.pop(identity, None)
        if not task.cancelled():
            task.exception()  # the requests that wait for it raise it

    async def _ask_and_keep(self, identity: Identity) -> Scope:
        found = await self._ask(identity)
        while len(self._answers) >= _MOST_PERSONS:
            self._answers.popitem(last=False)
        self._answers[identity] = (self._now(), found)
        return found

    async def _ask(self, identity: Identity) -> Scope:
        person = self._named(identity)
        if person is None:
            return frozenset()
        served = await self._reports()
        local, wide = [[gvr for gvr in served if _is_wide(gvr) is is_wide] for is_wide in (False, True)]
        everywhere, cluster = await asyncio.gather(self._may_list(person, local, ""), self._may_list(person, wide, ""))
        if everywhere and cluster:
            return None
        names = sorted({*await self._namespaces()} - {""})
        allowed = [everywhere] * len(names)
        if not everywhere:
            allowed = await asyncio.gather(*(self._may_list(person, local, name) for name in names))
        own = [name for name, is_allowed in zip(names, allowed, strict=True) if is_allowed]
        return frozenset([*own, *([""] if cluster else [])])

    async def _may_list(self, person: Identity, reports: Iterable[GVR], namespace: str) -> bool:
        """Return whether a person may list every kind of reports that the cluster serves."""
        for gvr in reports:
            if not await self._decide(person, access_to(gvr, namespace, verb="list")):  # guard: all reports are asked
                return False
        return True

    async def _reports(self) -> tuple[GVR, ...]:
        """Return the kinds of reports that the cluster serves; Kyverno's for a scope of which it serves none."""
        if self._served is None or self._now() - self._served[0] >= _SECONDS:
            groups = dict.fromkeys((gvr.group, gvr.version) for _, gvr in REPORT_KINDS)
            known = [each for group, version in groups for each in await self._resources(group, version)]
            found = tuple(gvr for _, gvr in REPORT_KINDS if (gvr.group, gvr.resource) in known)
            scopes = {_is_wide(gvr) for gvr in found}
            own = [gvr for _, gvr in REPORT_KINDS[:2] if _is_wide(gvr) not in scopes]
            self._served = (self._now(), (*found, *own))
        return self._served[1]

    async def _resources(self, group: str, version: str) -> list[tuple[str, str]]:
        try:
            listed = await self._client.request("GET", f"/apis/{group}/{version}")
        except StatusError as error:
            if error.status == _NOT_FOUND:
                return []
            raise HostError(f"the rights of this login cannot be read: {error.message}") from error
        items = listed.get("resources") if isinstance(listed, dict) else None
        return [(group, str(each.get("name"))) for each in items or () if isinstance(each, dict)]

    def _named(self, identity: Identity) -> Identity | None:
        """Return a person as the API server names it; None for a name that no login may have."""
        user_prefix, groups_prefix = self._prefixes
        groups = (f"{groups_prefix}{each}" for each in identity.groups)
        person = Identity(f"{user_prefix}{identity.user}", tuple(each for each in groups if not _is_reserved(each)))
        return None if _is_reserved(person.user) else person  # guard: no login has a name of Kubernetes

    async def _decide(self, person: Identity, access: Access) -> bool:
        body: JSONObject = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": person.user,
                "groups": [*person.groups, "system:authenticated"],
                **access.attributes(),
            },
        }
        async with self._turns:
            try:
                answer = await self._client.create(_REVIEWS, body)
            except StatusError as error:
                raise HostError(f"the rights of this login cannot be read: {error.message}") from error
        status = answer.get("status")
        return isinstance(status, dict) and status.get("allowed") is True and not status.get("denied")


def _is_wide(gvr: GVR) -> bool:
    """Return whether reports are about the objects without namespace."""
    return gvr.resource.startswith("cluster")


def _is_reserved(name: str) -> bool:
    return name.startswith("system:")
