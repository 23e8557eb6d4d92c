"""Works on UpdateRequests: each is handled until it is completed, and deleted then.

Kyverno's states stay: Pending and Failed requests are worked on, whoever wrote them, Completed ones are deleted, Skip
is left alone. A failed request is retried with growing delays, without an end; `status.message` and a condition hold
the reason. A request that waits for something is woken when that changes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer, Notice
from pyverno.controllers.background.settings import BackgroundSettings
from pyverno.controllers.background.work import Done, Handler, Waiting, read_request
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopSettings, ObjectKey, Watch
from pyverno.errors import HostError, PyvernoError
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import UPDATE_REQUESTS, RequestType
from pyverno.telemetry.metrics import Metrics

__all__ = ["UpdateRequestReconciler"]

_GONE: Final = (404, 409)

log = logging.getLogger("pyverno.background")


class UpdateRequestReconciler:
    """Works on the requests of a namespace; `controller` runs it."""

    def __init__(
        self,
        client: Client,
        settings: BackgroundSettings,
        handlers: Mapping[RequestType, Handler],
        metrics: Metrics | None = None,
    ) -> None:
        """Take the client, the settings and the handlers."""
        self._client = client
        self._namespace = settings.namespace
        self._handlers = handlers
        self._requests = Informer(client, UPDATE_REQUESTS, namespace=settings.namespace)
        self._statuses: dict[ObjectKey, JSONObject] = {}
        self._finished: set[str] = set()
        self.controller: Controller[ObjectKey] = Controller(
            "update-request",
            self._reconcile,
            watches=(Watch(lambda: self._requests, self._keys),),
            settings=LoopSettings(workers=max(settings.workers, 1), backoff=settings.backoff),
            metrics=metrics,
        )

    def _keys(self, notice: Notice, body: JSONObject) -> Iterator[ObjectKey]:
        """Yield the key of a request that changed; our own status comes back by the watch, and is no change."""
        key = ObjectKey(body["metadata"].get("namespace") or "", body["metadata"]["name"])
        if notice is Notice.DELETED:
            self._statuses.pop(key, None)
            self._finished.discard(body["metadata"].get("uid", ""))
            yield key  # a retry that is due later has nothing left to do
        elif self._statuses.get(key) is None or self._statuses[key] != body.get("status"):
            yield key

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        body = self._requests.get(key.name, key.namespace)
        if body is None or body["metadata"].get("uid") in self._finished or body["metadata"].get("deletionTimestamp"):
            return None
        state = (body.get("status") or {}).get("state") or "Pending"
        if state == "Skip":
            return None
        if state == "Completed":
            await self._delete(key, body)
            return None
        try:
            outcome = await self._handle(body)
        except PyvernoError as error:
            await self._write_status(key, body, "Failed", error.message)
            if isinstance(error, HostError | StatusError):
                raise
            raise HostError(str(error)) from error
        if isinstance(outcome, Done):
            await self._delete(key, body)
            return None
        await self._write_status(key, body, "Pending", outcome.message)
        return Again(outcome.seconds)

    async def _handle(self, body: JSONObject) -> Done | Waiting:
        request = read_request(body)
        handler = self._handlers.get(request.spec.request_type)
        if handler is None:
            raise HostError(f"nothing works on requests of type `{request.spec.request_type.value}`")
        return await handler.handle(request)

    async def _delete(self, key: ObjectKey, body: JSONObject) -> None:
        uid = body["metadata"].get("uid", "")
        try:
            await self._client.delete(UPDATE_REQUESTS, key.name, key.namespace, options={"preconditions": {"uid": uid}})
        except StatusError as error:
            if error.status not in _GONE:  # else another replica has deleted it
                raise
        self._finished.add(uid)

    async def _write_status(self, key: ObjectKey, body: JSONObject, state: str, message: str) -> None:
        before = body.get("status") or {}
        wanted: JSONObject = {**before, "state": state, "message": message}
        if state == "Failed":
            wanted["retryCount"] = int(before.get("retryCount") or 0) + 1
        if wanted == before:
            return
        self._statuses[key] = wanted
        try:
            patch: JSONObject = {"status": wanted}
            await self._client.patch(UPDATE_REQUESTS, key.name, patch, key.namespace, subresource="status")
        except StatusError as error:
            if error.status not in _GONE:
                raise
