"""Reads of namespaced policies: no policy reads what its author may not read, wherever its rules are evaluated.

Every decision counts for a short time, a refusal as well: rules of one policy read the same for every request. This
module must not read anything for a policy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pyverno.cluster.client import Client
from pyverno.controllers.rights.authors import AuthorRights
from pyverno.controllers.rights.demands import Demand
from pyverno.controllers.state.settings import PolicyRights
from pyverno.engine.host import Read, Reader
from pyverno.engine.result import ResourceRef
from pyverno.errors import EvaluationError, HostError
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.webhook.authors import AUTHOR, author_of

__all__ = ["AuthorReads", "author_reads"]

_SECONDS: Final = 10.0
"""How long a decision counts; the permission behind it may be as old (see `AuthorRights`)."""

_MAX_MEMO: Final = 10_000
_FORBIDDEN: Final = 403

_Key = tuple[str, str, str, str, str, Read]


def author_reads(client: Client, kinds: Callable[[], KindTable], rights: PolicyRights) -> AuthorReads:
    """Return what decides about the reads of a controller's policies."""
    return AuthorReads(AuthorRights(client, kinds, rights))


class AuthorReads:
    """Decides about reads by the permissions of authors; memory answers for some seconds."""

    def __init__(self, rights: AuthorRights, now: Callable[[], float] = time.monotonic) -> None:
        """Take what decides about the permissions of authors."""
        self._rights = rights
        self._now = now
        self._known: dict[_Key, tuple[float, str]] = {}

    def is_granted(self, reader: Reader, read: Read) -> bool:
        """Return whether memory has a permission; raises EvaluationError if it has its lack."""
        if not self._rights.concerns(_policy(reader)):
            return True
        until, refusal = self._known.get(_key(reader, read), (0.0, ""))
        if self._now() >= until:  # guard: a decision about a read is short-lived
            return False
        if refusal:
            raise EvaluationError(refusal)
        return True

    async def require(self, reader: Reader, read: Read) -> None:
        """Raise EvaluationError unless the author of a policy may read something, HostError without a decision."""
        if not read.resource:
            raise HostError("the permissions of the policy's author cannot be checked: the cluster does not serve this")
        author = author_of({"metadata": {"annotations": {AUTHOR: reader.annotations.get(AUTHOR)}}})
        demand = Demand(read.verb, read.group, read.resource, read.subresource, read.name)
        refusal = ""
        try:
            await self._rights.require(_policy(reader), author, demand)
        except StatusError as error:
            if error.status != _FORBIDDEN:
                raise HostError(f"the permissions of the policy's author cannot be checked: {error.message}") from error
            refusal = error.message
        if len(self._known) >= _MAX_MEMO:  # guard: decisions about reads are bounded
            self._known.clear()
        self._known[_key(reader, read)] = (self._now() + _SECONDS, refusal)
        if refusal:
            raise EvaluationError(refusal)


def _policy(reader: Reader) -> ResourceRef:
    return ResourceRef(reader.api_version, reader.kind, reader.namespace, reader.name)


def _key(reader: Reader, read: Read) -> _Key:
    author = reader.annotations.get(AUTHOR, "")
    return reader.api_version, reader.kind, reader.namespace, reader.name, author, read
