"""The status of policies, written by the leader once webhooks and admission policies are in place.

The webhooks in place are remembered, so that a status that was changed, could not be written, or lacks a permission is
written again without computing webhooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from pyverno.cluster.client import Client
from pyverno.compiler.compile import Compiled
from pyverno.controllers.admission.policystatus import status_of
from pyverno.controllers.admissionpolicies.reconciler import Generation, with_generation
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopMetrics, LoopSettings
from pyverno.controllers.runtime.statuspatch import (
    BACKGROUND_CONDITION,
    conditions_of,
    status_patch,
    with_background_condition,
)
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.state.permissions import ReadPermissions, is_scanned
from pyverno.controllers.state.policystore import Identity
from pyverno.controllers.state.scannedkinds import is_scannable, matched_kinds
from pyverno.controllers.webhooks.sources import PolicyKey
from pyverno.engine.rule import Family
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["PolicyStatus", "Round"]

_SETTLE_SECONDS: Final = 0.2
_BACKOFF: Final = Backoff(first=1.0, longest=30.0)
_PERMISSION_SECONDS: Final = 20.0
_NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True)
class Round:
    """The policies in place, those the API server refused with its reasons, and what became of admission policies."""

    placed: Mapping[Identity, Compiled]
    refused: Mapping[PolicyKey, str]
    generated: Mapping[tuple[str, str], Generation]


class PolicyStatus:
    """Writes what follows from the last round, while its `controller` runs."""

    def __init__(
        self, client: Client, state: ClusterState, reports_account: str, metrics: LoopMetrics | None = None
    ) -> None:
        """Take what is known of the cluster and the account whose read permissions the status shows."""
        self._client = client
        self._state = state
        self._permissions = ReadPermissions(client, reports_account)
        self._round: Round | None = None
        self._written: dict[Identity, JSONObject] = {}
        self.controller: Controller[Identity] = Controller(
            "status-controller",
            self._reconcile,
            keys=lambda: () if self._round is None else self._round.placed,
            settings=LoopSettings(backoff=_BACKOFF),
            metrics=metrics,
        )
        state.listen_to_status(self._note_change)

    def begin(self) -> None:
        """Forget what an earlier term as leader found out."""
        self._round = None

    def write(self, found: Round) -> None:
        """Have the status of every policy of a round written; one that changed meanwhile has another round."""
        self._round = found
        self._written = {key: each for key, each in self._written.items() if key in found.placed}
        self.controller.add_all()

    def _note_change(self, identity: Identity) -> None:
        if self.controller.is_running and self._round is not None and self._is_disturbed(identity):
            self.controller.add(identity, after=_SETTLE_SECONDS)

    async def _reconcile(self, identity: Identity) -> Again | None:
        found = self._round
        compiled = None if found is None else found.placed.get(identity)
        # a policy that has changed since is not in place yet; the next round has it
        if found is None or compiled is None or self._state.store.compiled().get(identity) is not compiled:
            return None
        return await self._write(identity, compiled, found)

    def _is_disturbed(self, identity: Identity) -> bool:
        """Return whether a status is another one than was written: our own writes come back by the watch as well."""
        wanted, compiled = self._written.get(identity), self._state.store.compiled().get(identity)
        if wanted is None or compiled is None:
            return True
        found = self._state.current(compiled.document.value)
        return status_patch(found.get("status") or {}, wanted) is not None

    async def _write(self, identity: Identity, compiled: Compiled, found: Round) -> Again | None:
        body = compiled.document.value
        gvr = self._state.policy_resource(body)
        if gvr is None or compiled.written is None:
            return None
        name, namespace = body["metadata"]["name"], body["metadata"].get("namespace") or ""
        missing = await self._missing(compiled)
        wanted = status_of(
            compiled,
            is_configured=True,
            now=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            missing=missing,
            refusal=found.refused.get((body["kind"], namespace, name), ""),
        )
        wanted = with_generation(wanted, compiled, found.generated)
        status = self._state.current(body).get("status") or {}
        wanted = with_background_condition(wanted, _background_condition(status))
        patch = status_patch(status, wanted)
        self._written[identity] = wanted
        if patch is not None:
            try:
                await self._client.patch(gvr, name, patch, namespace, subresource="status")
            except StatusError as error:
                if error.status != _NOT_FOUND:  # the watch delivers its deletion
                    raise
        return Again(_PERMISSION_SECONDS) if missing else None

    async def _missing(self, compiled: Compiled) -> tuple[str, ...]:
        written, policy = compiled.written, compiled.policy
        if is_scanned(written):
            return await self._permissions.missing(written)
        if policy is None or policy.info.family is not Family.RULES or not is_scannable(policy):
            return ()
        kinds = matched_kinds([policy], self._state.kinds)
        return await self._permissions.unlisted(each.gvr for each in kinds if not each.verbs or "list" in each.verbs)


def _background_condition(status: JSONObject) -> JSONObject | None:
    """Return the condition that the background controller wrote."""
    return next((dict(each) for each in conditions_of(status) if each.get("type") == BACKGROUND_CONDITION), None)
