"""The flags of `pyverno controller reports`: names, defaults and meanings as in Kyverno, if it has the flag."""

from __future__ import annotations

from dataclasses import dataclass

from pyverno.cli.args.records import group_of, number, seconds, switch, text
from pyverno.cli.controller.groups import (
    CallFlags,
    ClusterFlags,
    EventFlags,
    ExceptionFlags,
    HealthFlags,
    LogFlags,
    MetricFlags,
    ProfilingFlags,
    ReportedResultFlags,
    RightsFlags,
    TracingFlags,
    UnusedSigstoreFlags,
)
from pyverno.cli.controller.imageflags import CachedImageFlags

__all__ = ["ReportsFlags"]


@dataclass(frozen=True, slots=True)
class ReportsClusterFlags(ClusterFlags):
    """Access to the cluster and its rates."""

    qps: float = number(
        "--clientRateLimitQPS",
        "Requests per second to the API server; 0 means 5, the default of clients.",
        default=300.0,
    )
    burst: int = number(
        "--clientRateLimitBurst",
        "Burst of requests to the API server; 0 means 10, the default of clients.",
        default=300,
    )


@dataclass(frozen=True, slots=True)
class ScanFlags:
    """Background scans."""

    enabled: bool = switch("--backgroundScan", "Evaluate the objects that exist.", default=True)
    workers: int = number("--backgroundScanWorkers", "Number of threads that evaluate objects.", default=2)
    interval: float = seconds(
        "--backgroundScanInterval",
        "Interval in which results that depend on more than the object are evaluated again.",
        default="1h",
    )
    memory: str = text(
        "--scanMemory",
        "Memory for the compressed bodies of scanned objects, as a quantity; beyond it, bodies are read again when "
        "they are evaluated. 0 for no limit. Not a flag of Kyverno.",
        default="256Mi",
        metavar="QUANTITY",
    )
    skips_filters: bool = switch(
        "--skipResourceFilters", "Scan objects that resourceFilters of the ConfigMap exclude.", default=True
    )
    validating: bool = switch(
        "--validatingAdmissionPolicyReports",
        "Report on ValidatingAdmissionPolicies with the label reports.kyverno.io/enabled=true.",
        default=True,
    )
    mutating: bool = switch(
        "--mutatingAdmissionPolicyReports",
        "Report on MutatingAdmissionPolicies with the label reports.kyverno.io/enabled=true.",
    )


@dataclass(frozen=True, slots=True)
class ResultFlags(ReportedResultFlags):
    """Reports."""

    aggregates: bool = switch("--aggregateReports", "Merge ephemeral reports into reports.", default=True)
    workers: int = number("--aggregationWorkers", "Number of reports that are written concurrently.", default=10)
    stores: bool = switch("--policyReports", "Write reports.", default=True)
    uses_openreports: bool = switch(
        "--openreportsEnabled", "Write Reports of openreports.io instead of PolicyReports of wgpolicyk8s.io."
    )
    checks_definitions: bool = switch(
        "--reportsCRDsSanityChecks", "End at the start when the cluster does not serve reports.", default=True
    )


@dataclass(frozen=True, slots=True)
class ReportsIgnoredFlags(UnusedSigstoreFlags):
    """Flags of Kyverno without a counterpart."""

    of_admission: bool = switch(
        "--admissionReports",
        "Ephemeral reports of requests, which are merged whenever there are any.",
        default=True,
        has_effect=False,
    )
    max_reports: int = number(
        "--maxBackgroundReports",
        "Limit of ephemeral reports of scans; scans here write none.",
        default=10_000,
        has_effect=False,
    )


@dataclass(frozen=True, slots=True)
class ReportsFlags:
    """All flags of the reports controller, in the groups of its help.

    >>> ReportsFlags().scan.workers
    2
    """

    cluster: ReportsClusterFlags = group_of("Cluster", ReportsClusterFlags)
    scan: ScanFlags = group_of("Background scan", ScanFlags)
    results: ResultFlags = group_of("Reports", ResultFlags)
    exceptions: ExceptionFlags = group_of("Exceptions", ExceptionFlags)
    rights: RightsFlags = group_of("Permissions of policies", RightsFlags)
    calls: CallFlags = group_of("Calls of rules", CallFlags)
    images: CachedImageFlags = group_of("Images", CachedImageFlags)
    events: EventFlags = group_of("Events", EventFlags)
    health: HealthFlags = group_of("Health", HealthFlags)
    logs: LogFlags = group_of("Logs", LogFlags)
    metrics: MetricFlags = group_of("Metrics", MetricFlags)
    tracing: TracingFlags = group_of("Tracing", TracingFlags)
    profiling: ProfilingFlags = group_of("Profiling", ProfilingFlags)
    ignored: ReportsIgnoredFlags = group_of("Without effect", ReportsIgnoredFlags)
