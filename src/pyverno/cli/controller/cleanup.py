"""The work of `pyverno controller cleanup`: settings from flags and environment, and the process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyverno.cli.controller.runner import run_controller
from pyverno.cli.controller.services import (
    shared_values,
)
from pyverno.controllers.cleanup.controller import CleanupController, CleanupSettings
from pyverno.errors import UsageError

if TYPE_CHECKING:
    from pyverno.cli.controller.cleanupflags import CleanupFlags

# trust rows: environment

__all__ = ["cleanup_settings", "run_cleanup"]

_LEAST_INTERVAL = 1.0


def run_cleanup(flags: CleanupFlags) -> None:
    """Run until a signal; raises UsageError for unusable flags, HostError when a task fails."""
    settings = cleanup_settings(flags, os.environ)
    run_controller(flags, "cleanup", lambda access, metrics: CleanupController(access, settings, metrics))


def cleanup_settings(flags: CleanupFlags, environment: Mapping[str, str]) -> CleanupSettings:
    """Return the settings of a controller; raises UsageError for an invalid value."""
    work = flags.work
    if work.ttl_interval < _LEAST_INTERVAL:
        raise UsageError(f'invalid argument "{work.ttl_interval:g}s" for "--ttlReconciliationInterval" flag: below 1s')
    if work.max_deletions < 0:
        raise UsageError(f'invalid argument "{work.max_deletions}" for "--confirmDeletionsAbove" flag: below 0')
    return CleanupSettings(
        **shared_values(flags, environment),
        zone=_zone(environment.get("TZ") or ""),
        is_dry_run=work.is_dry_run,
        protects_managed=work.protects_managed,
        max_deletions=work.max_deletions,
        ttl_seconds=work.ttl_interval,
    )


def _zone(name: str) -> tzinfo:
    """Return the time zone of schedules; as in Kyverno's images UTC, unless TZ names another."""
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name.removeprefix(":"))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"environment variable TZ: no time zone `{name}` is known") from None
