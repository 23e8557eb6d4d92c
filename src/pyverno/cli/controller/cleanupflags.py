"""The flags of `pyverno controller cleanup`: names, defaults and meanings as in Kyverno, if it has the flag."""

from __future__ import annotations

from dataclasses import dataclass

from pyverno.cli.args.records import group_of, number, seconds, switch, text
from pyverno.cli.controller.groups import (
    CallFlags,
    ClusterFlags,
    EventFlags,
    HealthFlags,
    LogFlags,
    MetricFlags,
    ProfilingFlags,
    RightsFlags,
    TracingFlags,
    UnusedFlags,
)

__all__ = ["CleanupFlags", "CleanupWorkFlags"]


@dataclass(frozen=True, slots=True)
class CleanupWorkFlags:
    """Schedules and times to live; schedules are read in the time zone of the environment variable TZ."""

    ttl_interval: float = seconds(
        "--ttlReconciliationInterval",
        "Interval in which the kinds that may have a time to live are looked up.",
        default="1m",
    )
    is_dry_run: bool = switch("--dryRun", "Log what would be deleted, and delete nothing. Not a flag of Kyverno.")
    max_deletions: int = number(
        "--confirmDeletionsAbove",
        "Number of objects of a kind beyond which a run waits for the annotation pyverno.io/confirmed-deletions "
        "of its policy; 0 for no limit. Not a flag of Kyverno.",
        default=0,
    )
    protects_managed: bool = switch(
        "--protectManagedResources",
        "Keep objects that Kyverno manages.",
        env="FLAG_PROTECT_MANAGED_RESOURCES",
        is_toggle=True,
    )


@dataclass(frozen=True, slots=True)
class CleanupIgnoredFlags(UnusedFlags):
    """Flags of Kyverno without a counterpart; the admission controller serves the webhooks of cleanup policies."""

    dumps_payload: bool = switch("--dumpPayload", "Log requests of webhooks.", has_effect=False)
    server: str = text("--serverIP", "Address of the webhook server.", metavar="ADDRESS", has_effect=False)
    service_port: int = number("--servicePort", "Port of the webhook's service.", default=443, has_effect=False)
    server_host: str = text(
        "--cleanupServerHost", "Address of the webhook server.", metavar="ADDRESS", has_effect=False
    )
    server_port: int = number("--cleanupServerPort", "Port of the webhook server.", default=9443, has_effect=False)
    old_port: int = number("--webhookServerPort", "Port of the webhook server.", default=9443, has_effect=False)
    ca_secret: str = text("--caSecretName", "Secret of the webhook's authority.", metavar="NAME", has_effect=False)
    tls_secret: str = text("--tlsSecretName", "Secret of the webhook's certificate.", metavar="NAME", has_effect=False)
    renew_before: float = seconds(
        "--renewBefore", "Time before expiry at which it is renewed.", default="360h", has_effect=False
    )
    algorithm: str = text(
        "--tlsKeyAlgorithm", "Key algorithm of the certificate.", default="RSA", metavar="NAME", has_effect=False
    )
    others_manage: bool = switch("--disableCertManagerController", "Do not create certificates.", has_effect=False)
    removes: bool = switch("--autoDeleteWebhooks", "Delete webhooks at shutdown.", has_effect=False)


@dataclass(frozen=True, slots=True)
class CleanupFlags:
    """All flags of the cleanup controller, in the groups of its help.

    >>> CleanupFlags().work.ttl_interval
    60.0
    """

    cluster: ClusterFlags = group_of("Cluster", ClusterFlags)
    work: CleanupWorkFlags = group_of("Cleanup", CleanupWorkFlags)
    rights: RightsFlags = group_of("Permissions of policies", RightsFlags)
    calls: CallFlags = group_of("Calls of rules", CallFlags)
    events: EventFlags = group_of("Events", EventFlags)
    health: HealthFlags = group_of("Health", HealthFlags)
    logs: LogFlags = group_of("Logs", LogFlags)
    metrics: MetricFlags = group_of("Metrics", MetricFlags)
    tracing: TracingFlags = group_of("Tracing", TracingFlags)
    profiling: ProfilingFlags = group_of("Profiling", ProfilingFlags)
    ignored: CleanupIgnoredFlags = group_of("Without effect", CleanupIgnoredFlags)
