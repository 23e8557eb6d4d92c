"""Namespaced policies act with the permissions of their authors: no policy writes what its author may not write.

A policy is admitted only if its author may do what its text says, and every write for it is checked when it is made.
The verb `escalate` on the policy's own kind allows everything, as RBAC treats roles.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from pyverno.cluster.accessreviews import decision_of, question_key, resource_review
from pyverno.cluster.client import Client
from pyverno.controllers.rights.demands import Demand, demands_of, escalations
from pyverno.controllers.state.settings import PolicyRights
from pyverno.engine.request import User
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.policy.kinds import find_kind
from pyverno.webhook.authors import AUTHOR, is_authored

# trust rows: namespaced-policy

__all__ = ["AuthorRights"]

_REVIEWS: Final = GVR("authorization.k8s.io", "v1", "subjectaccessreviews")
_SECONDS: Final = 10.0
"""How long a permission counts after it was checked; a missing one is checked again."""

_MAX_MEMO: Final = 10_000
_MAX_NAMED: Final = 5


class AuthorRights:
    """Checks authors by SubjectAccessReviews; with `PolicyRights.CONTROLLER` nothing is checked (Kyverno)."""

    def __init__(
        self,
        client: Client,
        kinds: Callable[[], KindTable],
        rights: PolicyRights,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the client, the kinds that the cluster serves, and whose permissions decide."""
        self._client = client
        self._kinds = kinds
        self._rights = rights
        self._now = now
        self._granted: dict[bytes, float] = {}

    async def refusals(self, written: object, policy: ResourceRef, author: User) -> tuple[str, ...]:
        """Return why a policy is rejected: its author lacks permissions. Raises HostError, StatusError."""
        if not self.concerns(policy):
            return ()
        lacking = await self._lacking(dict.fromkeys(demands_of(written, self._kinds())), policy, author)
        return (_denial(policy, author, lacking, "lacks permissions for what the policy does"),) if lacking else ()

    async def require(self, policy: ResourceRef, author: User | None, *demands: Demand) -> None:
        """Raise StatusError (403) if a policy must not write something; HostError without an answer.

        Policies of the cluster may do what the controller may do.
        """
        if not self.concerns(policy):  # guard: a flag gives the behaviour of Kyverno
            return
        if author is None:  # guard: a policy without an author writes nothing
            raise StatusError(
                403,
                "Forbidden",
                f"{policy} has no author on record, whose permissions it could act with: set annotation `{AUTHOR}` on "
                "it to any value to become its author",
            )
        needed = [each for demand in demands for each in (demand, *escalations(demand))]
        lacking = await self._lacking(needed, policy, author)
        if lacking:  # guard: the permissions of the author bound each write
            raise StatusError(403, "Forbidden", _denial(policy, author, lacking, "cannot do what the policy does"))

    async def may_delete(self, user: User, gvr: GVR, namespace: str, name: str) -> bool:
        """Return whether a user may delete an object; raises HostError, StatusError."""
        if self._rights is PolicyRights.CONTROLLER:
            return True
        return await self._may(user, Demand("delete", gvr.group, gvr.resource, name=name), namespace)

    def concerns(self, policy: ResourceRef) -> bool:
        """Return whether a policy acts with the permissions of its author."""
        group = policy.api_version.partition("/")[0]
        return self._rights is PolicyRights.AUTHOR and bool(policy.namespace) and is_authored(group, policy.kind)

    async def _lacking(self, demands: Iterable[Demand], policy: ResourceRef, author: User) -> list[Demand]:
        lacking = [each for each in demands if not await self._may(author, each, policy.namespace)]
        is_excepted = bool(lacking) and await self._may(author, _exception(policy), policy.namespace)
        return [] if is_excepted else lacking  # guard: the verb escalate excepts

    async def _may(self, author: User, demand: Demand, namespace: str) -> bool:
        """Return whether a user has a permission for all objects, or for the one that is named."""
        general = Demand(demand.verb, demand.group, demand.resource, demand.subresource)
        if await self._is_granted(author, general, namespace):
            return True
        if not demand.name:
            return False
        named = Demand(demand.verb, demand.group, demand.resource, demand.subresource, demand.name)
        return await self._is_granted(author, named, namespace)

    async def _is_granted(self, author: User, demand: Demand, namespace: str) -> bool:
        parts = (demand.verb, demand.group, demand.resource, demand.subresource, demand.name)
        key = question_key(author, namespace, *parts)
        until = self._granted.get(key)
        now = self._now()
        if until is not None and now < until:
            return True
        attributes = {"group": demand.group, "resource": demand.resource, "subresource": demand.subresource}
        review = resource_review(author, demand.verb, {**attributes, "name": demand.name, "namespace": namespace})
        decision = decision_of(await self._client.create(_REVIEWS, review))
        if decision.error:
            raise HostError(f"the permissions of user `{author.username}` cannot be checked: {decision.error}")
        if decision.allowed:
            if len(self._granted) >= _MAX_MEMO:
                self._granted.clear()
            self._granted[key] = now + _SECONDS
        return decision.allowed


def _exception(policy: ResourceRef) -> Demand:
    """Return the permission that stands for all others: `escalate` on the kind of the policy."""
    group = policy.api_version.partition("/")[0]
    row = find_kind(group, policy.kind)
    return Demand("escalate", group, row.plural if row is not None else "", name=policy.name)


def _denial(policy: ResourceRef, author: User, lacking: Iterable[Demand], problem: str) -> str:
    texts = list(dict.fromkeys(f"{each}{f' ({each.path})' if each.path else ''}" for each in lacking))
    more = f"; and {len(texts) - _MAX_NAMED} more" if len(texts) > _MAX_NAMED else ""
    escalate = _exception(policy)
    return (
        f"user `{author.username}` {problem} in namespace `{policy.namespace}`: {'; '.join(texts[:_MAX_NAMED])}{more}. "
        "A namespaced policy acts with the permissions of its author: grant them, "
        f"or the verb `escalate` on {escalate.resource}.{escalate.group}"
    )
