"""Rights of a user in Kubernetes: the namespaces whose reports the user may list.

The API server decides, by SubjectAccessReviews with the user name and groups of the login. Answers are cached for a
minute; without an answer nothing is shown. A login with a name that Kubernetes reserves (`system:`) has no rights.
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
from pyverno.ui.access.identity import Identity
from pyverno.ui.store.scope import Scope

__all__ = ["KubernetesRights"]

_REVIEWS: Final = GVR("authorization.k8s.io", "v1", "subjectaccessreviews")
_REPORTS: Final = ("wgpolicyk8s.io", "policyreports")
_CLUSTER_REPORTS: Final = ("wgpolicyk8s.io", "clusterpolicyreports")
_SECONDS: Final = 60.0
_MOST_PERSONS: Final = 1000
_AT_ONCE: Final = 8


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

        The prefixes are those that the API server puts before names of its own logins by OpenID Connect.
        """
        self._client = client
        self._prefixes = (user_prefix, groups_prefix)
        self._namespaces = namespaces
        self._now = now
        self._answers: OrderedDict[Identity, tuple[float, Scope]] = OrderedDict()
        self._asked: dict[Identity, asyncio.Task[Scope]] = {}
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
        user_prefix, groups_prefix = self._prefixes
        groups = (f"{groups_prefix}{each}" for each in identity.groups)
        identity = Identity(f"{user_prefix}{identity.user}", tuple(each for each in groups if not _is_reserved(each)))
        if _is_reserved(identity.user):
            return frozenset()
        everywhere, cluster = await asyncio.gather(
            self._may(identity, *_REPORTS, ""), self._may(identity, *_CLUSTER_REPORTS, "")
        )
        if everywhere and cluster:
            return None
        names = sorted({*await self._namespaces()} - {""})
        allowed = [everywhere] * len(names)
        if not everywhere:
            allowed = await asyncio.gather(*(self._may(identity, *_REPORTS, name) for name in names))
        own = [name for name, is_allowed in zip(names, allowed, strict=True) if is_allowed]
        return frozenset([*own, *([""] if cluster else [])])

    async def _may(self, identity: Identity, group: str, resource: str, namespace: str) -> bool:
        body: JSONObject = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": identity.user,
                "groups": [*identity.groups, "system:authenticated"],
                "resourceAttributes": {
                    "verb": "list",
                    "group": group,
                    "resource": resource,
                    **({"namespace": namespace} if namespace else {}),
                },
            },
        }
        async with self._turns:
            try:
                answer = await self._client.create(_REVIEWS, body)
            except StatusError as error:
                raise HostError(f"the rights of this login cannot be read: {error.message}") from error
        status = answer.get("status")
        return isinstance(status, dict) and status.get("allowed") is True and not status.get("denied")


def _is_reserved(name: str) -> bool:
    return name.startswith("system:")
