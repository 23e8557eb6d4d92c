"""What the flags of the admission controller say, as one value.

This module must never read a flag or the environment itself: the command line does.
"""

from __future__ import annotations

import os
from dataclasses import fields

from pyverno.controllers.admission.auditpass import AuditSettings
from pyverno.controllers.admission.followup import FollowupSettings
from pyverno.controllers.admission.reports import ReportSettings
from pyverno.controllers.admission.updaterequestwriter import UpdateRequestSettings
from pyverno.controllers.certificates.secrets import CertificateSettings
from pyverno.controllers.runtime.events import EventSettings
from pyverno.controllers.state.clusterstate import StateSettings
from pyverno.controllers.state.hosts import HostSettings
from pyverno.controllers.webhooks.configurations import Settings
from pyverno.value import dataclass, field, replace
from pyverno.webhook.policyreviews import ExceptionSettings
from pyverno.webhook.server import Limits
from pyverno.webhook.tls import Clients

__all__ = ["AdmissionSettings", "LeaderSettings"]


@dataclass(frozen=True, slots=True)
class LeaderSettings:
    """What only the leader needs to know; the fields are those of `AdmissionSettings`."""

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
class AdmissionSettings:
    """The settings of the admission controller, from its flags.

    `server` (`host:port`) is the address for the API server when the controller runs outside of the cluster. `identity`
    names this replica among the others, `deployment` is its Deployment ("" outside of a cluster). `reports_account` is
    the user name of the service account of the reports controller: the status of a policy says whether that account may
    read the resources that the policy matches. `background_account` is that of the background controller: policies with
    targets that it may not change are rejected; `cleanup_account` is that of the cleanup controller, with the same
    effect for cleanup policies. Everything is reconciled every `resync_seconds` without a change; 0 turns this off.
    With `shares_port` other processes of this replica listen at the same port.
    """

    namespace: str = "kyverno"
    service: str = "kyverno-svc"
    config_map: str = "kyverno"
    metrics_config_map: str = "kyverno-metrics"
    address: str = ""
    port: int = 9443
    server: str = ""
    service_port: int = 443
    identity: str = field(default_factory=lambda: f"{os.uname().nodename}-{os.getpid()}")
    exceptions: ExceptionSettings = field(default_factory=ExceptionSettings)
    webhooks: Settings = field(default_factory=Settings)
    certificates: CertificateSettings = field(default_factory=CertificateSettings)
    protects_managed: bool = False
    lease_retry: float = 2.0
    qps: float = 100
    burst: int = 200
    events_qps: float = 1000
    events_burst: int = 2000
    resync_seconds: float = 900.0
    clients: Clients = field(default_factory=Clients)
    limits: Limits = field(default_factory=Limits)
    hosts: HostSettings = field(default_factory=HostSettings)
    removes_webhooks: bool = False
    deployment: str = ""
    generates_validating: bool = True
    generates_mutating: bool = False
    events: EventSettings = field(default_factory=EventSettings)
    reports_account: str = ""
    background_account: str = ""
    cleanup_account: str = ""
    reports: ReportSettings = field(default_factory=ReportSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    shares_port: bool = False

    @property
    def followup(self) -> FollowupSettings:
        """What follows a response."""
        updates = UpdateRequestSettings(self.namespace, self.background_account)
        return FollowupSettings(self.reports, updates, self.audit)

    @property
    def leader(self) -> LeaderSettings:
        """What the leader works by."""
        names = (each.name for each in fields(LeaderSettings))
        return LeaderSettings(**{name: getattr(self, name) for name in names})

    @property
    def state(self) -> StateSettings:
        """What of the cluster is followed, and what policies may do."""
        return StateSettings(
            namespace=self.namespace,
            config_map=self.config_map,
            metrics_config_map=self.metrics_config_map,
            exceptions=self.exceptions,
            protects_managed=self.protects_managed,
            allows_http_in_namespaces=self.hosts.allows_http_in_namespaces,
            forces_ignore=self.webhooks.forces_ignore,
            background_account=self.background_account,
            stale_seconds=self.hosts.stale_seconds,
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
