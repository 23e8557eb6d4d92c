"""The metrics of a running controller: settings read at the start, periodic reset of counters, client queries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.queries import client_query
from pyverno.kube.gvk import GVR
from pyverno.kube.status import StatusError
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.metricsettings import MetricSettings

__all__ = ["begin_metrics", "count_queries", "log_problems", "refresh_metrics"]

_CONFIG_MAPS: Final = GVR("", "v1", "configmaps")
_NOT_FOUND: Final = 404

log = logging.getLogger("pyverno.admission")


async def begin_metrics(client: Client, name: str, namespace: str, metrics: Metrics) -> None:
    """Start counting with the settings of the ConfigMap, or defaults. Raises HostError and StatusError."""
    try:
        found = await client.get(_CONFIG_MAPS, name, namespace)
    except StatusError as error:
        if error.status != _NOT_FOUND:
            raise
        found = {}
    metrics.settings = MetricSettings.read(found.get("data") or {})
    log_problems(metrics.settings.problems)
    metrics.begin()


async def refresh_metrics(metrics: Metrics, seconds: float) -> None:
    """Reset the counters every `seconds` seconds, with the settings current at that time."""
    while True:
        await asyncio.sleep(seconds)
        metrics.begin()


def count_queries(metrics: Metrics) -> Callable[[str, str], None]:
    """Return a callback that counts the requests of a client."""

    def record_query(method: str, path: str) -> None:
        query = client_query(method, path)
        if query is not None:
            metrics.queried(*query)

    return record_query


def log_problems(problems: Iterable[str]) -> None:
    """Log the invalid settings of a ConfigMap."""
    for problem in problems:
        log.error("a setting of a ConfigMap is not valid", extra={"fields": {"problem": problem}})
