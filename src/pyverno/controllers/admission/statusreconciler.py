"""The status of policies, written while this replica leads: after every round, and whenever it differs from that.

What a round found out is remembered, so that a status that somebody changed, that could not be written, or that waits
for a permission is written within seconds and without another round. This module must never decide what a status says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Final

from pyverno.cluster.client import Client
from pyverno.compiler.compile import Compiled
from pyverno.controllers.admission.policystatus import status_of
from pyverno.controllers.admissionpolicies.reconciler import Generation, with_generation
from pyverno.controllers.runtime.statuspatch import status_patch
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.state.permissions import ReadPermissions, ScannedPolicy
from pyverno.controllers.state.policystore import Identity
from pyverno.controllers.webhooks.sources import PolicyKey
from pyverno.errors import HostError
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["PolicyStatus", "Round"]

_SETTLE_SECONDS: Final = 0.2
_RETRY_SECONDS: Final = 5.0
_PERMISSION_SECONDS: Final = 20.0
_NOT_FOUND: Final = 404

log = logging.getLogger("pyverno.admission")


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of the leader put in place, and what it was refused; `generated` are the copies of policies."""

    placed: Mapping[Identity, Compiled]
    is_configured: bool
    refused: Mapping[PolicyKey, str]
    generated: Mapping[tuple[str, str], Generation]


class PolicyStatus:
    """Writes what follows from the last round; `keep` runs while this replica leads."""

    def __init__(self, client: Client, world: ClusterState, reports_account: str) -> None:
        """Take the client, what is known of the cluster, and the account that reads for reports."""
        self._client = client
        self._world = world
        self._permissions = ReadPermissions(client, reports_account)
        self._round: Round | None = None
        self._written: dict[Identity, JSONObject] = {}
        self._failed: set[Identity] = set()
        self._lacking: set[Identity] = set()

    def begin(self) -> None:
        """Forget what an earlier term as leader found out."""
        self._round = None

    async def write(self, found: Round) -> None:
        """Write the status of every policy of a round; one that came meanwhile has another round."""
        self._round = found
        self._failed.clear()
        self._lacking.clear()
        self._written = {key: each for key, each in self._written.items() if key in found.placed}
        for identity, compiled in found.placed.items():
            await asyncio.sleep(0)  # a thousand of them take a second, and requests do not wait
            await self._write(identity, compiled, found)

    async def keep(self) -> None:
        """Write again whatever differs from what it should be, until cancelled."""
        while True:
            identities = await self._due()
            found = self._round
            if found is None:
                continue  # the first round writes them all
            for identity in identities:
                compiled = found.placed.get(identity)
                # one that has changed since is not in place yet, and has another round
                if compiled is None or self._world.store.compiled().get(identity) is not compiled:
                    continue
                try:
                    await self._write(identity, compiled, found)
                except HostError:
                    self._failed.add(identity)

    async def _due(self) -> set[Identity]:
        """Wait until there is something to write again, and return what."""
        seconds = _RETRY_SECONDS if self._failed else _PERMISSION_SECONDS if self._lacking else None
        has_waited = False
        try:
            async with asyncio.timeout(seconds):
                await self._world.touched.wait()
            await asyncio.sleep(_SETTLE_SECONDS)
        except TimeoutError:
            has_waited = True
        due = {identity for identity in self._world.take_touched() if self._is_disturbed(identity)}
        if has_waited:
            due |= self._failed | self._lacking
            self._failed, self._lacking = set(), set()
        return due

    def _is_disturbed(self, identity: Identity) -> bool:
        """Tell whether a status is another one than was written: our own writes come back by the watch as well."""
        wanted, compiled = self._written.get(identity), self._world.store.compiled().get(identity)
        if wanted is None or compiled is None:
            return True
        found = self._world.current(compiled.document.value)
        return status_patch(found.get("status") or {}, deepcopy(wanted)) is not None

    async def _write(self, identity: Identity, compiled: Compiled, found: Round) -> None:
        body = compiled.document.value
        gvr = self._world.policy_resource(body)
        if gvr is None or compiled.written is None:
            return
        name, namespace = body["metadata"]["name"], body["metadata"].get("namespace") or ""
        missing = await self._missing(compiled)
        if missing:
            self._lacking.add(identity)
        wanted = status_of(
            compiled,
            is_configured=found.is_configured,
            now=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            missing=missing,
            refusal=found.refused.get((body["kind"], namespace, name), ""),
        )
        wanted = with_generation(wanted, compiled, found.generated)
        patch = status_patch(self._world.current(body).get("status") or {}, wanted)
        self._written[identity] = wanted
        if patch is None:
            return
        try:
            await self._client.patch(gvr, name, patch, namespace, subresource="status")
        except StatusError as error:
            if error.status == _NOT_FOUND:
                return  # the watch tells of its end
            fields = {"policy": name, "error": error.message}
            log.warning("the status of a policy could not be written", extra={"fields": fields})
            self._failed.add(identity)

    async def _missing(self, compiled: Compiled) -> tuple[str, ...]:
        written = compiled.written
        return await self._permissions.missing(written) if isinstance(written, ScannedPolicy) else ()
