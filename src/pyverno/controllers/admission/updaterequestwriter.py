"""Creation of UpdateRequests, through which admission requests trigger the background controller.

A response never waits for it: the triggered rules are determined and written after the response. Dry runs and rejected
requests trigger nothing, and neither does a request that the API server does not confirm. While there are as many
UpdateRequests as the threshold allows, and while the API server is away, work waits in memory, compressed; at the end
of the process it is written beyond the threshold. Work that is refused or finds no memory is reported by an event, the
log and a counter.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

import orjson

from pyverno.cluster.client import Client
from pyverno.controllers.admission.questions import Questions, Refusals
from pyverno.controllers.admission.updaterequests import (
    is_made_or_copied,
    of_downstream,
    source_selector,
    update_requests,
)
from pyverno.controllers.evidence import Evidence, Refuted, Unprovable, Unsettled
from pyverno.controllers.keptobjects import keep
from pyverno.controllers.runtime.objectcount import ObjectCount
from pyverno.controllers.runtime.outbox import Outbox
from pyverno.engine.host import Host
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import ResourceRef
from pyverno.engine.triggers import Trigger, Triggers
from pyverno.errors import HostError, HostUnavailableError
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.policy.kinds import RULE_KINDS, Family, kind_of
from pyverno.policy.updaterequest import HELD, MAX_HELD_SHARE, REVISION, UPDATE_REQUESTS, RequestType, UpdateRequestSpec
from pyverno.report.ephemeral import REPORT_GROUP
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.threads import in_pool
from pyverno.value import dataclass, replace
from pyverno.webhook.admission import PolicyFacts, UserScopedHost
from pyverno.webhook.routes import Route, WebhookType, read_route

__all__ = ["UpdateRequestSettings", "UpdateRequestWriter"]

_SECONDS: Final = 30.0
_ROOM_SECONDS: Final = 0.2
"""How often work that waits for room below the threshold looks for some."""

_MAX_BYTES: Final = 32 * 1024 * 1024
_ITEM_BYTES: Final = 1024
"""Memory for waiting work, of which there are about 15,000 pieces then, and what each takes besides its text."""

_MEMO_LIMIT: Final = 1024
_GONE: Final = 404
_FORBIDDEN: Final = 403
_WORK: Final = "update-requests"

log = logging.getLogger("pyverno.followup")

Lost = Callable[[ResourceRef | None, str, ResourceRef], None]
"""Called for work that could not be stored: the policy if it is known, the reason, and the object."""


@dataclass(frozen=True, slots=True)
class UpdateRequestSettings:
    """Settings of UpdateRequests; `account` is the user name of the background controller ("" = unknown).

    `workers` threads evaluate triggers; `max_waiting` bounds the queue of answered requests.
    """

    namespace: str = "kyverno"
    account: str = ""
    workers: int = 8
    max_waiting: int = 4000


@dataclass(frozen=True, slots=True)
class _Answered:
    """An admitted request and the rules that it may trigger.

    It `began` at a time in seconds since 1970, when the cluster had this `revision`. `looks` counts how often the
    change was looked for.
    """

    admission_request: AdmissionRequest
    request: Request
    triggers: Triggers
    is_background: bool
    began: float
    revision: str
    source: str = ""
    is_authenticated: bool = False
    looks: int = 0


@dataclass(slots=True)
class _TriggeredWork:
    """Triggered work: its policy, its object, its UpdateRequest as compressed JSON, and the created one.

    `kept` is the deleted object as compressed JSON, empty where none is needed.
    """

    policy: ResourceRef
    subject: ResourceRef
    packed: bytes
    kept: bytes = b""
    created: JSONObject | None = None


class UpdateRequestWriter:
    """An `Observer` of the webhook server; works while `run` runs."""

    def __init__(
        self,
        client: Client,
        cluster: PolicyFacts,
        settings: UpdateRequestSettings,
        *,
        host: Callable[[], Host],
        lost: Lost,
        unconfirmed: Callable[[str], None] = lambda _work: None,
    ) -> None:
        """Take the client, the cluster state, the source of hosts, and a callback for lost work.

        `unconfirmed` counts requests that the API server does not confirm.
        """
        self._client = client
        self._cluster = cluster
        self._settings = settings
        self._host = host
        self._lost = lost
        self._evidence = Evidence(client, lambda: cluster.kinds)
        self._refusals = Refusals(_WORK, unconfirmed)
        self._unsettled = Questions(self._look_again, self._refuse, settings.max_waiting // 4)
        self._memo: dict[Route, tuple[PolicySet, Triggers]] = {}
        self._count = ObjectCount(client, (UPDATE_REQUESTS,), namespace=settings.namespace, selector=f"!{HELD}")
        self._all = ObjectCount(client, (UPDATE_REQUESTS,), namespace=settings.namespace)
        self._pool = ThreadPoolExecutor(settings.workers, thread_name_prefix="updaterequests")
        self._looking = Outbox(
            self._look,
            on_lost=self._lose_request,
            max_items=settings.max_waiting,
            writers=settings.workers,
            weigh=lambda answered: answered.admission_request.size,
            source_of=lambda answered: answered.source,
        )
        self._writing = Outbox(
            self._write,
            on_lost=self._lose_work,
            max_items=_MAX_BYTES // _ITEM_BYTES,
            retry_seconds=math.inf,
            weigh=lambda wanted: len(wanted.packed) + len(wanted.kept) + _ITEM_BYTES,
            max_bytes=_MAX_BYTES,
        )
        self._is_served = True
        self._is_ending = False

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Queue the request of one response; most trigger nothing."""
        review = outcome.review
        if review is None or admission_request.is_dry_run or not outcome.answer.allowed:
            return
        request = review.request
        is_background = bool(self._settings.account) and request.user.username == self._settings.account
        triggers = self._triggers(path)
        if triggers is None or request.gvk.group == REPORT_GROUP:  # writes of the controllers trigger nothing
            return
        is_ours = is_made_or_copied(request) and not is_background
        if (is_ours or triggers.concerns(request)) and self._has_kind():
            began, revision = time.time(), self._all.revision  # before the change is stored
            asked = _Answered(admission_request, request, triggers, is_background, began, revision)
            self._looking.put(replace(asked, source=outcome.source, is_authenticated=outcome.is_authenticated))

    def failed(self, path: str, error: BaseException) -> None:
        """Do nothing: a request that failed triggers nothing."""

    @property
    def is_idle(self) -> bool:
        """Return whether nothing waits to be evaluated or written."""
        return not len(self._looking) and not len(self._writing) and not len(self._unsettled)

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._count.run())
                group.create_task(self._all.run())
                group.create_task(self._looking.run())
                group.create_task(self._writing.run())
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def flush(self, seconds: float) -> None:
        """Write the remaining work, beyond the threshold if need be, for at most `seconds`; report the rest as lost."""
        self._is_ending = True
        end = time.monotonic() + seconds
        self._unsettled.drain()
        await self._looking.flush(seconds)
        await self._writing.flush(max(end - time.monotonic(), 0.0))

    # --------------------------------------------------------------------------------------------- what is to be done

    def _triggers(self, path: str) -> Triggers | None:
        """Return the rules behind a path that work after a request, None when there are none."""
        route = read_route(path)
        # legacy policies are triggered by the object as all mutations left it
        if route is None or (route.webhook_type is WebhookType.MUTATE and route.kinds <= RULE_KINDS):
            return None
        try:
            policies = self._cluster.policies.on(route)
        except HostUnavailableError:  # the request was answered by policies that were known a moment ago
            known = self._memo.get(route)
            return known[1] if known is not None else None
        known = self._memo.get(route)
        if known is None or known[0] is not policies:
            if len(self._memo) >= _MEMO_LIMIT:  # callers choose the paths: they must not fill the memory
                self._memo = {}
            known = self._memo[route] = policies, Triggers(policies)
        return known[1] if len(known[1]) else None

    def _has_kind(self) -> bool:
        is_served = self._cluster.kinds.by_resource(UPDATE_REQUESTS) is not None
        if self._is_served and not is_served:
            log.error("there is no kind UpdateRequest: nothing is generated, and existing objects are not changed")
        self._is_served = is_served
        return is_served

    async def _look(self, answered: _Answered) -> None:
        """Determine the rules that a request triggers, and queue their work once the API server confirms it."""
        found = await self._find_triggers(answered)
        if answered.is_background:
            found = tuple(trigger for trigger in found if not answered.triggers.skips_background(trigger.rule))
        is_ours = not answered.is_background and is_made_or_copied(answered.request)
        if not found and not is_ours:  # a request that triggers nothing costs no read
            return
        confirmed = await self._confirm(answered)
        if confirmed is None:
            return
        answered, request, subject = confirmed, confirmed.request, _subject(answered.admission_request)
        admission = {**answered.admission_request.request, "object": request.object, "oldObject": request.old}
        if is_ours:
            with self._contained(None, subject):  # first: it may fail and be repeated as a whole
                self._hand_over([spec async for spec in self._in_step(answered)], answered)
        for policy, own in _by_policy(found):
            with self._contained(policy, subject):
                self._hand_over(update_requests(own, request, admission), answered)
        for trigger in found:
            if trigger.error:
                self._lost(_policy(trigger), trigger.error, subject)

    async def _confirm(self, answered: _Answered) -> _Answered | None:
        """Return a request with the objects that the API server holds; None where nothing follows from it now.

        What this controller may not read is left to the background controller, which confirms every request.
        """
        try:
            found = await self._evidence.confirm(answered.request, revision=answered.revision, began=answered.began)
            refuted = None if isinstance(found, Refuted) else await self._evidence.vouch(answered.request)
        except StatusError as error:
            if error.status != _FORBIDDEN:
                raise
            return answered
        if isinstance(found, Unprovable):
            if found.is_stored or answered.is_authenticated:  # guard: what leaves no trace needs a known caller
                found = answered.request
            else:
                refuted = Refuted(f"{found.message}, and without --clientCAFile anybody may have sent the request")
        elif isinstance(found, Unsettled) and refuted is None:
            if not self._is_ending:
                self._unsettled.put(answered, answered.source, answered.looks, found.message)
                return None
            found = answered.request  # the background controller waits for the change
        if isinstance(found, Request) and refuted is None:  # guard: requests that are confirmed trigger work
            return replace(answered, request=found)
        self._refuse(answered, found.message if isinstance(found, Refuted) else refuted.message if refuted else "")
        return None

    def _look_again(self, answered: _Answered, looks: int) -> None:
        self._looking.put(replace(answered, looks=looks))

    def _refuse(self, answered: _Answered, reason: str) -> None:
        self._refusals.note(reason, answered.source)

    @contextmanager
    def _contained(self, policy: ResourceRef | None, subject: ResourceRef) -> Iterator[None]:
        """Let a bug cost the work of one policy, reported as lost, and not that of the others."""
        try:
            yield
        except (HostError, StatusError):
            raise  # a cluster may be asked again
        except Exception:
            log.exception("the work of a policy after a request broke")
            self._lost(policy, "an internal error occurred; see the log", subject)

    def _hand_over(self, wanted: Iterable[UpdateRequestSpec], answered: _Answered) -> None:
        """Queue work to be written."""
        subject = _subject(answered.admission_request)
        for spec in wanted:
            namespace, _, name = spec.policy.rpartition("/")
            policy = _policy_of(spec.request_type, namespace, name)
            body = spec.to_json(self._settings.namespace)
            if answered.request.operation is Operation.DELETE and answered.revision:
                noted = body["metadata"].get("annotations") or {}
                body["metadata"]["annotations"] = {**noted, REVISION: answered.revision}
            packed = zlib.compress(orjson.dumps(body), level=1)
            kept = spec.context.kept
            deleted = b"" if kept is None else zlib.compress(orjson.dumps(kept), level=1)
            self._writing.put(_TriggeredWork(policy, subject, packed, deleted))

    async def _find_triggers(self, answered: _Answered) -> tuple[Trigger, ...]:
        """Evaluate in a thread: no response waits for it, and the loop has requests to answer."""
        triggers, request, host = answered.triggers, answered.request, self._host()
        deadline = time.monotonic() + _SECONDS
        asked = host.for_request(request.user, deadline) if isinstance(host, UserScopedHost) else host
        return await in_pool(self._pool, lambda: triggers.of(request, asked, deadline=deadline))

    async def _in_step(self, answered: _Answered) -> AsyncIterator[UpdateRequestSpec]:
        """Yield the work on what was made, and on the copies of what is copied, so that it agrees with its rule."""
        request, triggers = answered.request, answered.triggers
        selector = source_selector(request)
        copies = await self._copies(selector, request) if selector else [request.old]
        deletes = bool(selector) and request.object is None
        for labels in map(_labels, copies):
            spec = of_downstream(labels, deletes=deletes)
            if spec is None:
                continue
            kind = kind_of(Family.RULES, is_namespaced="/" in spec.policy).kind
            if triggers.keeps_in_step(kind, spec.policy, spec.rule_context[0].rule, request):
                yield spec

    async def _copies(self, selector: Mapping[str, str], request: Request) -> Iterable[JSONObject]:
        if request.gvr is None:
            return ()
        query = {"labelSelector": ",".join(f"{key}={value}" for key, value in selector.items())}
        listed = await self._client.list(request.gvr, query=query)
        found: Iterable[JSONObject] = listed["items"]
        return found

    # --------------------------------------------------------------------------------------------------- handing over

    async def _write(self, wanted: _TriggeredWork) -> None:
        """Create the UpdateRequest and mark it as pending, so that the background controller takes it."""
        namespace = self._settings.namespace
        if wanted.created is None:
            await self._wait_for_room()
            body = orjson.loads(zlib.decompress(wanted.packed))
            wanted.created = await self._client.create(UPDATE_REQUESTS, body, namespace)
        if wanted.kept:
            await keep(self._client, wanted.created, wanted.kept)
        try:
            pending, name = {"status": {"state": "Pending"}}, wanted.created["metadata"]["name"]
            await self._client.patch(UPDATE_REQUESTS, name, pending, namespace, subresource="status")
        except StatusError as error:
            if error.status != _GONE:  # otherwise it is done already
                raise

    async def _wait_for_room(self) -> None:
        """Wait until the number of UpdateRequests that are not held is below the threshold, or the process ends."""
        while not self._is_ending:
            threshold = self._cluster.configuration.update_request_threshold
            expected, count = self._count.value, self._all.value
            if threshold <= 0:
                raise StatusError(403, "Forbidden", "updateRequestThreshold allows no UpdateRequests")
            if expected is None or count is None:
                raise HostError("the number of UpdateRequests is not known")
            if expected < threshold and count < threshold * MAX_HELD_SHARE:
                return
            await asyncio.sleep(_ROOM_SECONDS)

    def _lose_request(self, answered: _Answered, reason: str) -> None:
        self._lost(None, reason, _subject(answered.admission_request))

    def _lose_work(self, wanted: _TriggeredWork, reason: str) -> None:
        self._lost(wanted.policy, reason, wanted.subject)


def _by_policy(found: Iterable[Trigger]) -> Iterable[tuple[ResourceRef, tuple[Trigger, ...]]]:
    """Return the triggers of each policy, in the order of their first one."""
    grouped: dict[ResourceRef, list[Trigger]] = {}
    for trigger in found:
        grouped.setdefault(_policy(trigger), []).append(trigger)
    return [(policy, tuple(own)) for policy, own in grouped.items()]


def _policy(trigger: Trigger) -> ResourceRef:
    policy = trigger.rule.policy
    return ResourceRef(policy.api_version, policy.kind, policy.namespace, policy.name)


_CEL_WORK: Final = {RequestType.CEL_GENERATE: "generating", RequestType.CEL_MUTATE: "mutating"}


def _policy_of(request_type: RequestType, namespace: str, name: str) -> ResourceRef:
    metric = _CEL_WORK.get(request_type, "")
    row = kind_of(Family.CEL if metric else Family.RULES, is_namespaced=bool(namespace), metric=metric)
    return ResourceRef(row.api_version, row.kind, namespace, name)


def _subject(admission_request: AdmissionRequest) -> ResourceRef:
    kind = admission_request.kind
    named = ResourceRef.of(
        admission_request.object if admission_request.object is not None else admission_request.old_object
    )
    return ResourceRef(
        f"{kind.group}/{kind.version}" if kind.group else kind.version,
        kind.kind,
        named.namespace or admission_request.namespace,
        admission_request.name or named.name,
    )


def _labels(body: object) -> Mapping[str, str]:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}
