"""The settings that all controllers share: namespace, ConfigMaps, rates, events and what rules may read."""

from __future__ import annotations

import os
from enum import StrEnum

from pyverno.controllers.runtime.events import EventSettings
from pyverno.controllers.state.clusterstate import StateSettings
from pyverno.controllers.state.hosts import HostSettings
from pyverno.value import dataclass, field
from pyverno.webhook.policyreviews import ExceptionSettings

__all__ = ["ControllerSettings", "PolicyRights"]


class PolicyRights(StrEnum):
    """Whose permissions decide what namespaced policies may write."""

    AUTHOR = "author"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """A controller's settings for its cluster and process.

    `identity` names this replica among the others. `lease_retry` is the interval in seconds between attempts to take or
    renew a lease. Everything is reconciled every `resync_seconds` without a change; 0 turns this off. Namespaced
    policies act with the permissions that `rights` names.
    """

    namespace: str = "kyverno"
    config_map: str = "kyverno"
    metrics_config_map: str = "kyverno-metrics"
    identity: str = field(default_factory=lambda: f"{os.uname().nodename}-{os.getpid()}")
    lease_retry: float = 2.0
    qps: float = 100
    burst: int = 200
    events_qps: float = 1000
    events_burst: int = 2000
    resync_seconds: float = 900.0
    exceptions: ExceptionSettings = field(default_factory=ExceptionSettings)
    events: EventSettings = field(default_factory=EventSettings)
    hosts: HostSettings = field(default_factory=HostSettings)
    rights: PolicyRights = PolicyRights.AUTHOR

    @property
    def state(self) -> StateSettings:
        """Settings of the state of the cluster, and rights of policies."""
        return self._shared_state()

    def _shared_state(self) -> StateSettings:
        return StateSettings(
            namespace=self.namespace,
            config_map=self.config_map,
            metrics_config_map=self.metrics_config_map,
            exceptions=self.exceptions,
            allows_http_in_namespaces=self.hosts.allows_http_in_namespaces,
            stale_seconds=self.hosts.stale_seconds,
        )
