"""What the flags of the cleanup controller say."""

from __future__ import annotations

import os
from datetime import UTC, tzinfo
from typing import Final

from pyverno.controllers.runtime.events import EventSettings
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.controllers.state.clusterstate import StateSettings
from pyverno.controllers.state.hosts import HostSettings
from pyverno.controllers.writeguard import GuardSettings
from pyverno.policy.kinds import DELETING_POLICIES, WATCHED_EXCEPTIONS
from pyverno.value import dataclass, field
from pyverno.webhook.policyreviews import ExceptionSettings

__all__ = ["CleanupSettings"]

_CEL_EXCEPTIONS: Final = tuple(gvr for gvr in WATCHED_EXCEPTIONS if gvr.group == "policies.kyverno.io")
_REQUIRED: Final = tuple(gvr for gvr in DELETING_POLICIES if gvr.group == "kyverno.io")


@dataclass(frozen=True, slots=True)
class CleanupSettings:
    """How the cleanup controller works.

    Schedules are read in `zone`. With `is_dry_run` nothing is deleted and no status is written. A policy that selects
    more than `max_deletions` objects of a kind waits for its author's confirmation (0 = no limit). Permissions and
    kinds for times to live are looked up every `ttl_seconds`; each object may take `review_seconds`, and `workers`
    policies run at a time. The API server's responses of the last `clock_seconds` tell the time.
    """

    namespace: str = "kyverno"
    config_map: str = "kyverno"
    metrics_config_map: str = "kyverno-metrics"
    identity: str = field(default_factory=lambda: f"{os.uname().nodename}-{os.getpid()}")
    zone: tzinfo = UTC
    is_dry_run: bool = False
    protects_managed: bool = False
    max_deletions: int = 0
    ttl_seconds: float = 60.0
    ttl_workers: int = 10
    workers: int = 3
    delete_workers: int = 10
    review_seconds: float = 30.0
    clock_seconds: float = 60.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=300.0))
    guard: GuardSettings = field(default_factory=lambda: GuardSettings(quiet_seconds=5.0))
    lease_retry: float = 2.0
    qps: float = 100
    burst: int = 200
    events_qps: float = 1000
    events_burst: int = 2000
    resync_seconds: float = 900.0
    events: EventSettings = field(default_factory=EventSettings)
    hosts: HostSettings = field(default_factory=HostSettings)

    @property
    def state(self) -> StateSettings:
        """What of the cluster is followed: policies that delete, and all exceptions from them."""
        return StateSettings(
            namespace=self.namespace,
            config_map=self.config_map,
            metrics_config_map=self.metrics_config_map,
            # an exception keeps objects: none is left out
            exceptions=ExceptionSettings(enabled=True, namespace="*"),
            protects_managed=self.protects_managed,
            allows_http_in_namespaces=self.hosts.allows_http_in_namespaces,
            stale_seconds=self.hosts.stale_seconds,
            policy_resources=DELETING_POLICIES,
            exception_resources=_CEL_EXCEPTIONS,
            required_resources=_REQUIRED,
            follows_roles=False,
        )
