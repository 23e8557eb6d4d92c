"""The work of `pyverno controller background`: settings from flags and environment, and the process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyverno.cli.controller.runner import run_controller
from pyverno.cli.controller.services import (
    namespace_of,
    read_words,
    shared_values,
)
from pyverno.controllers.background.controller import BackgroundController, BackgroundSettings
from pyverno.controllers.background.resultreports import ResultReportSettings
from pyverno.errors import UsageError, ValueSyntaxError
from pyverno.install.background import SHARD_LEASES
from pyverno.kube.time.duration import parse_duration
from pyverno.webhook.policyreviews import ExceptionSettings

if TYPE_CHECKING:
    from pyverno.cli.controller.backgroundflags import BackgroundFlags

# trust rows: environment

__all__ = ["background_settings", "run_background"]

_ACCOUNT = "kyverno-background-controller"
_NANOSECONDS = 1_000_000_000


def run_background(flags: BackgroundFlags) -> None:
    """Run until a signal; raises UsageError for unusable flags, HostError when a task fails."""
    settings = background_settings(flags, os.environ)
    run_controller(flags, "background", lambda access, metrics: BackgroundController(access, settings, metrics))


def background_settings(flags: BackgroundFlags, environment: Mapping[str, str]) -> BackgroundSettings:
    """Return the settings of a controller; raises UsageError for an invalid value."""
    namespace, work = namespace_of(environment), flags.work
    if not 1 <= work.shards <= SHARD_LEASES:
        expected = f"1 to {SHARD_LEASES}"
        raise UsageError(f'invalid argument "{work.shards}" for "--updateRequestShards" flag: expected {expected}')
    account = environment.get("KYVERNO_SERVICEACCOUNT_NAME") or _ACCOUNT
    return BackgroundSettings(
        **shared_values(flags, environment, flags.images),
        account=f"system:serviceaccount:{namespace}:{account}",
        workers=work.workers,
        shards=work.shards,
        scan_seconds=_scan_seconds(environment),
        exceptions=ExceptionSettings(flags.exceptions.enabled, flags.exceptions.namespace),
        reports=ResultReportSettings(
            read_words(flags.reports.types, ResultReportSettings().types, "--enableReporting"),
            read_words(flags.reports.statuses, ResultReportSettings().statuses, "--allowedResults"),
            flags.reports.max_reports,
        ),
    )


def _scan_seconds(environment: Mapping[str, str]) -> float:
    """Return the interval in which policies are applied again, from the environment as in Kyverno."""
    written = environment.get("BACKGROUND_SCAN_INTERVAL") or "1h"
    try:
        return parse_duration(written) / _NANOSECONDS
    except ValueSyntaxError as error:
        raise UsageError(f"environment variable BACKGROUND_SCAN_INTERVAL: {error}") from None
