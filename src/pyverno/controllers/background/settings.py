"""The settings of the background controller, from its flags."""

from __future__ import annotations

from pyverno.controllers.background.resultreports import ResultReportSettings
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.controllers.state.clusterstate import StateSettings
from pyverno.controllers.state.settings import ControllerSettings
from pyverno.controllers.writeguard import GuardSettings
from pyverno.value import dataclass, field, replace

__all__ = ["BackgroundSettings"]


@dataclass(frozen=True, slots=True)
class BackgroundSettings(ControllerSettings):
    """Settings of the background controller.

    `workers` UpdateRequests are worked on at a time, and each rule may take `review_seconds`. The work is divided into
    `shards`, and each is done by one replica at a time. `scan_seconds` is the
    interval in which policies are applied again to what exists. Requests that are not completed after
    `condition_seconds` show as a condition of their policy. `account` is the controller's own user name ("" = unknown).
    """

    account: str = ""
    workers: int = 10
    shards: int = 1
    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.5, longest=300.0))
    guard: GuardSettings = field(default_factory=GuardSettings)
    review_seconds: float = 30.0
    scan_seconds: float = 3600.0
    condition_seconds: float = 5.0
    reports: ResultReportSettings = field(default_factory=ResultReportSettings)

    @property
    def state(self) -> StateSettings:
        """Settings of the state of the cluster, and rights of policies."""
        return replace(self._shared_state(), background_account=self.account)
