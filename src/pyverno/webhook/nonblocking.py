"""The Host for reviews on the event loop: it answers from memory and moves all other reviews to a worker thread.

Most reviews need no external data and take microseconds. Reviews that need it must not block the loop, nor must long
computations, which the limits of policies allow to take a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn, Protocol, runtime_checkable

from pyverno.engine.host import Host, HttpCall, NamespacedHttpHost, Read, Reader
from pyverno.engine.imageverification.recordkeys import RecordKeys
from pyverno.engine.timeslice import MAX_CONTEXT_BYTES, TimeSliceBudget
from pyverno.kube.apipath import ApiPath
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable

__all__ = ["CachingHost", "ComputesLongError", "NeedsWorkerError", "NonblockingHost"]


SLICE_SECONDS: Final = 0.025
"""How long a review may compute on the event loop: a quarter of the longest acceptable stall."""


@runtime_checkable
class CachingHost(Protocol):
    """A Host with caches."""

    def cached_config_map(self, namespace: str, name: str) -> JSONObject | None:
        """Return a cached ConfigMap; None when it must be fetched."""
        ...

    def is_entry_cached(self, name: str) -> bool:
        """Return whether `global_entry` answers without computing anything."""
        ...

    def object_at_hand(self, api_version: str, kind: str, namespace: str, name: str) -> JSONObject | None:
        """Return a cached object; None when it must be requested."""
        ...

    def is_read_granted(self, reader: Reader, read: Read) -> bool:
        """Return whether memory has the permission of an author; raises EvaluationError if memory has its lack."""
        ...


class NeedsWorkerError(BaseException):
    """A rule needs I/O or too much time: the review must be repeated in a worker thread.

    Deliberately not an `Exception`, because the engine turns those into results.
    """


class ComputesLongError(NeedsWorkerError):
    """The review needs no I/O but computes for too long."""


class NonblockingHost:
    """Wraps a Host: cached data, clock and kinds are answered; any other call stops the review.

    >>> from pyverno.engine.host import NO_HOST
    >>> NonblockingHost(NO_HOST).config_map("default", "settings")
    Traceback (most recent call last):
    pyverno.webhook.nonblocking.NeedsWorkerError
    """

    def __init__(self, host: Host, *, seconds: float = SLICE_SECONDS) -> None:
        """Take the wrapped Host, and how many seconds a review may compute."""
        self._host = host
        self._seconds = seconds
        self._memory = host if isinstance(host, CachingHost) else None
        self.allows_http_in_namespaces = isinstance(host, NamespacedHttpHost) and host.allows_http_in_namespaces

    def budget(self, deadline: float | None, context_bytes: int = MAX_CONTEXT_BYTES) -> TimeSliceBudget:
        """Return the budget of a review that starts now and moves to a worker when it computes for too long."""
        return TimeSliceBudget(ComputesLongError, seconds=self._seconds, deadline=deadline, context_bytes=context_bytes)

    def now(self) -> int:
        """Return the wall clock."""
        return self._host.now()

    def random_bits(self, bits: int) -> int:
        """Return random bits."""
        return self._host.random_bits(bits)

    @property
    def kinds(self) -> KindTable:
        """The kinds of the cluster."""
        return self._host.kinds

    @property
    def supplies_variables(self) -> bool:
        """Return whether the user supplied variables."""
        return self._host.supplies_variables

    def recorded_variables(self, policy: str, rule: str, resource: str) -> Mapping[str, JSON]:
        """Return variables that the user supplied."""
        return self._host.recorded_variables(policy, rule, resource)

    def lookup_host(self, name: str) -> NoReturn:
        """Move the review to a worker."""
        raise NeedsWorkerError

    def require_read(self, reader: Reader, read: Read) -> None:
        """Return if memory says that the author of a namespaced policy may read, or move the review to a worker."""
        if self._memory is None or not self._memory.is_read_granted(reader, read):  # guard: no loop waits for rights
            raise NeedsWorkerError

    def api_call(self, path: ApiPath, *, method: str, body: JSON) -> NoReturn:
        """Move the review to a worker."""
        raise NeedsWorkerError

    def http_call(self, call: HttpCall) -> NoReturn:
        """Move the review to a worker."""
        raise NeedsWorkerError

    def http_exchange(self, call: HttpCall) -> NoReturn:
        """Move the review to a worker."""
        raise NeedsWorkerError

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Return a ConfigMap from memory, or move the review to a worker."""
        found = None if self._memory is None else self._memory.cached_config_map(namespace, name)
        if found is None:
            raise NeedsWorkerError
        return found

    def authorize(self, check: object) -> NoReturn:
        """Move the review to a worker."""
        raise NeedsWorkerError

    @property
    def image_source(self) -> NoReturn:
        """Move the review to a worker."""
        raise NeedsWorkerError

    @property
    def record_keys(self) -> RecordKeys:
        """The keys that seal records of verified images."""
        return self._host.record_keys

    def image_data(self, image: str, *, credentials: JSONObject | None) -> NoReturn:
        """Move the review to a worker."""
        raise NeedsWorkerError

    def global_entry(self, name: str) -> JSON:
        """Return the data of a GlobalContextEntry from memory, or move the review to a worker."""
        if self._memory is None or not self._memory.is_entry_cached(name):
            raise NeedsWorkerError
        return self._host.global_entry(name)

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject:
        """Return an object from memory, or move the review to a worker."""
        memory = None if subresource else self._memory
        found = None if memory is None else memory.object_at_hand(api_version, kind, namespace, name)
        if found is None:
            raise NeedsWorkerError
        return found

    def list_objects(self, api_version: str, kind: str, namespace: str, selector: JSONObject | None) -> NoReturn:
        """Move the review to a worker."""
        raise NeedsWorkerError
