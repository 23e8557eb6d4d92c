"""The Host of rules in a cluster: every read becomes a request to the API server, or is answered from a cache.

Called from worker threads: each call waits for the event loop that owns the client. Policies reach this through the
broker, which confines them. This module must never be called on that loop itself, and never use our own credentials for
anything but the API server.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar, runtime_checkable

from pyverno.cluster.accessreviews import access_review, decision_of
from pyverno.cluster.client import Client
from pyverno.cluster.egress import Egress
from pyverno.cluster.informer import Informer
from pyverno.engine.host import HttpCall, Read, Reader
from pyverno.engine.imagesource import NO_IMAGES, ImageAccess, ImageSource
from pyverno.engine.imageverification.recordkeys import NO_RECORD_KEYS, RecordKeys
from pyverno.engine.request import User
from pyverno.errors import EvaluationError, HostError, HostUnavailableError, NotFoundError, PyvernoError
from pyverno.kube.apipath import ApiPath, object_path
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.selector import format_selector
from pyverno.kube.status import StatusError
from pyverno.lang.runtime import ExpressionHost
from pyverno.value import replace

if TYPE_CHECKING:
    # CEL is imported only where a policy is written in it
    from pyverno.lang.cel.host import AuthorizationCheck, Decision

__all__ = ["ClusterHost", "GlobalEntries", "ReadRights", "Reads", "Registries", "WaitingThread"]

_CONFIG_MAPS: Final = GVR("", "v1", "configmaps")
_REVIEWS: Final = GVR("authorization.k8s.io", "v1", "subjectaccessreviews")
_CALL_SECONDS: Final = 3600.0
_MAX_ANSWER_BYTES: Final = 32 * 1024 * 1024
"""The limit of an answer to a rule, decompressed; it may come from any server behind an aggregated API."""
_T = TypeVar("_T")

Registries = Callable[[Callable[[Coroutine[Any, Any, Any], str], Any], float | None], ImageSource]
"""Makes the image source of a host: takes the function that runs a coroutine on the loop, and the deadline."""


class GlobalEntries(Protocol):
    """The global context; both methods may be called from any thread."""

    def get(self, name: str) -> JSON:
        """Return the data of `entry` or `entry.projection`; raises HostError."""
        ...

    def is_cached(self, name: str) -> bool:
        """Return whether `get` answers at once, without working anything out."""
        ...


@runtime_checkable
class WaitingThread(Protocol):
    """A thread that lets other threads run while it waits."""

    def waiting(self) -> AbstractContextManager[None]:
        """Return a context manager to enter while the thread waits."""
        ...


class Reads(Protocol):
    """Records the reads of an evaluation; may answer from memory. Called from the thread of the evaluation."""

    def at_hand(self, gvr: GVR, namespace: str, name: str) -> JSONObject | None:
        """Return an object that a watch keeps in memory; None when it must be requested."""
        ...

    def note_object(self, gvr: GVR, namespace: str, name: str, found: JSONObject | None) -> None:
        """Remember an object that was read, or None for a missing one."""
        ...

    def note_list(self, gvr: GVR, namespace: str, selector: JSONObject | None) -> None:
        """Note objects that were listed."""
        ...

    def note_failure(self) -> None:
        """Note that a question got no answer: another time it may."""
        ...


class ReadRights(Protocol):
    """Decides what the authors of namespaced policies may read."""

    def is_granted(self, reader: Reader, read: Read) -> bool:
        """Return whether memory has a permission; raises EvaluationError if it has its lack. For any thread."""
        ...

    async def require(self, reader: Reader, read: Read) -> None:
        """Raise EvaluationError unless an author may read something, HostError without a decision."""
        ...


class ClusterHost:
    """Answers rules from one cluster; a missing ability is an error, never an empty answer.

    Without `egress` no service is called, and without `read_rights` policies have no authors. `config_maps` is a cache
    of some ConfigMaps of all namespaces; all others are requested from the API server.
    """

    def __init__(
        self,
        client: Client,
        loop: asyncio.AbstractEventLoop,
        kinds: Callable[[], KindTable],
        system: ExpressionHost,
        *,
        egress: Egress | None = None,
        allows_http_in_namespaces: bool = False,
        global_entries: GlobalEntries | None = None,
        config_maps: Informer | None = None,
        registries: Registries | None = None,
        record_keys: Callable[[], RecordKeys] = lambda: NO_RECORD_KEYS,
        read_rights: ReadRights | None = None,
        seconds: float = 10.0,
    ) -> None:
        """Take the client and the loop that it lives on; `system` is clock, randomness and name service."""
        self.allows_http_in_namespaces = allows_http_in_namespaces
        self._client = client
        self._loop = loop
        self._kinds = kinds
        self._system = system
        self._egress = egress
        self._global_entries = global_entries
        self._config_maps = config_maps
        self._seconds = seconds
        self._user: User | None = None
        self._deadline: float | None = None
        self._decisions: dict[tuple[object, ...], Decision] = {}
        self._reads: Reads | None = None
        self._registries = registries
        self._record_keys = record_keys
        self._read_rights = read_rights

    def noting(self, reads: Reads) -> Self:
        """Return the same host for one evaluation whose reads are recorded."""
        asking = copy(self)
        asking._reads = reads
        return asking

    def for_request(self, user: User, deadline: float | None = None) -> Self:
        """Return the same host for one request, with its user and its deadline (monotonic seconds).

        Decisions of the authorizer about the user are cached for the request.
        """
        asking = copy(self)
        asking._user, asking._deadline, asking._decisions = user, deadline, {}
        return asking

    def now(self) -> int:
        """Return the wall clock in nanoseconds."""
        return self._system.now()

    def random_bits(self, bits: int) -> int:
        """Return random bits."""
        return self._system.random_bits(bits)

    def lookup_host(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a host name."""
        return self._system.lookup_host(name)

    @property
    def kinds(self) -> KindTable:
        """The kinds that the cluster serves."""
        return self._kinds()

    def require_read(self, reader: Reader, read: Read) -> None:
        """Raise EvaluationError unless the author of a namespaced policy may read something."""
        rights = self._read_rights
        try:
            if rights is not None and not rights.is_granted(reader, read):
                self._ask(rights.require(reader, read), "the permissions of a policy's author")
        except EvaluationError:
            if self._reads is not None:
                self._reads.note_failure()
            raise

    def is_read_granted(self, reader: Reader, read: Read) -> bool:
        """Return whether a read needs no question; raises EvaluationError for one that is refused."""
        return self._read_rights is None or self._read_rights.is_granted(reader, read)

    def api_call(self, path: ApiPath, *, method: str, body: JSON) -> JSON:
        """Send a canonical path unchanged."""
        named = path.named if self._reads is not None and method == "GET" and not path.query else None
        if self._reads is not None and named is not None:
            return self._read(self._reads, *named)
        response = self._client.request(method, path.path, query=path.query, body=body, max_bytes=_MAX_ANSWER_BYTES)
        return self._ask(response, f"{method} {path.path}")

    def http_call(self, call: HttpCall) -> JSON:
        """Call a service and return the JSON of its answer; a POST without data sends an empty object."""
        posted = replace(call, body={}) if call.method == "POST" and call.body is None else call
        return self._ask(self._calls(call).fetch(posted), "the call of a service", _CALL_SECONDS)

    def http_exchange(self, call: HttpCall) -> tuple[int, bytes]:
        """Call a service and return status and body."""
        return self._ask(self._calls(call).exchange(call), "the call of a service", _CALL_SECONDS)

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Return a ConfigMap, from memory or from the API server."""
        known = self.cached_config_map(namespace, name)
        if known is not None:
            return known
        found: JSONObject = self._ask(self._client.get(_CONFIG_MAPS, name, namespace), f"ConfigMap {namespace}/{name}")
        return found

    def cached_config_map(self, namespace: str, name: str) -> JSONObject | None:
        """Return a ConfigMap if it is in memory and memory follows the cluster."""
        cache = self._config_maps
        if cache is None or not cache.synced.is_set() or cache.is_stale:
            return None
        return cache.get(name, namespace)

    def authorize(self, check: AuthorizationCheck) -> Decision:
        """Ask the API server whether the user of the request, or the service account that is named, may do something.

        Raises EvaluationError where there is no request.
        """
        if self._user is None:
            raise EvaluationError("no authorizer is available here: the evaluation has no user")
        key = (check.verb, check.service_account, *sorted(check.attributes.items()))
        found = self._decisions.get(key)
        if found is None:
            review = access_review(check, self._user)
            found = decision_of(self._ask(self._client.create(_REVIEWS, review), "the authorizer"))
            self._decisions[key] = found
        return found

    @property
    def image_source(self) -> ImageSource:
        """The source of images from registries; None in installations without a registry client."""
        return NO_IMAGES if self._registries is None else self._registries(self._ask_registry, self._deadline)

    @property
    def record_keys(self) -> RecordKeys:
        """The keys of the installation that seal records of verified images; none until they have been read."""
        return self._record_keys()

    def image_data(self, image: str, *, credentials: JSONObject | None) -> JSONObject:
        """Return a registry's data about an image."""
        return self.image_source.data(image, ImageAccess(credentials))

    def global_entry(self, name: str) -> JSON:
        """Return the data of a GlobalContextEntry, which is always in memory."""
        if self._global_entries is None:
            raise HostUnavailableError(f"no global context is available to read entry `{name}`")
        try:
            return self._global_entries.get(name)
        except HostError:
            if self._reads is not None:
                self._reads.note_failure()
            raise

    def is_entry_cached(self, name: str) -> bool:
        """Return whether the data of a GlobalContextEntry need no work."""
        return self._global_entries is None or self._global_entries.is_cached(name)

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        """Return an object or its subresource, None for a missing one; a kind that is not served is an error."""
        gvr, namespaced = self._resource(api_version, kind)
        namespace = namespace if namespaced else ""
        if self._reads is not None and not subresource:
            try:
                return self._read(self._reads, gvr, namespace, name)
            except NotFoundError:
                return None
        asking = self._client.get(gvr, name, namespace, subresource=subresource)
        try:
            found: JSONObject = self._ask(asking, f"{kind} {namespace}/{name}")
        except NotFoundError:
            return None
        return found

    def object_at_hand(self, api_version: str, kind: str, namespace: str, name: str) -> JSONObject | None:
        """Return an object that `Reads` have in memory, None when it must be requested."""
        if self._reads is None:
            return None
        gvr, namespaced = self._resource(api_version, kind)
        namespace = namespace if namespaced else ""
        found = self._reads.at_hand(gvr, namespace, name)
        if found is not None:
            self._reads.note_object(gvr, namespace, name, found)
        return found

    def list_objects(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None
    ) -> tuple[JSONObject, ...]:
        """Return the objects that a label selector selects, without one all."""
        gvr, namespaced = self._resource(api_version, kind)
        namespace = namespace if namespaced else ""
        if self._reads is not None:
            self._reads.note_list(gvr, namespace, selector)
        text = format_selector(selector)
        query = {"labelSelector": text} if text else {}
        found = self._ask(self._client.list(gvr, namespace, query=query), f"list of {kind}")
        return tuple({"apiVersion": api_version, "kind": kind, **item} for item in found["items"])

    @property
    def supplies_variables(self) -> bool:
        """False: a cluster has no values file."""
        return False

    def recorded_variables(self, policy: str, rule: str, resource: str) -> Mapping[str, JSON]:
        """Return nothing."""
        return {}

    def _read(self, reads: Reads, gvr: GVR, namespace: str, name: str) -> JSONObject:
        """Return an object from memory or the API server, and note it; raises NotFoundError."""
        found = reads.at_hand(gvr, namespace, name)
        if found is None:
            try:
                path = object_path(gvr, namespace, name)
                asking = self._client.request("GET", path, max_bytes=_MAX_ANSWER_BYTES)
                found = self._ask(asking, f"GET {path}")
            except NotFoundError:
                reads.note_object(gvr, namespace, name, None)
                raise
        reads.note_object(gvr, namespace, name, found)
        return found

    def _resource(self, api_version: str, kind: str) -> tuple[GVR, bool]:
        group, version = parse_api_version(api_version)
        info = self._kinds().find(GVK(group, version, kind))
        if info is None:
            raise HostError(f"the cluster does not serve {kind} of {api_version}")
        return info.gvr, info.namespaced

    def _calls(self, call: HttpCall) -> Egress:
        if self._egress is None:
            raise HostUnavailableError(f"calls of services are not available here: `{call.method} {call.url}`")
        return self._egress

    def _ask_registry(self, asking: Coroutine[Any, Any, Any], what: str) -> Any:
        return self._ask(asking, what, _CALL_SECONDS)

    def _ask(self, asking: Coroutine[Any, Any, _T], what: str, seconds: float | None = None) -> _T:
        try:
            return self._await(asking, what, seconds)
        except HostError as error:
            if self._reads is not None and not isinstance(error, NotFoundError):
                self._reads.note_failure()
            raise

    def _await(self, asking: Coroutine[Any, Any, _T], what: str, seconds: float | None) -> _T:
        limit = self._seconds if seconds is None else seconds
        if self._deadline is not None:
            limit = min(limit, max(self._deadline - time.monotonic(), 0.0))
        if not limit:
            asking.close()
            raise HostError(f"{what}: no answer within 0 seconds")
        running = asyncio.run_coroutine_threadsafe(asking, self._loop)
        thread = threading.current_thread()
        try:
            with thread.waiting() if isinstance(thread, WaitingThread) else nullcontext():
                # an error is not raised where the loop keeps it: its traceback would keep the frames of the review
                error = running.exception(limit)
        except TimeoutError:
            running.cancel()
            raise HostError(f"{what}: no answer within {limit:g} seconds") from None
        if error is None:
            return running.result()
        if isinstance(error, StatusError):
            raise NotFoundError(error.message) if error.status == 404 else HostError(error.message)
        raise error.copied() if isinstance(error, PyvernoError) else error
