"""Kubernetes events of policies: violations, blocked requests, exemptions, successes.

Events are derived from responses that were already sent, and written in the background from a bounded queue. When
responses arrive faster than events can be written, events are dropped; responses never wait. A dry run creates no
events, and neither does an allowed request whose object the API server does not have. (Kyverno: pkg/event)
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from pyverno.cluster.client import Client
from pyverno.controllers.evidence import Evidence, Finding, Refuted, Unprovable, Unsettled
from pyverno.engine.origin import uid_of
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import ResourceRef, RuleResult, RuleType, Status
from pyverno.engine.rule import PolicyInfo
from pyverno.errors import HostError
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.report.objectmark import fits, mark_of
from pyverno.sinks.records import event_text
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.value import dataclass, replace
from pyverno.webhook.configuration import Configuration

__all__ = ["Event", "EventSettings", "Events", "events_of", "policy_reference"]

_EVENTS: Final = GVR("events.k8s.io", "v1", "events")
_SOURCE: Final = "kyverno-admission"
_CEL_VERSION: Final = "policies.kyverno.io/v1beta1"
_LONGEST_NOTE: Final = 1024
_BAD: Final = (Status.FAIL, Status.ERROR)
_NORMAL: Final = ("PolicyApplied", "PolicySkipped")
_ODD: Final = re.compile(r"[^a-z0-9.-]")
_ATTEMPTS: Final = 3
_TELL_SECONDS: Final = 10.0
_WORKERS: Final = 3
_NOT_FOUND: Final = 404
_WORK: Final = "events"
_LOOKS: Final = 3
_LOOK_SECONDS: Final = 0.3

log = logging.getLogger("pyverno.events")


@dataclass(frozen=True, slots=True)
class EventSettings:
    """Capacity of the queue (0 disables events), and the reasons for which no event is created."""

    max_waiting: int = 1000
    omitted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """The allowed request of an event; its object has to fit the `mark`. It was answered at a `revision`."""

    request: Request
    mark: str
    revision: str


@dataclass(frozen=True, slots=True)
class Event:
    """One event: `regarding` a policy, exception or resource, `related` to the resource of the request.

    `source` is the reporting controller; `uid` is that of the `regarding` object, if the reporter knows it. An event
    with a `question` is written once the API server confirms it, after `looks` looks.
    """

    reason: str
    action: str
    note: str
    regarding: ResourceRef
    related: ResourceRef | None = None
    source: str = _SOURCE
    uid: str = ""
    question: Question | None = None
    looks: int = 0

    @classmethod
    def of_error(
        cls, policy: ResourceRef, error: str, related: ResourceRef, *, source: str = "kyverno-generate"
    ) -> Event:
        """Return the event that background work of a policy could not be started.

        >>> policy = ResourceRef("kyverno.io/v1", "Policy", "team", "copy")
        >>> Event.of_error(policy, "no room", ResourceRef("v1", "Pod", "team", "web")).note
        'policy team/copy error: no room'
        """
        key = f"{policy.namespace}/{policy.name}" if policy.namespace else policy.name
        return cls("PolicyError", "None", f"policy {key} error: {error}", policy, related, source)

    def to_json(self, at: int, host: str, uid: str = "") -> JSONObject:
        """Return the Event object for an instant in nanoseconds since 1970.

        `host` identifies the reporting process; `uid` is that of the `regarding` object ("" = unknown).
        """
        moment = datetime.fromtimestamp(at / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        body: JSONObject = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": f"{_as_name(self.regarding.name)}.{at:x}",
                "namespace": self.regarding.namespace or "default",
            },
            "eventTime": moment,
            "reason": self.reason,
            "action": self.action,
            "type": "Normal" if self.reason in _NORMAL else "Warning",
            "note": event_text(self.note, _LONGEST_NOTE),
            "regarding": {**_reference(self.regarding), **({"uid": uid} if uid else {})},
            "reportingController": self.source,
            "reportingInstance": f"{self.source}-{host}",
        }
        if self.related is not None:
            body["related"] = _reference(self.related)
        return body


def events_of(results: Sequence[RuleResult], resource: ResourceRef, *, is_allowed: bool) -> Iterator[Event]:
    """Yield the events of one request, policy by policy; a resource without a name yields none."""
    if not resource.name:
        return
    for policy, group in groupby(results, lambda result: result.rule.policy):
        said = tuple(group)
        if any(result.status in _BAD for result in said):
            yield from _violations(policy, said, resource, is_allowed=is_allowed)
        elif all(result.status is Status.SKIP for result in said):
            yield from _skips(policy, said, resource)
        elif is_allowed:
            yield _applied(policy, said, resource)


def _violations(
    policy: PolicyInfo, said: Iterable[RuleResult], resource: ResourceRef, *, is_allowed: bool
) -> Iterator[Event]:
    said = tuple(said)
    action = "Resource Passed" if is_allowed else "Resource Blocked"
    blocked = "" if is_allowed else " (blocked)"
    for result in said:
        if result.status in _BAD:
            message = f"; {result.message}" if result.message else ""
            note = f"{_format_reference(resource)}: [{result.rule.name}] {result.status.value}{blocked}{message}"
            yield Event("PolicyViolation", action, note, policy_reference(policy), resource)
    for result in said if is_allowed else ():
        note = f"policy {policy.key}/{result.rule.name} {result.status.value}: {result.message}"
        yield Event("PolicyViolation", action, note, resource)


def _skips(policy: PolicyInfo, said: Iterable[RuleResult], resource: ResourceRef) -> Iterator[Event]:
    """Yield two events for each exemption from a legacy policy; exemptions from CEL policies yield none."""
    if not policy.api_version.startswith("kyverno.io/"):
        return
    where = f"{resource.kind}/{resource.namespace}/{resource.name}"
    for result in said:
        for key in result.exceptions:
            namespace, _, name = key.rpartition("/")
            exception = ResourceRef("kyverno.io/v2", "PolicyException", namespace, name)
            note = f"resource {where} was skipped from policy rule {policy.key}/{result.rule.name}"
            yield Event("PolicySkipped", "Resource Passed", note, exception, resource)
        if result.exceptions:
            named = ", ".join(result.exceptions)
            note = f"resource {where} was skipped from rule {result.rule.name} due to policy exceptions {named}"
            yield Event("PolicySkipped", "Resource Passed", note, policy_reference(policy), resource)


def _applied(policy: PolicyInfo, said: Sequence[RuleResult], resource: ResourceRef) -> Event:
    if any(result.rule.type is RuleType.MUTATION for result in said):
        note, action = f"{_format_reference(resource)} is successfully mutated", "Resource Mutated"
    else:
        note, action = f"{_format_reference(resource)}: pass", "Resource Passed"
    return Event("PolicyApplied", action, note, policy_reference(policy), resource)


class Events:
    """Queues the events of admission responses (an `Observer` of the webhook server); `run` writes them."""

    def __init__(
        self,
        client: Client,
        settings: EventSettings,
        *,
        configuration: Callable[[], Configuration],
        uid_of: Callable[[ResourceRef], str],
        on_drop: Callable[[], None] = lambda: None,
        kinds: Callable[[], KindTable] | None = None,
        revision: Callable[[], str] = lambda: "",
        unconfirmed: Callable[[str], None] = lambda _work: None,
    ) -> None:
        """Take the client, the settings, the current ConfigMap, and a lookup of uids ("" = unknown).

        `on_drop` is called for each event that could not be written after several attempts. With `kinds`, the objects
        of allowed requests are read first, deleted ones at a `revision` that the cluster had before the answer;
        `unconfirmed` counts events without an object.
        """
        self._client = client
        self._settings = settings
        self._configuration = configuration
        self._uid_of = uid_of
        self._waiting: asyncio.Queue[Event] = asyncio.Queue()
        self._last = 0
        self._host = socket.gethostname()
        self._on_drop = on_drop
        self._evidence = None if kinds is None else Evidence(client, kinds)
        self._revision = revision
        self._unconfirmed = unconfirmed
        self._dropped = 0
        self._told = -_TELL_SECONDS

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Queue the events of one response; most responses have none."""
        review = outcome.review
        if review is None or admission_request.is_dry_run or not self._settings.max_waiting:
            return
        tells_success = self._configuration().generates_success_events
        results: Sequence[RuleResult] = review.results
        if not tells_success:
            # policies of which every rule passes have no events
            policies = {result.rule.policy.key for result in results if result.status is not Status.PASS}
            if not policies:
                return
            results = [result for result in results if result.rule.policy.key in policies]
        subject = admission_request.object if admission_request.object is not None else admission_request.old_object
        named = ResourceRef.of(subject)
        kind = admission_request.kind
        resource = ResourceRef(
            f"{kind.group}/{kind.version}" if kind.group else kind.version,
            kind.kind,
            named.namespace or admission_request.namespace,
            admission_request.name or named.name,
        )
        question = None
        if outcome.answer.allowed:
            is_created = admission_request.operation == "CREATE"
            is_final = not outcome.answer.patch and not (is_created and not uid_of(review.resource))
            question = Question(review.request, mark_of(review.resource, is_final=is_final), self._revision())
        for event in events_of(results, resource, is_allowed=outcome.answer.allowed):
            self.emit(replace(event, question=question))

    def audited(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Queue the events of policies that were evaluated after the response."""
        self.answered(admission_request, path, outcome, seconds)

    def failed(self, path: str, error: BaseException) -> None:
        """Do nothing: a request that could not be read has no events."""

    def emit(self, event: Event) -> None:
        """Queue an event, unless its reason is omitted or the queue is full; never raises."""
        try:
            if self._is_wanted(event):
                # what waits for a slow API server must not be larger than what it gets
                self._waiting.put_nowait(replace(event, note=event.note[: _LONGEST_NOTE + 1]))
        except Exception:  # what reports an event goes on with its work
            log.exception("an event could not be queued")

    def _is_wanted(self, event: Event) -> bool:
        settings = self._settings
        if not settings.max_waiting or self._waiting.qsize() > settings.max_waiting or event.reason in settings.omitted:
            return False
        if event.reason != "PolicyApplied":
            return True
        configuration = self._configuration()
        actions = configuration.success_event_actions
        return configuration.generates_success_events and (not actions or event.action in actions)

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            event = await self._waiting.get()
            try:
                await self._write(event)
            except Exception:  # one event must not end the writing of the others
                log.exception("an event could not be written")
                with suppress(Exception):
                    self._on_drop()

    async def _confirm(self, question: Question) -> Finding:
        """Return whether the API server has the object of an allowed request, which it may not have stored yet.

        What this controller may not read is taken to exist, and so are the contents of what stores nothing (`exec`).
        """
        request = question.request
        if self._evidence is None:
            return request
        try:
            found = await self._evidence.confirm(request, revision=question.revision)
        except (StatusError, HostError):
            return request
        is_object = request.operation in (Operation.CREATE, Operation.UPDATE) and not request.subresource
        if isinstance(found, Unprovable) and (is_object or not found.is_stored):
            found = found.request
        if isinstance(found, Request) and is_object and not fits(found.object, question.mark):
            return Refuted("the object is another than the one that was judged")
        return found

    def _look_again(self, event: Event) -> None:
        if event.looks >= _LOOKS:
            self._unconfirmed(_WORK)
            return
        asyncio.get_running_loop().call_later(_LOOK_SECONDS, self.emit, replace(event, looks=event.looks + 1))

    async def _write(self, event: Event) -> None:
        found = await self._confirm(event.question) if event.question is not None else None
        if isinstance(found, Unsettled | Refuted | Unprovable):  # guard: an event is of what the API server confirms
            self._look_again(event)
            return
        body = self._make_body(event)
        for attempt in range(_ATTEMPTS):
            try:
                await self._client.submit(_EVENTS, body, body["metadata"]["namespace"])
                break
            except (StatusError, HostError) as error:
                if isinstance(error, StatusError) and (
                    error.status == _NOT_FOUND or (attempt and error.reason == "AlreadyExists")
                ):
                    break  # the namespace of the object was deleted, or the response to the last attempt was lost
                if attempt == _ATTEMPTS - 1:
                    self._drop(error)

    def _drop(self, error: Exception) -> None:
        """Count a dropped event; logs are throttled, because an unreachable API server drops every event."""
        self._on_drop()
        self._dropped += 1
        if time.monotonic() - self._told >= _TELL_SECONDS:
            fields = {"count": self._dropped, "error": str(error)}
            log.warning("events could not be written", extra={"fields": fields})
            self._dropped, self._told = 0, time.monotonic()

    def _make_body(self, event: Event) -> JSONObject:
        self._last = max(time.time_ns(), self._last + 1)  # two events of one object must not share a name
        return event.to_json(self._last, self._host, event.uid or self._uid_of(event.regarding))


def _as_name(name: str) -> str:
    """Return the name of an object in a form that may start the name of an event."""
    found = _ODD.sub("-", name.lower())
    head = "" if found[:1].isalnum() else "a"
    return head + found + ("" if found[-1:].isalnum() else "z")


def _format_reference(resource: ResourceRef) -> str:
    place = f"{resource.namespace}/{resource.name}" if resource.namespace else resource.name
    return f"{resource.kind} {place}"


def policy_reference(policy: PolicyInfo) -> ResourceRef:
    """Return a policy as events name it."""
    # COMPAT: Kyverno names policies in CEL by this version, whichever is stored
    version = _CEL_VERSION if policy.api_version.startswith("policies.kyverno.io/") else policy.api_version
    return ResourceRef(version, policy.kind, policy.namespace, policy.name)


def _reference(found: ResourceRef) -> JSONObject:
    parts = {
        "apiVersion": found.api_version,
        "kind": found.kind,
        "namespace": found.namespace,
        "name": found.name,
    }
    return {key: value for key, value in parts.items() if value}
