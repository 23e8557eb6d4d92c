"""The common part of the background, cleanup and reports controllers: log, access, metrics, services."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from pyverno.cli.controller.services import (
    begin_process,
    metrics_services,
    profiling_services,
    tracing_services,
)
from pyverno.cluster.access import Access
from pyverno.controllers.runtime.healthport import HealthPort
from pyverno.controllers.runtime.process import Service, run_process
from pyverno.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from pyverno.cli.controller.backgroundflags import BackgroundFlags
    from pyverno.cli.controller.cleanupflags import CleanupFlags
    from pyverno.cli.controller.reportsflags import ReportsFlags

__all__ = ["RunningController", "run_controller"]


class RunningController(Protocol):
    """A controller that a process runs."""

    def problem(self) -> str:
        """Return the reason why the controller cannot work, "" if it can."""
        ...

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set."""
        ...


def run_controller(
    flags: BackgroundFlags | CleanupFlags | ReportsFlags,
    part: str,
    make: Callable[[Access, Metrics], RunningController],
) -> None:
    """Run a controller until a signal; raises UsageError for unusable flags, HostError when a task fails."""
    access = begin_process(flags, part)
    metrics = Metrics()
    controller = make(access, metrics)
    services: list[Service] = [*metrics_services(flags, access, metrics), *profiling_services(flags, 1)]
    services.extend(tracing_services(flags, access, f"kyverno-{part}-controller"))
    if flags.health.port:
        services.append(HealthPort(controller.problem, flags.health.host, flags.health.port))
    run_process(controller.run, services)
