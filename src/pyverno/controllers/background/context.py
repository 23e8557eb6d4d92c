"""The context of handlers and policy controllers of the background controller."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.host import ClusterHost, Reads
from pyverno.controllers.applier import EffectApplier
from pyverno.controllers.background.resultreports import ResultReports
from pyverno.controllers.background.settings import BackgroundSettings
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.state.policystore import Identity
from pyverno.engine.engine import Engine, Review
from pyverno.engine.phases import Phase
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import UPDATE_REQUESTS, UpdateRequestSpec
from pyverno.telemetry.metrics import Metrics
from pyverno.threads import in_pool
from pyverno.value import dataclass, field
from pyverno.webhook.nonblocking import NeedsWorkerError, NonblockingHost

__all__ = ["BackgroundContext"]

_WAITING_SECONDS: Final = 1.0
"""For how long the rules of a set that had to wait for the cluster are evaluated in threads."""

_MAX_WAITED: Final = 10_000


@dataclass(frozen=True, slots=True)
class BackgroundContext:
    """The cluster, the applier and the engine; all methods belong to the event loop's thread.

    `notify` queues an event. `state` is followed by watches, and may be a moment old.
    """

    client: Client
    settings: BackgroundSettings
    state: ClusterState
    host: Callable[[], ClusterHost]
    applier: EffectApplier
    notify: Callable[[Event], None]
    metrics: Metrics
    reports: ResultReports
    pool: ThreadPoolExecutor
    has_room: Callable[[], Awaitable[None]]
    """Returns once there is room for one more UpdateRequest."""

    note_trouble: Callable[[Identity, Hashable, str], None]
    """Notes why a piece of work of a policy that has no request cannot be done, "" when it is done."""

    waited: dict[int, float] = field(default_factory=dict)
    """When sets of policies (by `id`) last needed a thread, in seconds of the monotonic clock."""

    async def review(
        self, policies: PolicySet, request: Request, phases: Sequence[Phase], *, reads: Reads | None = None
    ) -> Review:
        """Evaluate policies on a request, within `review_seconds`; raises nothing that a policy causes.

        Rules that read only what is in memory are evaluated at once, all others in a thread. `reads` notes what is read
        of the cluster.
        """
        now = time.monotonic()
        deadline = now + self.settings.review_seconds
        host = self.host().for_request(request.user, deadline)
        if reads is not None:
            host = host.noting(reads)
        if now - self.waited.get(id(policies), -_WAITING_SECONDS) >= _WAITING_SECONDS:
            inline = NonblockingHost(host)
            try:
                return Engine(policies, inline).review(request, phases, budget=inline.budget(deadline))
            except NeedsWorkerError:
                if len(self.waited) >= _MAX_WAITED:
                    self.waited.clear()
                self.waited[id(policies)] = now

        def evaluate() -> Review:
            return Engine(policies, host).review(request, phases, deadline=deadline)

        return await in_pool(self.pool, evaluate)

    async def submit(self, spec: UpdateRequestSpec, *, name: str = "") -> bool:
        """Create an UpdateRequest, which one of the replicas then works on; return whether it was not there already.

        While there are as many as the threshold of the ConfigMap allows, it waits: nothing is lost. With a `name`, a
        request of that name that is still being worked on is the same. Raises HostError, StatusError.
        """
        await self.has_room()
        namespace = self.settings.namespace
        body = spec.to_json(namespace)
        if name:
            kept = {key: value for key, value in body["metadata"].items() if key != "generateName"}
            body = {**body, "metadata": {**kept, "name": name}}
        try:
            await self.client.submit(UPDATE_REQUESTS, body, namespace)
        except StatusError as error:
            if not name or error.reason != "AlreadyExists":
                raise
            return False
        return True
