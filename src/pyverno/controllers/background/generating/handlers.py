"""Works on UpdateRequests that generate: one piece of work for each trigger that the request names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from pyverno.cluster.client import Client
from pyverno.controllers.background.generating.generator import Generator
from pyverno.controllers.background.generating.work import Work
from pyverno.controllers.background.work import Awaited, Done, Waiting
from pyverno.controllers.state.policystore import Identity
from pyverno.engine.result import ResourceRef
from pyverno.errors import PyvernoError
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import (
    UPDATE_REQUESTS,
    AdmissionContext,
    RequestType,
    Trigger,
    UpdateRequest,
    revision_of,
)

__all__ = ["GenerateHandler", "works_of"]

_WAIT_SECONDS: Final = 20.0
"""How long a request waits for the change that it announces: the API server may have refused it after all."""

_MAX_KNOWN: Final = 10_000
_NOT_FOUND: Final = 404
_NO_CONTEXT: Final = AdmissionContext()


class GenerateHandler:
    """Does the work of `generate` and `cel-generate` requests.

    Of several requests that wait with the same work the newest is kept: a trigger that changes often, and that a rule
    fails on, must not fill the cluster with requests.
    """

    def __init__(self, client: Client, namespace: str, generator: Generator) -> None:
        """Take the client, the namespace of the requests, and what does the work."""
        self._client = client
        self._namespace = namespace
        self._generator = generator
        self._first: dict[str, float] = {}
        self._waiting: dict[tuple[object, ...], tuple[float, str]] = {}

    async def handle(self, request: UpdateRequest) -> Done | Waiting:
        """Bring up to date what the request names; raises HostError or StatusError after all of it was tried."""
        first = self._first_seen(request)
        is_late = time.monotonic() - first > _WAIT_SECONDS
        problem: PyvernoError | None = None
        refusal: Done | None = None
        waits: list[Waiting] = []
        policy = _identity(request.spec.request_type, request.spec.policy)
        try:
            await self._generator.delete_listed(policy, _deleted_downstreams(request))
        except PyvernoError as error:
            problem = error.copied()
        for work in works_of(request, is_late=is_late):
            try:
                outcome = await self._generator.run(work)
            except PyvernoError as error:
                problem = problem or error.copied()
                continue
            if isinstance(outcome, Waiting):
                waits.append(outcome)
            elif outcome.is_refused:
                refusal = outcome
        if problem is None and not waits:
            self._first.pop(request.uid, None)
            return refusal or Done()
        if await self._is_superseded(request, first):
            return Done("a newer request waits with the same work")
        if problem is not None:
            raise problem.copied()
        return _join(waits)

    def _first_seen(self, request: UpdateRequest) -> float:
        """Return when a request was first worked on, in seconds of the monotonic clock."""
        if len(self._first) >= _MAX_KNOWN:
            self._first = {}
        return self._first.setdefault(request.uid, time.monotonic())

    async def _is_superseded(self, request: UpdateRequest, first: float) -> bool:
        """Return whether a newer request waits with the same work; an older one that does is deleted."""
        same = tuple((work.policy, work.trigger, tuple(work.rules.items())) for work in works_of(request))
        known = self._waiting.get(same)
        if known is not None and known[1] != request.name and known[0] > first:
            return True
        if len(self._waiting) >= _MAX_KNOWN:
            self._waiting = {}
        self._waiting[same] = first, request.name  # before the first await: others wait with the same work
        if known is not None and known[1] != request.name:
            try:
                await self._client.discard(UPDATE_REQUESTS, known[1], self._namespace)
            except StatusError as error:
                if error.status != _NOT_FOUND:
                    raise
        return False


def works_of(request: UpdateRequest, *, is_late: bool = False) -> Iterator[Work]:
    """Yield the work of an UpdateRequest, grouped by trigger."""
    spec = request.spec
    identity = _identity(spec.request_type, spec.policy)
    is_cel = spec.request_type is RequestType.CEL_GENERATE
    rules: dict[Trigger, dict[str, bool]] = {}
    for each in spec.rule_context:
        if each.cache_restore:
            continue  # generated objects are found by their labels
        name = "" if is_cel else each.rule
        rules.setdefault(each.trigger, {})[name] = each.delete_downstream or spec.delete_downstream
    if not spec.rule_context and spec.rule:
        rules[spec.resource] = {spec.rule: spec.delete_downstream}
    context = None if spec.context == _NO_CONTEXT or spec.context.request is None else spec.context
    for trigger, names in rules.items():
        yield Work(
            identity,
            trigger,
            names,
            context,
            _reason(context),
            is_late,
            is_reported=True,
            revision=revision_of(request.raw),
        )


def _deleted_downstreams(request: UpdateRequest) -> Iterator[ResourceRef]:
    """Yield the objects that Kyverno lists in a request which it writes when a policy or a rule is deleted."""
    spec, status = request.spec, request.raw.get("status")
    if not (spec.delete_downstream or any(each.delete_downstream for each in spec.rule_context)):
        return
    for item in (status.get("generatedResources") if isinstance(status, dict) else None) or ():
        if isinstance(item, dict):
            parts = (item.get(name) for name in ("apiVersion", "kind", "namespace", "name"))
            yield ResourceRef(*(part if isinstance(part, str) else "" for part in parts))


def _identity(request_type: RequestType, policy: str) -> Identity:
    namespace, _, name = policy.rpartition("/")
    if request_type is RequestType.CEL_GENERATE:
        return f"policies.kyverno.io/{'Namespaced' if namespace else ''}GeneratingPolicy", namespace, name
    return f"kyverno.io/{'Policy' if namespace else 'ClusterPolicy'}", namespace, name


def _reason(context: AdmissionContext | None) -> str:
    return f"{context.operation} of the trigger" if context is not None and context.operation else "a request"


def _join(waits: list[Waiting]) -> Waiting:
    on: dict[Awaited, None] = {}
    for each in waits:
        on.update(dict.fromkeys(each.on))
    return Waiting("; ".join(each.message for each in waits), tuple(on), min(each.seconds for each in waits))
