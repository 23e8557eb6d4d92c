"""One run of a policy: list its candidates, evaluate them, delete those that it selects."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from typing import Final

from pyverno.cluster.remembering import RememberingHost
from pyverno.compiler.compile import Compiled
from pyverno.controllers.applier import Cause, Change
from pyverno.controllers.cleanup.candidates import Candidates, candidates_of, list_pages
from pyverno.controllers.cleanup.context import CleanupContext
from pyverno.controllers.cleanup.protection import reason_to_keep
from pyverno.controllers.runtime.events import Event
from pyverno.engine.effects import DeleteEffect
from pyverno.engine.engine import Engine
from pyverno.engine.phases import DELETING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import ResourceRef, Status
from pyverno.engine.rule import CompiledPolicy
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.policy.cel.policies import DeletingPolicy
from pyverno.policy.cleanup import CleanupPolicy
from pyverno.threads import in_pool
from pyverno.value import dataclass, field
from pyverno.webhook.authors import author_of

__all__ = ["CONFIRMATION", "Outcome", "PolicyRun"]

CONFIRMATION: Final = "pyverno.io/confirmed-deletions"
"""On a policy: how many objects of a kind one run may delete."""

_NAMESPACES: Final = GVR("", "v1", "namespaces")
_CONFLICT: Final = 409
_SKIPPED: Final = (401, 403, 404, 405)
"""Refusals of a list that leave a kind out of a run. (Kyverno: the same)"""
_ATTEMPTS: Final = 5
_MAX_TEXTS: Final = 5
_MAX_DRY_EVENTS: Final = 20
_SOURCE: Final = "kyverno-cleanup"

log = logging.getLogger("pyverno.cleanup")


@dataclass(slots=True)
class Outcome:
    """The outcome of a run: numbers of selected and deleted objects, failures, kinds left out, the reason of a hold."""

    selected: int = 0
    deleted: int = 0
    failures: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    held: str = ""

    def fail(self, text: str) -> None:
        """Note a failure; of many the first few are kept."""
        self.failures.append(text)

    @property
    def problems(self) -> str:
        """Failures and kinds left out, in one text."""
        texts = [*self.failures, *self.skipped]
        more = f"; and {len(texts) - _MAX_TEXTS} more" if len(texts) > _MAX_TEXTS else ""
        return "; ".join(texts[:_MAX_TEXTS]) + more


@dataclass(frozen=True, slots=True)
class _Selected:
    """An object that a policy selects: the effect, and the version that was evaluated."""

    effect: DeleteEffect
    body: JSONObject


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The outcome of a policy for one object: the deletion it wants, or what went wrong."""

    effect: DeleteEffect | None = None
    error: str = ""


class PolicyRun:
    """Runs one policy once; answers of the host are cached until its end."""

    def __init__(self, context: CleanupContext, compiled: Compiled, policy: CompiledPolicy) -> None:
        """Take what to work with, and the policy."""
        written = compiled.written
        if not isinstance(written, (CleanupPolicy, DeletingPolicy)):
            raise TypeError(f"{policy.info.key} deletes nothing")
        self._context = context
        self._written = written
        self._policy = policy
        self._set = PolicySet([policy], context.state.policies.all.exceptions)
        self._host = self._new_host()
        self._namespaces: dict[str, JSONObject] = {}
        metadata = compiled.document.value["metadata"]
        self._ref = ResourceRef(policy.info.api_version, policy.info.kind, policy.info.namespace, policy.info.name)
        self._confirmed = _confirmed(metadata)
        self._author = author_of(compiled.document.value)
        self._dry_runs = 0
        self.outcome = Outcome()

    async def perform(self) -> Outcome:
        """Run; raises StatusError and HostError for what concerns the run as a whole."""
        found = candidates_of(self._written, self._context.state.kinds)
        selected = [(each, [one async for one in self._select(each)]) for each in found]
        for each, items in selected:
            self._hold_back(each, len(items))
        if self.outcome.held:
            return self.outcome
        for each, items in selected:
            await self._delete_all(each, items)
        return self.outcome

    # ------------------------------------------------------------------------------------------------------ evaluation

    async def _select(self, found: Candidates) -> AsyncIterator[_Selected]:
        info, state, settings = found.info, self._context.state, self._context.settings
        try:
            await self._require_read(found)
            async for page in list_pages(self._context.client, found):
                items = [
                    item
                    for item in page
                    if not reason_to_keep(
                        info,
                        item["metadata"],
                        state.configuration,
                        own_namespace=settings.namespace,
                        protects_managed=settings.protects_managed,
                    )
                ]
                for item, verdict in zip(items, await self._evaluate(found, items), strict=True):
                    if verdict.error:
                        self._fail(found, ResourceRef.of(item), verdict.error)
                    if verdict.effect is not None:
                        yield _Selected(verdict.effect, _version(item))
        except StatusError as error:
            if error.status not in _SKIPPED:
                raise
            self._skip(info.kind, error)

    async def _require_read(self, found: Candidates) -> None:
        """Raise StatusError (403) unless the author of a namespaced policy may read the objects that it judges."""
        info, cause = found.info, Cause(self._ref, self._policy.info.name, author=self._author)
        objects = ResourceRef(info.api_version, info.kind, found.namespace, found.name)
        await self._context.applier.authorize(cause, "get", info.gvr, objects)  # guard: a cleanup judges what is read

    async def _evaluate(self, found: Candidates, items: Sequence[JSONObject]) -> list[_Verdict]:
        """Evaluate objects in a thread; a namespace that cannot be read is an error of its objects."""
        requests: list[Request | str] = []
        for item in items:
            namespace = item["metadata"].get("namespace") or ""
            try:
                known = await self._namespace(namespace) if namespace else None
            except (HostError, StatusError) as error:
                requests.append(f"namespace {namespace} cannot be read: {error.message}")
                continue
            if found.info.kind == "Namespace" and not found.info.group:
                known = item
            labels = None if known is None else (known["metadata"].get("labels") or {})
            requests.append(
                Request.from_live(
                    item, namespace_labels=labels, namespace_object=known, gvr=found.info.gvr
                ).with_settings(self._context.state.configuration.evaluation)
            )
        seconds, host, policies = self._context.settings.review_seconds, self._host, self._set

        def evaluate() -> list[_Verdict]:
            engine = Engine(policies, host)
            return [
                _Verdict(error=each) if isinstance(each, str) else _review(engine, each, seconds) for each in requests
            ]

        return await in_pool(self._context.pool, evaluate)

    async def _namespace(self, name: str) -> JSONObject:
        known = self._namespaces.get(name) or self._context.state.namespace(name)
        if known is None:
            known = await self._context.client.get(_NAMESPACES, name)
        self._namespaces[name] = known
        return known

    def _new_host(self) -> RememberingHost:
        inner = self._context.host()
        return RememberingHost(inner)

    # -------------------------------------------------------------------------------------------------------- deletion

    def _hold_back(self, found: Candidates, count: int) -> None:
        self.outcome.selected += count
        limit = self._context.settings.max_deletions
        if limit and count > max(limit, self._confirmed):
            self.outcome.held = (
                f"it selects {count} objects of kind {found.info.kind}, more than {max(limit, self._confirmed)}: "
                f"to confirm, set annotation {CONFIRMATION} of the policy to at least {count}"
            )

    async def _delete_all(self, found: Candidates, items: Sequence[_Selected]) -> None:
        """Delete several objects at a time; one that cannot be deleted does not stop the others."""
        waiting = iter(items)

        async def work() -> None:
            for item in waiting:
                await self._delete(found, item)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._context.settings.delete_workers, len(items))):
                group.create_task(work())

    async def _delete(self, found: Candidates, item: _Selected) -> None:
        target, propagation = item.effect.target, item.effect.propagation_policy
        if self._context.settings.is_dry_run:
            self._report_dry_run(target)
            return
        try:
            is_deleted = await self._delete_as_evaluated(found, item)
        except (HostError, StatusError) as error:
            self._context.metrics.count(self._policy.info, found.info, target, propagation, failed=True)
            self._fail(found, target, error.message)
            return
        if is_deleted:
            self.outcome.deleted += 1
            self._context.metrics.count(self._policy.info, found.info, target, propagation, failed=False)
            self._notify(
                "PolicyApplied", "Resource Cleaned Up", f"successfully {self._done} {_describe(target)}", target
            )

    async def _delete_as_evaluated(self, found: Candidates, item: _Selected) -> bool:
        """Delete an object in the version that was evaluated; one that changed since is evaluated again."""
        effect, body = item.effect, item.body
        cause = Cause(self._ref, self._policy.info.name, author=self._author)
        for _ in range(_ATTEMPTS):
            try:
                applied = await self._context.applier.apply(effect, cause, current=body)
                return applied.change is Change.DELETED
            except StatusError as error:
                if error.status != _CONFLICT:
                    raise
            again = await self._evaluate_again(found, effect.target)
            if again is None:
                return False
            effect, body = again.effect, again.body
        raise HostError(f"it changed {_ATTEMPTS} times while it was evaluated")

    async def _evaluate_again(self, found: Candidates, target: ResourceRef) -> _Selected | None:
        """Read one object and evaluate it without cached answers; None when it is not selected any more."""
        self._host = self._new_host()
        place = Candidates(found.info, target.namespace, found.selector)
        # read by a list: a policy needs no other permission than it needs to run
        items = [item async for page in list_pages(self._context.client, place, name=target.name) for item in page]
        for item, verdict in zip(items, await self._evaluate(place, items), strict=True):
            if verdict.error:
                raise HostError(verdict.error)
            if verdict.effect is not None and not item["metadata"].get("deletionTimestamp"):
                return _Selected(verdict.effect, _version(item))
        return None

    # ----------------------------------------------------------------------------------------------------------- words

    @property
    def _done(self) -> str:
        return "cleaned up" if isinstance(self._written, CleanupPolicy) else "deleted"

    @property
    def _do(self) -> str:
        return "clean up" if isinstance(self._written, CleanupPolicy) else "delete"

    def _fail(self, found: Candidates, target: ResourceRef, error: str) -> None:
        self.outcome.fail(f"{_place(target)}: {error}")
        if len(self.outcome.failures) <= _MAX_TEXTS:  # the status holds the number
            self._notify("PolicyError", "None", f"failed to {self._do} {_describe(target)}: {error}", target)
        fields = {"policy": self._policy.info.key, "resource": _place(target), "error": error}
        log.error("an object could not be cleaned up", extra={"fields": fields})

    def _skip(self, kind: str, error: StatusError) -> None:
        self.outcome.skipped.append(f"kind {kind} is left out: {error.message}")
        fields = {"policy": self._policy.info.key, "kind": kind, "error": error.message}
        log.warning("a kind is left out of a run", extra={"fields": fields})

    def _report_dry_run(self, target: ResourceRef) -> None:
        fields = {"policy": self._policy.info.key, "resource": _place(target)}
        log.info("would delete an object (dry run)", extra={"fields": fields})
        self._dry_runs += 1
        if self._dry_runs <= _MAX_DRY_EVENTS:
            self._notify("PolicySkipped", "None", f"would {self._do} {_describe(target)} (dry run)", target)

    def _notify(self, reason: str, action: str, note: str, target: ResourceRef) -> None:
        self._context.notify(Event(reason, action, note, self._ref, target, _SOURCE))


def _review(engine: Engine, request: Request, seconds: float) -> _Verdict:
    review = engine.review(request, DELETING, deadline=time.monotonic() + seconds)
    errors = [result.message for result in review.results if result.status is Status.ERROR]
    effect = next((each for each in review.effects if isinstance(each, DeleteEffect)), None)
    return _Verdict(None if errors else effect, "; ".join(errors))


def _version(body: JSONObject) -> JSONObject:
    """Return what identifies an object in the version in which it was evaluated."""
    metadata = body["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion")
    return {"metadata": {key: metadata[key] for key in kept if metadata.get(key)}}


def _confirmed(metadata: JSONObject) -> int:
    text = str((metadata.get("annotations") or {}).get(CONFIRMATION, ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _place(target: ResourceRef) -> str:
    return "/".join((target.kind, target.namespace, target.name))


def _describe(target: ResourceRef) -> str:
    return f"the target resource {_place(target)}"
