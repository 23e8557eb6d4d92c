"""Evaluation of requests to change existing objects: the policy, its evaluation on triggers and on what exists."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pyverno.compiler.compile import Compiled
from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.background.mutating.changes import Changes, Evaluate, Place
from pyverno.controllers.background.mutating.subjects import Subject, list_subjects
from pyverno.controllers.background.mutating.triggers import Triggers, with_cluster_facts
from pyverno.controllers.background.requester import requester_of
from pyverno.controllers.background.work import Done
from pyverno.engine.effects import PatchEffect
from pyverno.engine.engine import Review
from pyverno.engine.phases import MUTATING_EXISTING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import ResourceRef
from pyverno.engine.rule import CompiledPolicy, CompiledRule
from pyverno.errors import HostError, PyvernoError
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.kube.resource import Resource
from pyverno.kube.status import StatusError
from pyverno.policy.kinds import PolicyKind
from pyverno.policy.updaterequest import UPDATE_REQUESTS, UpdateRequest
from pyverno.webhook.authors import author_of

__all__ = ["WRITTEN_ANNOTATION", "MutatingHandler"]

WRITTEN_ANNOTATION: Final = "pyverno.io/written"
"""On an UpdateRequest that failed: digests of the rules and targets that are done."""


_NOT_FOUND: Final = 404
_ARRIVALS: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Pauses in which a policy that was stored a moment ago is waited for."""

_MAX_REMEMBERED: Final = 10_000
_POLICY_CHANGED: Final = "policy changed"

Ask = Callable[[Subject], Request]
"""Makes the request to evaluate for an existing object."""


@dataclass(slots=True)
class _Attempts:
    """Results of earlier attempts at a request: the last error, and what they wrote, which is not written again."""

    message: str = ""
    done: set[Place] = field(default_factory=set)
    recorded: frozenset[str] = frozenset()


class MutatingHandler:
    """The common part of both handlers: the policy of a request, its trigger, and the objects of the cluster."""

    def __init__(self, context: BackgroundContext) -> None:
        """Take what the controller works with."""
        self.context = context
        self.triggers = Triggers(context.client, context.state)
        self._attempts: dict[str, _Attempts] = {}

    async def policy(self, row: PolicyKind, key: str) -> Compiled | None:
        """Return the policy that a request names, None when it was deleted; raises HostError while it is not known."""
        namespace, _, name = key.rpartition("/")
        identity = (f"{row.group}/{row.kind}", namespace, name)
        for pause in (0.0, *_ARRIVALS):
            await asyncio.sleep(pause)
            found = self.context.state.store.compiled().get(identity)
            if found is not None:
                return found
            if not pause and await self._read(row, namespace, name) is None:
                return None
        raise HostError(f"the {row.kind} `{key}` has not arrived here yet")

    def changes(self, compiled: Compiled, policy: CompiledPolicy, request: UpdateRequest) -> Changes:
        """Return what collects the changes of one request, and knows those of earlier attempts; raises HostError."""
        context = self.context
        attempts = self._attempts_of(request)
        return Changes(
            policy.info,
            context.applier.apply,
            context.notify,
            self.is_selected,
            self.report,
            attempts.done,
            attempts.recorded,
            requester_of(compiled, request.spec.context),
            author_of(compiled.document.value),
        )

    def _attempts_of(self, request: UpdateRequest) -> _Attempts:
        if request.uid not in self._attempts and len(self._attempts) >= _MAX_REMEMBERED:
            del self._attempts[next(iter(self._attempts))]
        status = request.raw.get("status")
        message = str(status.get("message") or "") if isinstance(status, dict) else ""
        return self._attempts.setdefault(request.uid, _Attempts(message, recorded=_recorded_rules(request)))

    async def _record(self, request: UpdateRequest, attempts: _Attempts) -> None:
        """Note on a request what was written for it: after a restart a patch that appends must not append again."""
        digests = attempts.recorded | {place.digest for place in attempts.done}
        if digests == attempts.recorded:
            return
        body: JSONObject = {"metadata": {"annotations": {WRITTEN_ANNOTATION: ",".join(sorted(digests))}}}
        try:
            await self.context.client.patch(UPDATE_REQUESTS, request.name, body, self.context.settings.namespace)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise
        attempts.recorded = frozenset(digests)

    def report(self, review: Review) -> None:
        """Report the results of rules on the trigger."""
        self.context.reports.note(review.request, review.results)

    def is_selected(self, effect: PatchEffect) -> bool:
        """Return whether an object may be changed at all; Kyverno: resourceFilters do not apply to targets of rules."""
        return True

    async def finish(self, changes: Changes, request: UpdateRequest) -> Done:
        """Return the outcome of a request; raises HostError when something failed."""
        attempts = self._attempts_of(request)
        try:
            changes.finish(attempts.message)
        except HostError as error:
            attempts.message = error.message
            await self._record(request, attempts)
            raise
        self._attempts.pop(request.uid, None)
        return Done(f"{changes.written} objects were changed")

    # ----------------------------------------------------------------------------------------------------- evaluation

    def policies(self, policy: CompiledPolicy, rule: CompiledRule) -> PolicySet:
        """Return a set of one rule, and the exceptions that are in use."""
        exceptions = self.context.state.store.policies.all.exceptions
        return PolicySet([CompiledPolicy(policy.info, (rule,))], exceptions, asks_all=True)

    async def on_request(self, changes: Changes, policies: PolicySet, request: Request) -> None:
        """Have a rule evaluated on one request, which its own object stays out of."""

        async def evaluate(_attempt: int) -> Review:
            return await self.context.review(policies, request, MUTATING_EXISTING)

        await changes.perform(evaluate, ResourceRef.of(request.subject), f"{request.operation.value} of the trigger")

    async def on_existing(self, changes: Changes, policies: PolicySet, rule: CompiledRule, ask: Ask) -> None:
        """Have a rule evaluated on every object that it matches."""
        context = self.context
        async for subject in list_subjects(
            context.client, rule.matcher, context.state.kinds, rule.info.policy.namespace
        ):
            if isinstance(subject, PyvernoError):
                changes.fail(rule.info.name, subject.message)
            elif _matches(rule, await with_cluster_facts(ask(subject), context.state, context.client)):
                evaluate = self._evaluation(policies, subject, ask)
                await changes.perform(evaluate, ResourceRef.of(subject.document), _POLICY_CHANGED)

    def _evaluation(self, policies: PolicySet, subject: Subject, ask: Ask) -> Evaluate:
        async def evaluate(attempt: int) -> Review | None:
            current: Subject | None = subject
            if attempt:  # another writer changed the object since it was listed
                current = await self._read_again(subject)
            if current is None:
                return None
            request = await with_cluster_facts(ask(current), self.context.state, self.context.client)
            return await self.context.review(policies, request, MUTATING_EXISTING)

        return evaluate

    async def _read_again(self, subject: Subject) -> Subject | None:
        ref = ResourceRef.of(subject.document)
        found = await self._read(subject.kind, ref.namespace, ref.name)
        return None if found is None else Subject(found, subject.kind, subject.subresource)

    async def _read(self, row: PolicyKind | KindInfo, namespace: str, name: str) -> JSONObject | None:
        try:
            return await self.context.client.get(row.gvr, name, namespace)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise
            return None


def _matches(rule: CompiledRule, request: Request) -> bool:
    """Return whether a rule matches a request; the evaluation reports errors."""
    try:
        return rule.matcher.mismatch(request, Resource(request.subject)) is None
    except Exception:
        return True


def _recorded_rules(request: UpdateRequest) -> frozenset[str]:
    metadata = request.raw.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    written = annotations.get(WRITTEN_ANNOTATION) if isinstance(annotations, dict) else None
    return frozenset(written.split(",")) if isinstance(written, str) and written else frozenset()
