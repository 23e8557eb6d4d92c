"""The work of `pyverno controller reports`: settings from flags and environment, and the process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyverno.cli.controller.runner import run_controller
from pyverno.cli.controller.services import (
    read_words,
    shared_values,
)
from pyverno.controllers.reports.controller import ReportsController, ReportsSettings
from pyverno.controllers.reports.evaluation import ReportFilter
from pyverno.controllers.reports.settings import ScanSettings
from pyverno.errors import UsageError, ValueSyntaxError
from pyverno.kube.quantity import parse_quantity
from pyverno.webhook.policyreviews import ExceptionSettings

if TYPE_CHECKING:
    from pyverno.cli.controller.reportsflags import ReportsFlags

# trust rows: environment

__all__ = ["reports_settings", "run_reports"]


def run_reports(flags: ReportsFlags) -> None:
    """Run until a signal; raises UsageError for unusable flags, HostError when a task fails."""
    settings = reports_settings(flags, os.environ)
    run_controller(flags, "reports", lambda access, metrics: ReportsController(access, settings, metrics))


def reports_settings(flags: ReportsFlags, environment: Mapping[str, str]) -> ReportsSettings:
    """Return the settings of a controller; raises UsageError for an invalid value."""
    scan, results = flags.scan, flags.results
    return ReportsSettings(
        **shared_values(flags, environment, flags.images),
        scan=ScanSettings(
            workers=scan.workers,
            interval_seconds=_interval(scan.interval),
            memory_bytes=_bytes(scan.memory),
            shown=ReportFilter(
                read_words(results.types, ReportFilter().types, "--enableReporting"),
                read_words(results.statuses, ReportFilter().statuses, "--allowedResults"),
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
        exceptions=ExceptionSettings(flags.exceptions.enabled, flags.exceptions.namespace),
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
