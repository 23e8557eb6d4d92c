"""Works on UpdateRequests that generate: one piece of work for each trigger that the request names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from pyverno.controllers.background.generating.generator import Generator
from pyverno.controllers.background.generating.work import Work
from pyverno.controllers.background.work import Awaited, Done, Waiting
from pyverno.controllers.state.policystore import Identity
from pyverno.errors import PyvernoError
from pyverno.policy.updaterequest import AdmissionContext, RequestType, Trigger, UpdateRequest

__all__ = ["GenerateHandler", "works_of"]

_PATIENCE_SECONDS: Final = 20.0
"""How long a request waits for the change that it announces: the API server may have refused it after all."""

_MAX_FIRST: Final = 10_000
_NO_CONTEXT: Final = AdmissionContext()


class GenerateHandler:
    """Does the work of `generate` and `cel-generate` requests."""

    def __init__(self, generator: Generator) -> None:
        """Take what does the work."""
        self._generator = generator
        self._first: dict[str, float] = {}

    async def handle(self, request: UpdateRequest) -> Done | Waiting:
        """Bring up to date what the request names; raises HostError or StatusError after all of it was tried."""
        uid = request.uid or request.name
        if len(self._first) >= _MAX_FIRST:
            self._first = {}
        is_late = time.monotonic() - self._first.setdefault(uid, time.monotonic()) > _PATIENCE_SECONDS
        problem: PyvernoError | None = None
        waits: list[Waiting] = []
        for work in works_of(request, is_late=is_late):
            try:
                outcome = await self._generator.run(work)
            except PyvernoError as error:
                problem = problem or error
                continue
            if isinstance(outcome, Waiting):
                waits.append(outcome)
        if problem is not None:
            raise problem
        if waits:
            return _joined(waits)
        self._first.pop(uid, None)
        return Done()


def works_of(request: UpdateRequest, *, is_late: bool = False) -> Iterator[Work]:
    """Yield the work that a request asks for, with the rules of one trigger together."""
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
        yield Work(identity, trigger, names, context, _reason(context), is_late)


def _identity(request_type: RequestType, policy: str) -> Identity:
    namespace, _, name = policy.rpartition("/")
    if request_type is RequestType.CEL_GENERATE:
        return f"policies.kyverno.io/{'Namespaced' if namespace else ''}GeneratingPolicy", namespace, name
    return f"kyverno.io/{'Policy' if namespace else 'ClusterPolicy'}", namespace, name


def _reason(context: AdmissionContext | None) -> str:
    return f"{context.operation} of the trigger" if context is not None and context.operation else "a request"


def _joined(waits: list[Waiting]) -> Waiting:
    on: dict[Awaited, None] = {}
    for each in waits:
        on.update(dict.fromkeys(each.on))
    return Waiting("; ".join(each.message for each in waits), tuple(on), min(each.seconds for each in waits))
