"""`/metrics`: the gauges of Policy Reporter, one series for all results that have their labels in common.

The labels are those of its mode `simple`: a series for every object would be too many for Prometheus.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from aiohttp import web

from pyverno.telemetry.exposition import render_text
from pyverno.telemetry.instruments import Reading
from pyverno.ui.store.filters import NO_FILTER
from pyverno.ui.store.pool import ReaderPool
from pyverno.ui.store.reader import Reader

__all__ = ["MetricsRoute"]

_LABELS: Final = ("policy", "status", "severity", "category", "source")


Readings = Callable[[], Awaitable[Iterable[Reading]]]


class MetricsRoute:
    """Handler of the route."""

    def __init__(self, readers: ReaderPool, *others: Readings) -> None:
        """Take the readers of the store, and what gives further metrics."""
        self._readers = readers
        self._others = others

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the route, relative to the base path."""
        return [web.get("/metrics", self._metrics)]

    async def _metrics(self, _: web.Request) -> web.Response:
        text = await self._readers.ask(_render)
        for other in self._others:
            text += render_text(await other())
        return web.Response(text=text, content_type="text/plain", charset="utf-8")


def _render(reader: Reader) -> str:
    named: dict[tuple[str, ...], float] = {}
    cluster: dict[tuple[str, ...], float] = {}
    for namespace, *labels, count in reader.counts(NO_FILTER, ("namespace", *_LABELS)):
        if namespace:
            named[(namespace, *labels)] = count
        else:
            cluster[tuple(labels)] = count
    return render_text(
        (
            Reading("policy_report_result", "Open results by namespace.", "gauge", ("namespace", *_LABELS), named),
            Reading("cluster_policy_report_result", "Open results without a namespace.", "gauge", _LABELS, cluster),
        )
    )
