"""Runs policies on their schedules; missed times are made up for by a single run."""

from __future__ import annotations

import logging

from pyverno.compiler.compile import Compiled
from pyverno.controllers.cleanup.context import CleanupContext
from pyverno.controllers.cleanup.run import Outcome, PolicyRun
from pyverno.controllers.cleanup.schedule import next_due, read_time
from pyverno.controllers.cleanup.status import PolicyCondition, Reason, status_of
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopMetrics, LoopSettings
from pyverno.controllers.runtime.statuspatch import status_patch
from pyverno.controllers.state.policystore import Identity
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError, ValueSyntaxError
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.policy.cel.policies import DeletingPolicy
from pyverno.policy.cleanup import CleanupPolicy

__all__ = ["ScheduledPolicies"]

_LEAST_SECONDS = 1.0
_LONGEST_SECONDS = 3600.0
"""The longest pause between two checks of a policy: a clock that was set is noticed by then."""
_NOT_FOUND = 404

log = logging.getLogger("pyverno.cleanup")


class ScheduledPolicies:
    """Keeps every policy that deletes on its schedule, while its `controller` runs."""

    def __init__(self, context: CleanupContext, metrics: LoopMetrics | None = None) -> None:
        """Take what to work with; the loop's metrics are those of all controllers."""
        self._context = context
        self._executed: dict[str, float] = {}
        settings = context.settings
        self.controller: Controller[Identity] = Controller(
            "cleanup-controller",
            self._reconcile,
            keys=self._policies,
            settings=LoopSettings(
                workers=settings.workers, resync_seconds=settings.resync_seconds, backoff=settings.backoff
            ),
            metrics=metrics,
        )
        context.state.store.listen(self._note)
        context.time.listen(self.controller.add_all)

    def _policies(self) -> tuple[Identity, ...]:
        known = self._context.state.store.compiled()
        return tuple(identity for identity, compiled in known.items() if compiled.exception is None)

    def _note(self, identity: Identity) -> None:
        """Queue a policy that changed; a change of its status does not count."""
        compiled = self._context.state.store.compiled().get(identity)
        if compiled is not None and compiled.exception is None:
            self.controller.add(identity)

    # ------------------------------------------------------------------------------------------------------- reconcile

    async def _reconcile(self, identity: Identity) -> Again | None:
        compiled = self._context.state.store.compiled().get(identity)
        if compiled is None:
            return None
        body = self._context.state.current(compiled.document.value)
        written = compiled.written
        if not isinstance(written, (CleanupPolicy, DeletingPolicy)) or compiled.policy is None:
            await self._describe(compiled, body, _invalid(compiled))
            return None
        now, last = self._context.now(), self._last_execution(body)
        try:
            since = last if last is not None else read_time(body["metadata"].get("creationTimestamp") or "")
            due = next_due(written.spec.schedule, now if since is None else since, self._context.settings.zone)
        except ValueSyntaxError as error:
            # COMPAT: of a cleanup policy two parsers read the schedule, and both must be able to
            text = f"schedule `{written.spec.schedule}` cannot be run: {error.message}"
            await self._describe(compiled, body, PolicyCondition(Reason.INVALID, text, last))
            self._notify_error(body, text)
            return None
        if compiled.errors:
            await self._describe(compiled, body, _invalid(compiled))
            return None
        if due is None:
            await self._describe(compiled, body, PolicyCondition(Reason.SCHEDULED, "the schedule has ended", last))
            return None
        if due > now:
            if not _has_condition(body):
                await self._describe(compiled, body, PolicyCondition(Reason.SCHEDULED, "waits for its schedule", last))
            return Again(min(max(due - now, _LEAST_SECONDS), _LONGEST_SECONDS))
        return await self._run(compiled, body, last)

    async def _run(self, compiled: Compiled, body: JSONObject, last: float | None) -> Again:
        """Run a policy that is due; raises HostError when a part of it failed, so that it runs again soon."""
        if compiled.policy is None:
            raise HostError("the policy does not compile")
        started = self._context.now()
        try:
            outcome = await PolicyRun(self._context, compiled, compiled.policy).perform()
        except (HostError, StatusError) as error:
            await self._describe(compiled, body, PolicyCondition(Reason.FAILED, error.message, last))
            self._notify_error(body, error.message)
            raise
        self._log(body, outcome)
        if outcome.held:
            await self._describe(compiled, body, PolicyCondition(Reason.CONFIRMATION, outcome.held, last))
            self._notify_error(body, outcome.held)
            return Again(_LONGEST_SECONDS)  # the annotation wakes it
        if outcome.failures:
            text = f"{len(outcome.failures)} objects could not be deleted: {outcome.problems}"
            await self._describe(compiled, body, PolicyCondition(Reason.FAILED, text, last))
            raise HostError(text)
        self._executed[body["metadata"].get("uid") or ""] = started
        reason = Reason.INCOMPLETE if outcome.skipped else Reason.SUCCEEDED
        text = f"the last run deleted {outcome.deleted} of {outcome.selected} selected objects"
        message = f"{text}; {outcome.problems}" if outcome.skipped else text
        if outcome.skipped:
            self._notify_error(body, outcome.problems)
        await self._describe(compiled, body, PolicyCondition(reason, message, started))
        return Again(_LEAST_SECONDS)

    # ---------------------------------------------------------------------------------------------------------- status

    def _last_execution(self, body: JSONObject) -> float | None:
        """Return when a policy ran last; the watch may not have brought our own note of it yet."""
        noted = self._executed.get(body["metadata"].get("uid") or "")
        written = read_time((body.get("status") or {}).get("lastExecutionTime") or "")
        return max((each for each in (noted, written) if each is not None), default=None)

    async def _describe(self, compiled: Compiled, body: JSONObject, condition: PolicyCondition) -> None:
        """Write the status where it differs from the one before."""
        if self._context.settings.is_dry_run:
            return
        gvr = self._context.state.policy_resource(body)
        if gvr is None:
            return
        metadata = body["metadata"]
        is_cel = str(body.get("apiVersion", "")).startswith("policies.kyverno.io/")
        now = self._context.time.now() or 0.0
        wanted = status_of(condition, is_cel=is_cel, generation=metadata.get("generation") or 0, now=now)
        patch = status_patch(body.get("status") or {}, wanted)
        if patch is None:
            return
        try:
            await self._context.client.patch(
                gvr, metadata["name"], patch, metadata.get("namespace") or "", subresource="status"
            )
        except StatusError as error:
            if error.status != _NOT_FOUND:  # the watch delivers its deletion
                raise

    def _notify_error(self, body: JSONObject, text: str) -> None:
        ref = ResourceRef.of(body)
        key = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
        self._context.notify(Event("PolicyError", "None", f"policy {key} error: {text}", ref, source="kyverno-cleanup"))

    def _log(self, body: JSONObject, outcome: Outcome) -> None:
        fields = {
            "policy": str(ResourceRef.of(body)),
            "selected": outcome.selected,
            "deleted": outcome.deleted,
            "failed": len(outcome.failures),
            "held": outcome.held,
        }
        log.info("a policy has run", extra={"fields": fields})


def _invalid(compiled: Compiled) -> PolicyCondition:
    text = "; ".join(f"{error.path}: {error.message}" for error in compiled.errors) or "the policy does not compile"
    return PolicyCondition(Reason.INVALID, text)


def _has_condition(body: JSONObject) -> bool:
    status = body.get("status") or {}
    return bool(status.get("conditions") or (status.get("conditionStatus") or {}).get("conditions"))
