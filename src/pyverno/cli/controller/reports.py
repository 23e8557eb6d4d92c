"""The work of `pyverno controller reports`: settings from flags and environment, and the process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyverno.cli.controller.runner import run_controller
from pyverno.cli.controller.services import (
    DEFAULT_BURST,
    DEFAULT_QPS,
    host_settings,
    identity_of,
    known_words,
    namespace_of,
)
from pyverno.controllers.reports.controller import ReportsController, ReportsSettings
from pyverno.controllers.reports.evaluation import ReportFilter
from pyverno.controllers.reports.settings import ScanSettings
from pyverno.controllers.runtime.events import EventSettings
from pyverno.errors import UsageError, ValueSyntaxError
from pyverno.kube.quantity import parse_quantity
from pyverno.webhook.policyreviews import ExceptionSettings

if TYPE_CHECKING:
    from pyverno.cli.controller.reportsflags import ReportsFlags

__all__ = ["reports_settings", "run_reports"]


def run_reports(flags: ReportsFlags) -> None:
    """Run until a signal; raises UsageError for unusable flags, HostError when a task fails."""
    settings = reports_settings(flags, os.environ)
    run_controller(flags, "reports", lambda access, metrics: ReportsController(access, settings, metrics))


def reports_settings(flags: ReportsFlags, environment: Mapping[str, str]) -> ReportsSettings:
    """Return the settings of a controller; raises UsageError for an invalid value."""
    cluster, scan, results = flags.cluster, flags.scan, flags.results
    return ReportsSettings(
        namespace=namespace_of(environment),
        config_map=environment.get("INIT_CONFIG") or "kyverno",
        metrics_config_map=environment.get("METRICS_CONFIG") or "kyverno-metrics",
        identity=identity_of(environment),
        scan=ScanSettings(
            workers=scan.workers,
            interval_seconds=_interval(scan.interval),
            memory_bytes=_bytes(scan.memory),
            shown=ReportFilter(
                known_words(results.types, ReportFilter().types, "--enableReporting"),
                known_words(results.statuses, ReportFilter().statuses, "--allowedResults"),
            ),
        ),
        scans=scan.enabled,
        aggregates=results.aggregates,
        stores=results.stores,
        uses_openreports=results.uses_openreports,
        checks_definitions=results.checks_definitions,
        skips_filters=scan.skips_filters,
        validating=scan.validating,
        mutating=scan.mutating,
        workers=max(results.workers, 1),
        lease_retry=cluster.lease_retry,
        qps=cluster.qps or DEFAULT_QPS,
        burst=cluster.burst or DEFAULT_BURST,
        events_qps=cluster.events_qps or DEFAULT_QPS,
        events_burst=cluster.events_burst or DEFAULT_BURST,
        exceptions=ExceptionSettings(flags.exceptions.enabled, flags.exceptions.namespace),
        events=EventSettings(flags.events.max_queued, flags.events.omitted),
        hosts=host_settings(flags, environment, flags.images),
    )


def _interval(seconds: float) -> float:
    if seconds <= 0:
        raise UsageError("--backgroundScanInterval must be longer than 0")
    return seconds


def _bytes(text: str) -> int:
    try:
        return max(int(parse_quantity(text).value), 0)
    except ValueSyntaxError as error:
        raise UsageError(f'invalid argument "{text}" for "--scanMemory" flag: {error}') from None
