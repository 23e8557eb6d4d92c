"""Follows a resource without storing its objects: lists and watch events go to a sink, page by page.

A list of a hundred thousand objects is never in memory as a whole. Objects that a new list lacks are reported as
deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from pyverno.cluster.client import Client
from pyverno.cluster.informer import STALE_SECONDS, Informer, Notice
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["Feed", "Sink"]

_PAGE: Final = 250
_SLICE: Final = 25
_REFUSED: Final = (403, 404, 405)
"""A resource that may not be listed, is not served any more, or cannot be listed at all."""


class Sink(Protocol):
    """Takes the objects of a resource."""

    def begin(self, gvr: GVR) -> None:
        """Prepare for a list of all objects."""
        ...

    def put(self, gvr: GVR, body: JSONObject) -> None:
        """Take an object that is new, changed, or listed again."""
        ...

    def remove(self, gvr: GVR, body: JSONObject) -> None:
        """Handle the deletion of an object."""
        ...

    def end(self, gvr: GVR) -> None:
        """End the list: what it did not bring is gone."""
        ...


class Feed(Informer):
    """An informer that keeps nothing; `refused` is why the API server does not list the resource ("" = it does).

    A refusal that may pass, such as a conversion that fails, counts once it has lasted for `bound` seconds.
    """

    def __init__(
        self,
        client: Client,
        gvr: GVR,
        sink: Sink,
        *,
        selector: str = "",
        bound: float = STALE_SECONDS,
        on_refusal: Callable[[GVR, StatusError | None], None] = lambda _gvr, _error: None,
    ) -> None:
        """Take what to follow; `on_refusal` is called when a list is refused, and with None when it is not any more."""
        super().__init__(client, gvr, selector=selector, bound=bound)
        self._sink = sink
        self.listen(self._pass_on)
        self._on_refusal = on_refusal
        self.refused = ""

    async def _list(self) -> None:
        is_begun = False
        metadata: JSONObject = {}
        try:
            async for found in self._client.pages(self.gvr, query=self._query, page=_PAGE):
                if not is_begun:
                    self._sink.begin(self.gvr)
                    is_begun = True
                await self._hand_on(found)
                metadata = found.get("metadata") or {}
        except StatusError as error:
            if error.status in _REFUSED or self.is_stale:
                self.refused = error.message
                self._on_refusal(self.gvr, error)
            raise
        self._sink.end(self.gvr)
        if self.refused:
            self.refused = ""
            self._on_refusal(self.gvr, None)
        self._version = str(metadata.get("resourceVersion") or "")
        self.synced.set()
        self._mend()

    async def _hand_on(self, found: JSONObject) -> None:
        kind = str(found.get("kind", "")).removesuffix("List")
        for number, item in enumerate(found.get("items") or ()):
            self._notify(Notice.MODIFIED, {"apiVersion": found.get("apiVersion"), "kind": kind, **item})
            if number % _SLICE == 0:
                await asyncio.sleep(0)

    async def _take(self, event: JSONObject) -> None:
        kind, body = event.get("type"), event.get("object") or {}
        if kind == "ERROR":
            raise StatusError.from_json(body)
        if kind != "BOOKMARK":
            self._notify(Notice(str(kind)), body)
        self._version = str((body.get("metadata") or {}).get("resourceVersion") or self._version)

    def _pass_on(self, notice: Notice, body: JSONObject) -> None:
        if notice is Notice.DELETED:
            self._sink.remove(self.gvr, body)
        else:
            self._sink.put(self.gvr, body)
