"""The settings of the admission controller, from its flags.

This module must never read a flag or the environment itself: the command line does.
"""

from __future__ import annotations

from dataclasses import fields

from pyverno.controllers.admission.auditpass import AuditSettings
from pyverno.controllers.admission.followup import FollowupSettings
from pyverno.controllers.admission.reports import ReportSettings
from pyverno.controllers.admission.updaterequestwriter import UpdateRequestSettings
from pyverno.controllers.certificates.secrets import CertificateSettings
from pyverno.controllers.state.clusterstate import StateSettings
from pyverno.controllers.state.settings import ControllerSettings
from pyverno.controllers.webhooks.configurations import Settings
from pyverno.value import dataclass, field, replace
from pyverno.webhook.server import Limits
from pyverno.webhook.tls import Clients

__all__ = ["AdmissionSettings", "LeaderSettings"]


@dataclass(frozen=True, slots=True)
class LeaderSettings:
    """Settings of the leader alone; the fields are those of `AdmissionSettings`."""

    namespace: str
    identity: str
    deployment: str
    lease_retry: float
    service: str
    service_port: int
    server: str
    resync_seconds: float
    webhooks: Settings
    removes_webhooks: bool
    certificates: CertificateSettings
    clients: Clients
    generates_validating: bool
    generates_mutating: bool
    reports_account: str


@dataclass(frozen=True, slots=True)
class AdmissionSettings(ControllerSettings):
    """The settings of the admission controller, from its flags.

    `server` (`host:port`) is the address for the API server when the controller runs outside of the cluster.
    `deployment` is the Deployment of this replica ("" outside of a cluster). The three accounts are the user names of
    the other controllers: the status of a policy shows whether `reports_account` may read the resources that the policy
    matches; policies that need more permissions than `background_account` or `cleanup_account` has are rejected. With
    `shares_port` other processes of this replica listen at the same port.
    """

    service: str = "kyverno-svc"
    address: str = ""
    port: int = 9443
    server: str = ""
    service_port: int = 443
    webhooks: Settings = field(default_factory=Settings)
    certificates: CertificateSettings = field(default_factory=CertificateSettings)
    protects_managed: bool = False
    clients: Clients = field(default_factory=Clients)
    limits: Limits = field(default_factory=Limits)
    removes_webhooks: bool = False
    deployment: str = ""
    generates_validating: bool = True
    generates_mutating: bool = False
    reports_account: str = ""
    background_account: str = ""
    cleanup_account: str = ""
    reports: ReportSettings = field(default_factory=ReportSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    shares_port: bool = False

    @property
    def followup(self) -> FollowupSettings:
        """Settings of the work after a response."""
        updates = UpdateRequestSettings(self.namespace, self.background_account)
        return FollowupSettings(self.reports, updates, self.audit)

    @property
    def leader(self) -> LeaderSettings:
        """Settings of the leader."""
        names = (each.name for each in fields(LeaderSettings))
        return LeaderSettings(**{name: getattr(self, name) for name in names})

    @property
    def state(self) -> StateSettings:
        """Settings of the state of the cluster, and rights of policies."""
        return replace(
            self._shared_state(),
            protects_managed=self.protects_managed,
            forces_ignore=self.webhooks.forces_ignore,
            background_account=self.background_account,
        )

    def share(self, number: int, of: int) -> AdmissionSettings:
        """Return the settings of one of several processes of a replica: its name, and its part of the budgets."""
        return replace(
            self,
            identity=f"{self.identity}-{number}",
            qps=self.qps / of,
            burst=max(self.burst // of, 1),
            events_qps=self.events_qps / of,
            events_burst=max(self.events_burst // of, 1),
            limits=self.limits.share(of),
            shares_port=True,
        )
