"""The settings of the cleanup controller, from its flags."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Final

from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.controllers.state.clusterstate import StateSettings
from pyverno.controllers.state.settings import ControllerSettings
from pyverno.controllers.writeguard import GuardSettings
from pyverno.policy.kinds import DELETING_POLICIES, WATCHED_EXCEPTIONS
from pyverno.value import dataclass, field, replace
from pyverno.webhook.policyreviews import ExceptionSettings

__all__ = ["CleanupSettings"]

_CEL_EXCEPTIONS: Final = tuple(gvr for gvr in WATCHED_EXCEPTIONS if gvr.group == "policies.kyverno.io")
_REQUIRED: Final = tuple(gvr for gvr in DELETING_POLICIES if gvr.group == "kyverno.io")


@dataclass(frozen=True, slots=True)
class CleanupSettings(ControllerSettings):
    """Settings of the cleanup controller.

    Schedules are read in `zone`. With `is_dry_run` nothing is deleted and no status is written. A policy that selects
    more than `max_deletions` objects of a kind waits for its author's confirmation (0 = no limit). Permissions and
    kinds for times to live are looked up every `ttl_seconds`; each object may take `review_seconds`, and `workers`
    policies run at a time. The API server's responses of the last `clock_seconds` tell the time.
    """

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
    exceptions: ExceptionSettings = field(default_factory=lambda: ExceptionSettings(enabled=True, namespace="*"))
    """An exception keeps objects: none is left out."""

    @property
    def state(self) -> StateSettings:
        """The state of the cluster to follow: policies that delete, and all exceptions from them."""
        return replace(
            self._shared_state(),
            protects_managed=self.protects_managed,
            policy_resources=DELETING_POLICIES,
            exception_resources=_CEL_EXCEPTIONS,
            required_resources=_REQUIRED,
            follows_roles=False,
        )
