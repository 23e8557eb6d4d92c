"""Calls of admission webhooks, in Kubernetes' order, and the changes of their responses.

Mutating webhooks are called one after another, each with the changes of those before it, and again when the object has
changed after them; validating webhooks are called at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kubesandbox.admission.policies.requests import Versions, go_struct
from kubesandbox.admission.webhooks.caller import CallError, WebhookCaller, no_kind
from kubesandbox.admission.webhooks.hooks import MUTATING, VALIDATING, Hook, HookSource, Invocation
from kubesandbox.admission.webhooks.patch import apply_webhook_patch
from kubesandbox.admission.webhooks.review import (
    JSON_PATCH,
    Answer,
    BadAnswerError,
    admission_review,
    denial,
    read_answer,
    review_version,
)
from kubesandbox.admission.webhooks.rounds import Rounds
from kubesandbox.attributes import Attributes, Notes
from kubesandbox.authorization.access import Authorizer
from kubesandbox.parsing.requests import go_quote
from kubesandbox.view import ClusterView
from pyverno.errors import PatchError
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject, dump, equal
from pyverno.kube.status import StatusError, bad_request, internal_error

__all__ = ["Redefault", "Webhooks", "is_exempt"]

_EXEMPT_GROUP = "admissionregistration.k8s.io"
_EXEMPT: Final = frozenset(
    f"{kind}{what}"
    for kind in ("Validating", "Mutating")
    for what in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
)
_MUTATION: Final = "mutation.webhook.admission.k8s.io"
Redefault = Callable[[JSONObject], JSONObject]


def is_exempt(attributes: Attributes) -> bool:
    """Return whether a request changes the configuration of admission, which no webhook may block."""
    return attributes.kind.group == _EXEMPT_GROUP and attributes.kind.kind in _EXEMPT


class Webhooks:
    """Calls the mutating and the validating webhooks."""

    def __init__(
        self,
        cluster: ClusterView,
        authorizer: Authorizer,
        caller: WebhookCaller,
        *,
        make_id: Callable[[], str],
        kube_version: tuple[int, int],
    ) -> None:
        """Take the cluster with the configurations, the source of `authorizer` answers, and the caller."""
        self._cluster = cluster
        self._caller = caller
        self._make_id = make_id
        self._mutating = HookSource(MUTATING, cluster, authorizer, kube_version)
        self._validating = HookSource(VALIDATING, cluster, authorizer, kube_version)

    async def mutate(self, attributes: Attributes, notes: Notes, rounds: Rounds, redefault: Redefault) -> Attributes:
        """Call the mutating webhooks and return the request with their changes; raises StatusError."""
        if is_exempt(attributes):
            return attributes
        rounds.begin(rounds.webhooks, attributes.object)
        versions = Versions(attributes, self._cluster)
        for hook, type in self._mutating.candidates(attributes):
            invocation = await self._mutating.invocation(hook, type, versions)
            if invocation is None or rounds.is_skipped(rounds.webhooks, hook.key):
                continue
            before, place = attributes, f"round_{rounds.number}_index_{hook.index}"
            try:
                answer = await self._call_one(invocation, versions, notes, is_mutating=True)
                if answer is None:
                    notes.annotate(f"failed-open.{_MUTATION}/{place}", hook.name)
                else:
                    attributes = await self._patch(invocation, versions, answer, redefault)
                    versions = Versions(attributes, self._cluster)
            finally:
                is_changed = not equal(before.object, attributes.object)
                notes.annotate(f"{_MUTATION}/{place}", _format_annotation(hook, mutated=is_changed))
            if answer is not None and answer.operations():
                told = _format_annotation(hook, patch=answer.operations(), patchType=JSON_PATCH)
                notes.annotate(f"patch.webhook.admission.k8s.io/{place}", told)
            if is_changed:
                rounds.changed(rounds.webhooks)
            if hook.reinvokes:
                rounds.webhooks.called.add(hook.key)
        rounds.webhooks.left = attributes.object
        return attributes

    async def validate(self, attributes: Attributes, notes: Notes) -> None:
        """Call the validating webhooks, all at the same time; raises the StatusError of the first refusal."""
        if is_exempt(attributes):
            return
        versions = Versions(attributes, self._cluster)
        invocations: list[Invocation] = []
        for hook, type in self._validating.candidates(attributes):
            invocation = await self._validating.invocation(hook, type, versions)
            if invocation is not None:
                invocations.append(invocation)
                # converted before any webhook is called: an object that cannot be converted is refused
                await versions.new(type)
                await versions.old(type)
        if not invocations:
            return
        if len(invocations) == 1:
            await self._validate(invocations[0], 0, versions, notes)
            return
        # every webhook is called, whatever the others respond
        calls = (self._validate(each, index, versions, notes) for index, each in enumerate(invocations))
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if outcome is not None:
                raise outcome

    async def _validate(self, invocation: Invocation, position: int, versions: Versions, notes: Notes) -> None:
        answer = await self._call_one(invocation, versions, notes, is_mutating=False)
        if answer is None:
            place = f"round_0_index_{position}"
            notes.annotate(f"failed-open.validating.webhook.admission.k8s.io/{place}", invocation.hook.name)

    async def _call_one(
        self, invocation: Invocation, versions: Versions, notes: Notes, *, is_mutating: bool
    ) -> Answer | None:
        """Call one webhook; None if the call fails and failures are ignored. Raises its refusal."""
        hook = invocation.hook
        if versions.attributes.dry_run and hook.has_side_effects:
            raise bad_request(f"admission webhook {go_quote(hook.name)} does not support dry run")
        try:
            answer = await self._exchange(invocation, versions, is_mutating=is_mutating)
            for text in answer.warnings:
                notes.warn(text)
            for key, value in answer.annotations:
                notes.annotate(f"{hook.name}/{key}", str(value))
            if answer.allowed and is_mutating:
                answer.operations()
        except BadAnswerError as error:
            if hook.ignores_failures:
                return None
            raise internal_error(f"failed calling webhook {go_quote(hook.name)}: {error.message}") from None
        if not answer.allowed:
            raise denial(hook.name, answer.status)
        return answer

    async def _exchange(self, invocation: Invocation, versions: Versions, *, is_mutating: bool) -> Answer:
        hook, type = invocation.hook, invocation.type
        version = review_version(hook.versions)
        if not version:
            why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise BadAnswerError(f"could not create admission objects: {why}")
        uid = self._make_id()
        new, old = await versions.new(type), await versions.old(type)
        review = admission_review(invocation, versions.attributes, new, old, uid=uid, version=version)
        try:
            body = await self._caller.call(hook.client, dump(review), timeout=hook.timeout)
        except CallError as error:
            raise BadAnswerError(f"failed to call webhook: {error.message}") from None
        return read_answer(body, uid=uid, version=version, is_mutating=is_mutating)

    async def _patch(
        self, invocation: Invocation, versions: Versions, answer: Answer, redefault: Redefault
    ) -> Attributes:
        attributes, operations = versions.attributes, answer.operations()
        if not operations:
            return attributes
        name = go_quote(invocation.hook.name)
        if attributes.object is None:
            why = f"admission webhook {name} attempted to modify the object, which is not supported for this operation"
            raise internal_error(why)
        try:
            patched = apply_webhook_patch(await versions.new(invocation.type), operations)
        except PatchError as error:
            raise internal_error(error.message) from None
        if not isinstance(patched, dict):
            raise internal_error(f"admission webhook {name} left no object")
        self._check_kind(invocation, patched)
        try:
            return attributes.with_object(redefault(await versions.back(invocation.type, patched)))
        except StatusError as error:
            # the patch made the object unreadable: the webhook's fault, not the client's
            _, _, why = error.message.partition(f" cannot be handled as a {attributes.kind.kind}: ")
            raise internal_error(why or error.message) from None

    def _check_kind(self, invocation: Invocation, patched: JSONObject) -> None:
        """Raise 500 when a patch has changed the kind of a built-in object."""
        found = GVK(*parse_api_version(str(patched.get("apiVersion") or "")), str(patched.get("kind") or ""))
        wanted = invocation.kind
        if found == wanted or invocation.type.is_custom:
            return
        if self._cluster.table.by_kind(found) is None:
            raise internal_error(no_kind(found.kind, found.api_version))
        room = wanted.group.partition(".")[0] or "core"
        # upstream: an error that is no Status of its own
        text = f"converting ({found.version}.{found.kind}) to ({room}.{wanted.kind}): unknown conversion"
        raise StatusError(500, "", text)


def _format_annotation(hook: Hook, **said: JSON) -> str:
    return go_struct({"configuration": hook.configuration, "webhook": hook.name, **said})
