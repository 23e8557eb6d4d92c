"""The world for reviews that run on the event loop: what is in memory answers, anything else asks for a worker.

Most reviews ask nothing of the world and are over in microseconds; those that do must not hold up the loop, and neither
must those that compute for long, which the limits of policies allow to take a second. This module must never answer a
question by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn, Protocol, runtime_checkable

from pyverno.engine.host import Host, HttpCall, NamespacedHttpHost
from pyverno.engine.timeslice import MAX_CONTEXT_BYTES, TimeSliceBudget
from pyverno.kube.apipath import ApiPath
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable

__all__ = ["CachingHost", "ComputesLongError", "NeedsWorkerError", "NonblockingHost"]


PATIENCE_SECONDS: Final = 0.025
"""How long a review may compute on the event loop; a quarter of the longest stall that the loop may have."""


@runtime_checkable
class CachingHost(Protocol):
    """A Host that has some answers in memory, and says which."""

    def cached_config_map(self, namespace: str, name: str) -> JSONObject | None:
        """Return a ConfigMap that is in memory; None when the cluster has to be asked."""
        ...

    def is_entry_cached(self, name: str) -> bool:
        """Tell whether `global_entry` answers at once."""
        ...


class NeedsWorkerError(BaseException):
    """A rule asks something that takes time, or takes it itself: the review must be done again in a worker thread.

    It is no `Exception` on purpose: the engine turns those into results, and this is none.
    """


class ComputesLongError(NeedsWorkerError):
    """It asks nothing, and computes for longer than the loop can wait."""


class NonblockingHost:
    """Stands before a Host: what it has in memory passes (clock and kinds included), other questions stop the review.

    >>> from pyverno.engine.host import NO_HOST
    >>> InlineHost(NO_HOST).config_map("default", "settings")
    Traceback (most recent call last):
    pyverno.webhook.nonblocking.NeedsWorkerError
    """

    def __init__(self, host: Host, *, patience: float = PATIENCE_SECONDS) -> None:
        """Take the Host that answers what takes no time, and how many seconds a review may compute."""
        self._host = host
        self._patience = patience
        self._memory = host if isinstance(host, CachingHost) else None
        self.allows_http_in_namespaces = isinstance(host, NamespacedHttpHost) and host.allows_http_in_namespaces

    def budget(self, deadline: float | None, context_bytes: int = MAX_CONTEXT_BYTES) -> TimeSliceBudget:
        """Return the budget of one review that begins now; one that computes for too long needs a worker."""
        return TimeSliceBudget(
            ComputesLongError, patience=self._patience, deadline=deadline, context_bytes=context_bytes
        )

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
        """Tell whether a person supplied variables."""
        return self._host.supplies_variables

    def recorded_variables(self, policy: str, rule: str, resource: str) -> Mapping[str, JSON]:
        """Return variables that a person supplied."""
        return self._host.recorded_variables(policy, rule, resource)

    def lookup_host(self, name: str) -> NoReturn:
        """Ask for a worker."""
        raise NeedsWorkerError

    def api_call(self, path: ApiPath, *, method: str, body: JSON) -> NoReturn:
        """Ask for a worker."""
        raise NeedsWorkerError

    def http_call(self, call: HttpCall) -> NoReturn:
        """Ask for a worker."""
        raise NeedsWorkerError

    def http_exchange(self, call: HttpCall) -> NoReturn:
        """Ask for a worker."""
        raise NeedsWorkerError

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Return a ConfigMap from memory, or ask for a worker."""
        found = None if self._memory is None else self._memory.cached_config_map(namespace, name)
        if found is None:
            raise NeedsWorkerError
        return found

    def authorize(self, check: object) -> NoReturn:
        """Ask for a worker."""
        raise NeedsWorkerError

    @property
    def image_source(self) -> NoReturn:
        """Ask for a worker."""
        raise NeedsWorkerError

    def image_data(self, image: str, *, credentials: JSONObject | None) -> NoReturn:
        """Ask for a worker."""
        raise NeedsWorkerError

    def global_entry(self, name: str) -> JSON:
        """Return the data of a GlobalContextEntry from memory, or ask for a worker."""
        if self._memory is None or not self._memory.is_entry_cached(name):
            raise NeedsWorkerError
        return self._host.global_entry(name)

    def get_object(self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = "") -> NoReturn:
        """Ask for a worker."""
        raise NeedsWorkerError

    def list_objects(self, api_version: str, kind: str, namespace: str, selector: JSONObject | None) -> NoReturn:
        """Ask for a worker."""
        raise NeedsWorkerError
