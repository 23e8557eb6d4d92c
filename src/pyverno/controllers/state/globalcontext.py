"""The global context: data of GlobalContextEntry objects, kept in memory for rules to look up.

A missing, unsynced or failed entry is an error, never an empty value. `get` and `is_cached` are thread-safe; call all
other methods on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.egress import Egress
from pyverno.cluster.informer import STALE_SECONDS, Notice
from pyverno.compiler.compile import compile_document
from pyverno.controllers.state.globalentries import Entry, InvalidEntry, ListedEntry, PolledEntry
from pyverno.engine.host import HttpCall
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError, HostUnavailableError
from pyverno.kube.apipath import parse_api_path
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.offline.projection import compile_projection
from pyverno.policy.globalcontext import ExternalApiCall, GlobalContextEntry

__all__ = ["ENTRY_VERSIONS", "GlobalContext"]

ENTRY_VERSIONS: Final = tuple(
    GVR("kyverno.io", version, "globalcontextentries") for version in ("v2", "v2beta1", "v2alpha1")
)
"""The versions of the kind, best first; the first one that a cluster serves is watched."""

log = logging.getLogger("pyverno.globalcontext")


def _ignore_refresh(entry: ResourceRef, uid: str) -> None:
    """Do nothing."""


def _ignore_state(entry: ResourceRef, uid: str, error: str) -> None:
    """Do nothing."""


class GlobalContext:
    """Keeps the entries; a watch calls `take`, rules call `get` from any thread."""

    def __init__(
        self,
        client: Client,
        egress: Egress,
        *,
        max_entries: int = 0,
        bound: float = STALE_SECONDS,
        on_refresh: Callable[[ResourceRef, str], None] = _ignore_refresh,
        on_state: Callable[[ResourceRef, str, str], None] = _ignore_state,
    ) -> None:
        """Take the clients that read entries, and the limit on their number (0 = none).

        Data older than its refresh interval by more than `bound` seconds is an error. `on_refresh` is called with an
        entry and its uid when its API answers; `on_state` also gets the reason why an entry has no data, or "".
        """
        self._client = client
        self._egress = egress
        self._max_entries = max_entries
        self._bound = bound
        self._on_refresh = on_refresh
        self._on_state = on_state
        self._specs: dict[str, JSON] = {}
        self._entries: Mapping[str, Entry] = {}
        self._waiting: dict[str, JSONObject] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def take(self, notice: Notice, body: JSONObject) -> None:
        """Handle the creation, change or deletion of an entry; a change of its status alone is ignored."""
        name = body["metadata"]["name"]
        if notice is Notice.DELETED:
            self._remove(name)
        elif name not in self._specs and self._max_entries and len(self._specs) >= self._max_entries:
            if name not in self._waiting:
                log.error("there are too many global context entries", extra={"fields": {"entry": name}})
                entry, uid = _reference(body)
                self._on_state(entry, uid, f"there are already {self._max_entries} global context entries")
            self._waiting[name] = body
        elif name not in self._specs or self._specs[name] != body.get("spec"):
            self._put(name, body)

    def get(self, name: str) -> JSON:
        """Return the data of `entry` or `entry.projection`.

        Raises HostUnavailableError when there is no such entry, HostError with the reason when it has no data.
        """
        found = self._find(name)
        if found is not None:
            entry, projection = found
            return entry.read(projection)
        refused = next((entry for entry, _ in _split_reference(name) if entry in self._waiting), None)
        if refused is not None:
            raise HostError(
                f"global context entry `{refused}` was not taken: there are already {self._max_entries} of them"
            )
        raise HostUnavailableError(f"failed to fetch entry key={name}")

    def is_cached(self, name: str) -> bool:
        """Return whether `get` answers without computing anything."""
        found = self._find(name)
        return found is None or found[0].is_cached(found[1])

    def source_of(self, name: str) -> JSON:
        """Return the spec of the entry that `entry` or `entry.projection` names, None without one."""
        return next((self._specs[entry] for entry, _ in _split_reference(name) if entry in self._entries), None)

    def wake(self) -> None:
        """Retry failed entries at once, because the kinds that the cluster serves have changed."""
        for entry in self._entries.values():
            entry.wake()

    async def close(self) -> None:
        """Stop all entries."""
        entries, self._entries = self._entries, {}
        await asyncio.gather(*(entry.stop() for entry in entries.values()), *self._ending)

    def _find(self, name: str) -> tuple[Entry, str] | None:
        entries = self._entries
        return next(
            ((entries[entry], projection) for entry, projection in _split_reference(name) if entry in entries),
            None,
        )

    def _put(self, name: str, body: JSONObject) -> None:
        self._stop(name)
        self._specs[name] = body.get("spec")
        self._entries = {**self._entries, name: self._make(body)}

    def _remove(self, name: str) -> None:
        self._waiting.pop(name, None)
        if self._specs.pop(name, None) is None:
            return
        self._stop(name)
        self._entries = {other: entry for other, entry in self._entries.items() if other != name}
        if self._waiting:
            following = next(iter(self._waiting))
            self._put(following, self._waiting.pop(following))

    def _stop(self, name: str) -> None:
        if name in self._entries:
            ending = asyncio.create_task(self._entries[name].stop())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    def _make(self, body: JSONObject) -> Entry:
        entry, uid = _reference(body)
        on_refresh, on_state = partial(self._on_refresh, entry, uid), partial(self._on_state, entry, uid)
        compiled = compile_document(Document(body, ""))
        written = compiled.written
        if compiled.errors or not isinstance(written, GlobalContextEntry):
            reason = "; ".join(f"{error.path}: {error.message}" for error in compiled.errors)
            return InvalidEntry(f"global context entry `{entry.name}` is not valid: {reason}", on_state)
        projections = {each.name: compile_projection(each.jmes_path) for each in written.spec.projections}
        if written.spec.kubernetes_resource is not None:
            resource = written.spec.kubernetes_resource
            return ListedEntry(written.name, self._client, resource, projections, on_state=on_state, bound=self._bound)
        assert written.spec.api_call is not None  # noqa: S101 - valid entries have one of the two
        return PolledEntry(
            written.name,
            self._fetch,
            written.spec.api_call,
            projections,
            on_refresh=on_refresh,
            on_state=on_state,
            bound=self._bound,
        )

    async def _fetch(self, call: ExternalApiCall) -> JSON:
        body = {each.key: each.value for each in call.data}
        method = call.method.value
        if call.service is None:
            path = parse_api_path(call.url_path)
            sent = body if method == "POST" else None
            return await self._client.request(method, path.path, query=path.query, body=sent)
        headers = {each.key: each.value for each in call.service.headers}
        return await self._egress.fetch(HttpCall(method, call.service.url, headers, body, call.service.ca_bundle))


def _reference(body: JSONObject) -> tuple[ResourceRef, str]:
    """Return the reference and the uid of an entry."""
    return ResourceRef.of(body), str(body["metadata"].get("uid") or "")


def _split_reference(name: str) -> Iterator[tuple[str, str]]:
    """Yield the possible meanings of a reference as (entry, projection): both names may contain dots."""
    yield name, ""
    entry, dot, _ = name.rpartition(".")
    while dot:
        yield entry, name[len(entry) + 1 :]
        entry, dot, _ = entry.rpartition(".")
