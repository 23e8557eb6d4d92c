"""The context of the parts of the cleanup controller."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pyverno.cluster.client import Client
from pyverno.cluster.host import ClusterHost
from pyverno.cluster.servertime import ServerTime
from pyverno.controllers.applier import EffectApplier
from pyverno.controllers.cleanup.metrics import CleanupMetrics
from pyverno.controllers.cleanup.settings import CleanupSettings
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.errors import HostError
from pyverno.value import dataclass

__all__ = ["CleanupContext"]


@dataclass(frozen=True, slots=True)
class CleanupContext:
    """The cluster, the applier and the engine; all methods belong to the event loop's thread.

    `notify` queues an event. `state` is followed by watches, and may be a moment old. `time` is that of the API server.
    """

    client: Client
    settings: CleanupSettings
    state: ClusterState
    host: Callable[[], ClusterHost]
    applier: EffectApplier
    notify: Callable[[Event], None]
    metrics: CleanupMetrics
    pool: ThreadPoolExecutor
    time: ServerTime

    def now(self) -> float:
        """Return the time of the API server in seconds since 1970; raises HostError while it is unknown."""
        now = self.time.now()
        if now is None:
            raise HostError("the API server has not sent its time yet: its responses have no Date header")
        return now
