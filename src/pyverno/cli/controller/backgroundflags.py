"""The flags of `pyverno controller background`: names, defaults and meanings as in Kyverno, if it has the flag."""

from __future__ import annotations

from dataclasses import dataclass

from pyverno.cli.args.records import group_of, listed, number, text
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
    UnusedCleanupFlags,
)
from pyverno.cli.controller.imageflags import ImageFlags

__all__ = ["BackgroundFlags", "WorkFlags"]


@dataclass(frozen=True, slots=True)
class WorkFlags:
    """UpdateRequests and policies."""

    workers: int = number("--genWorkers", "Number of UpdateRequests that are worked on concurrently.", default=10)
    shards: int = number(
        "--updateRequestShards",
        "Number of parts of the work, 1 to 8; each part is done by one replica at a time. Not a flag of Kyverno.",
        default=4,
    )


@dataclass(frozen=True, slots=True)
class BackgroundIgnoredFlags(UnusedCleanupFlags):
    """Flags of Kyverno without a counterpart."""

    runtime_metrics: str = text(
        "--controllerRuntimeMetricsAddress",
        "Address of the metrics of controller-runtime.",
        metavar="ADDRESS",
        has_effect=False,
    )


@dataclass(frozen=True, slots=True)
class BackgroundReportFlags(ReportedResultFlags):
    """The results that become EphemeralReports."""

    types: tuple[str, ...] = listed(
        "--enableReporting",
        "Kinds of rules in reports; this controller evaluates generate and mutateExisting.",
        default="validate,mutate,mutateExisting,generate,imageVerify",
        metavar="KINDS",
    )
    max_reports: int = number("--maxBackgroundReports", "Limit of EphemeralReports in the cluster.", default=10_000)


@dataclass(frozen=True, slots=True)
class BackgroundFlags:
    """All flags of the background controller, in the groups of its help.

    >>> BackgroundFlags().work.workers
    10
    """

    cluster: ClusterFlags = group_of("Cluster", ClusterFlags)
    work: WorkFlags = group_of("UpdateRequests", WorkFlags)
    exceptions: ExceptionFlags = group_of("Exceptions", ExceptionFlags)
    rights: RightsFlags = group_of("Permissions of policies", RightsFlags)
    calls: CallFlags = group_of("Calls of rules", CallFlags)
    images: ImageFlags = group_of("Images", ImageFlags)
    events: EventFlags = group_of("Events", EventFlags)
    reports: BackgroundReportFlags = group_of("Reports", BackgroundReportFlags)
    health: HealthFlags = group_of("Health", HealthFlags)
    logs: LogFlags = group_of("Logs", LogFlags)
    metrics: MetricFlags = group_of("Metrics", MetricFlags)
    tracing: TracingFlags = group_of("Tracing", TracingFlags)
    profiling: ProfilingFlags = group_of("Profiling", ProfilingFlags)
    ignored: BackgroundIgnoredFlags = group_of("Without effect", BackgroundIgnoredFlags)
