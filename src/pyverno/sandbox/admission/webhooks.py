"""Admission webhooks: which are asked about a request, in which order, and what their answers do to it.

Mutating ones are asked one after another, each seeing what those before it changed, and once more when the object
changed after them; validating ones are asked at the same time. This module must never know how a call travels.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pyverno.errors import PatchError
from pyverno.kube.json import JSON, JSONObject, dump, equal
from pyverno.kube.jsonpatch import apply_patch
from pyverno.kube.status import StatusError, bad_request, internal_error
from pyverno.sandbox.admission.caller import CallError, WebhookCaller
from pyverno.sandbox.admission.hooks import MUTATING, VALIDATING, HookSource, Invocation
from pyverno.sandbox.admission.questions import converted
from pyverno.sandbox.admission.review import (
    Answer,
    BadAnswerError,
    admission_review,
    denial,
    read_answer,
    review_version,
)
from pyverno.sandbox.attributes import Attributes, Notes
from pyverno.sandbox.authorization.access import Authorizer
from pyverno.sandbox.requests import go_quote
from pyverno.sandbox.view import ClusterView
from pyverno.value import dataclass, field

__all__ = ["Rounds", "Webhooks", "is_exempt"]

_EXEMPT_GROUP = "admissionregistration.k8s.io"
_EXEMPT: Final = frozenset(
    f"{kind}{what}"
    for kind in ("Validating", "Mutating")
    for what in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
)
Redefault = Callable[[JSONObject], JSONObject]


def is_exempt(attributes: Attributes) -> bool:
    """Tell whether a request is about what configures admission, which no webhook may lock."""
    return attributes.kind.group == _EXEMPT_GROUP and attributes.kind.kind in _EXEMPT


@dataclass(slots=True)
class Rounds:
    """What the rounds of mutation of one request know of each other.

    `called` are the webhooks that want to be asked again and have been asked since the last change, `due` those that
    are asked in the next round, `left` is the object as the webhooks left it.
    """

    number: int = 0
    is_due: bool = False
    called: set[str] = field(default_factory=set)
    due: set[str] = field(default_factory=set)
    left: JSON = None

    def changed(self) -> None:
        """Note that the object has changed: whoever was asked before is due again."""
        self.due |= self.called
        self.called = set()


class Webhooks:
    """Asks the webhooks of both kinds."""

    def __init__(
        self,
        cluster: ClusterView,
        authorizer: Authorizer,
        caller: WebhookCaller,
        *,
        make_id: Callable[[], str],
        kube_version: tuple[int, int],
    ) -> None:
        """Take where configurations are, who answers `authorizer` in conditions, and who carries the calls."""
        self._cluster = cluster
        self._caller = caller
        self._make_id = make_id
        self._mutating = HookSource(MUTATING, cluster, authorizer, kube_version)
        self._validating = HookSource(VALIDATING, cluster, authorizer, kube_version)

    async def mutate(self, attributes: Attributes, notes: Notes, rounds: Rounds, redefault: Redefault) -> Attributes:
        """Ask the mutating webhooks and return the request with the object as they left it; raises StatusError."""
        if is_exempt(attributes):
            return attributes
        if rounds.number and not equal(rounds.left, attributes.object):
            rounds.changed()
        for position, (hook, type) in enumerate(self._mutating.candidates(attributes)):
            invocation = self._mutating.invocation(hook, type, attributes)
            if invocation is None or (rounds.number and hook.key not in rounds.due):
                continue
            before = attributes
            answer = await self._asked(invocation, attributes, notes, is_mutating=True)
            if answer is None:
                notes.annotations[_failed_open("mutation", rounds.number, position)] = hook.name
            else:
                attributes = self._patched(invocation, attributes, answer, redefault)
            if not equal(before.object, attributes.object):
                rounds.changed()
                rounds.is_due = True
            if hook.reinvokes:
                rounds.called.add(hook.key)
        rounds.left = attributes.object
        return attributes

    async def validate(self, attributes: Attributes, notes: Notes) -> None:
        """Ask the validating webhooks, all at the same time; raises the StatusError of the first that refuses."""
        if is_exempt(attributes):
            return
        invocations = list(self._validating.invocations(attributes))
        if not invocations:
            return
        if len(invocations) == 1:
            await self._validated(invocations[0], 0, attributes, notes)
            return
        # every webhook is asked to the end: what one of them sees does not depend on another's answer
        calls = (self._validated(each, index, attributes, notes) for index, each in enumerate(invocations))
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if outcome is not None:
                raise outcome

    async def _validated(self, invocation: Invocation, position: int, attributes: Attributes, notes: Notes) -> None:
        answer = await self._asked(invocation, attributes, notes, is_mutating=False)
        if answer is None:
            notes.annotations[_failed_open("validating", 0, position)] = invocation.hook.name

    async def _asked(
        self, invocation: Invocation, attributes: Attributes, notes: Notes, *, is_mutating: bool
    ) -> Answer | None:
        """Ask one webhook; None when the call failed and failures are to be ignored. Raises its refusal."""
        hook = invocation.hook
        if attributes.dry_run and hook.has_side_effects:
            raise bad_request(f"admission webhook {go_quote(hook.name)} does not support dry run")
        try:
            answer = await self._exchanged(invocation, attributes, is_mutating=is_mutating)
            for text in answer.warnings:
                notes.warn(text)
            notes.annotations.update({f"{hook.name}/{key}": str(value) for key, value in answer.annotations})
            if answer.allowed and is_mutating:
                answer.operations()
        except BadAnswerError as error:
            if hook.ignores_failures:
                return None
            raise internal_error(f"failed calling webhook {go_quote(hook.name)}: {error.message}") from None
        if not answer.allowed:
            raise denial(hook.name, answer.status)
        return answer

    async def _exchanged(self, invocation: Invocation, attributes: Attributes, *, is_mutating: bool) -> Answer:
        hook, type = invocation.hook, invocation.type
        version = review_version(hook.versions)
        if not version:
            why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise BadAnswerError(f"could not create admission objects: {why}")
        uid = self._make_id()
        new = converted(attributes.object, attributes, type, self._cluster)
        old = converted(attributes.old, attributes, type, self._cluster)
        review = admission_review(invocation, attributes, new, old, uid=uid, version=version)
        try:
            body = await self._caller.call(hook.client, dump(review), timeout=hook.timeout)
        except CallError as error:
            raise BadAnswerError(f"failed to call webhook: {error.message}") from None
        return read_answer(body, uid=uid, version=version, is_mutating=is_mutating)

    def _patched(
        self, invocation: Invocation, attributes: Attributes, answer: Answer, redefault: Redefault
    ) -> Attributes:
        operations = answer.operations()
        if not operations:
            return attributes
        name = go_quote(invocation.hook.name)
        if attributes.object is None:
            why = f"admission webhook {name} attempted to modify the object, which is not supported for this operation"
            raise internal_error(why)
        seen = converted(attributes.object, attributes, invocation.type, self._cluster)
        try:
            patched = apply_patch(seen, operations)
        except PatchError as error:
            raise internal_error(error.message) from None
        if not isinstance(patched, dict):
            raise internal_error(f"admission webhook {name} left no object")
        if invocation.type is not attributes.type and attributes.kind == attributes.type.gvk:
            patched = self._cluster.to_version(attributes.type, patched)
        try:
            return attributes.with_object(redefault(patched))
        except StatusError as error:
            # an object that can not be read any more is the webhook's fault, not the client's
            _, _, why = error.message.partition(f" cannot be handled as a {attributes.kind.kind}: ")
            raise internal_error(why or error.message) from None


def _failed_open(kind: str, round: int, position: int) -> str:
    host = "mutation.webhook" if kind == "mutation" else "validating.webhook"
    return f"failed-open.{host}.admission.k8s.io/round_{round}_index_{position}"
