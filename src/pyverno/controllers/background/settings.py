"""What the flags of the background controller say."""

from __future__ import annotations

import os

from pyverno.controllers.background.resultreports import ResultReportSettings
from pyverno.controllers.runtime.events import EventSettings
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.controllers.state.clusterstate import StateSettings
from pyverno.controllers.state.hosts import HostSettings
from pyverno.controllers.writeguard import GuardSettings
from pyverno.value import dataclass, field
from pyverno.webhook.policyreviews import ExceptionSettings

__all__ = ["BackgroundSettings"]


@dataclass(frozen=True, slots=True)
class BackgroundSettings:
    """How the background controller works.

    `workers` UpdateRequests are worked on at a time, and each rule may take `review_seconds`. The work is divided into
    `shards`, and each is done by one replica at a time. `scan_seconds` is the
    interval in which policies are applied again to what exists. Requests that are not completed after
    `condition_seconds` show as a condition of their policy. `account` is the controller's own user name ("" = unknown).
    """

    namespace: str = "kyverno"
    config_map: str = "kyverno"
    metrics_config_map: str = "kyverno-metrics"
    identity: str = field(default_factory=lambda: f"{os.uname().nodename}-{os.getpid()}")
    account: str = ""
    workers: int = 10
    shards: int = 1
    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.5, longest=300.0))
    guard: GuardSettings = field(default_factory=GuardSettings)
    review_seconds: float = 30.0
    scan_seconds: float = 3600.0
    condition_seconds: float = 5.0
    lease_retry: float = 2.0
    qps: float = 100
    burst: int = 200
    events_qps: float = 1000
    events_burst: int = 2000
    resync_seconds: float = 900.0
    exceptions: ExceptionSettings = field(default_factory=ExceptionSettings)
    events: EventSettings = field(default_factory=EventSettings)
    hosts: HostSettings = field(default_factory=HostSettings)
    reports: ResultReportSettings = field(default_factory=ResultReportSettings)

    @property
    def state(self) -> StateSettings:
        """What of the cluster is followed, and what policies may do."""
        return StateSettings(
            namespace=self.namespace,
            config_map=self.config_map,
            metrics_config_map=self.metrics_config_map,
            exceptions=self.exceptions,
            allows_http_in_namespaces=self.hosts.allows_http_in_namespaces,
            background_account=self.account,
            stale_seconds=self.hosts.stale_seconds,
        )
