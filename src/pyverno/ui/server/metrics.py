"""`/metrics`: the gauges of Policy Reporter, one series for all results that have their labels in common.

The labels are those of its mode `simple`, or those that are chosen: with `name` there is a series for every object,
which may be too many for Prometheus.

The route names namespaces and policies. Beside a login it has a port of its own (`metrics_app`); on the port of the
pages it is behind the login, as every route is, and counts what the user may see.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final

from aiohttp import web

from pyverno.errors import UsageError
from pyverno.telemetry.exposition import render_text
from pyverno.telemetry.instruments import Reading
from pyverno.ui.server.errors import errors_as_json
from pyverno.ui.server.security import add_headers, known_hosts
from pyverno.ui.store.filters import NO_FILTER
from pyverno.ui.store.pool import ReaderPool
from pyverno.ui.store.reader import Reader
from pyverno.ui.store.scope import SCOPE

__all__ = ["DETAILED", "SIMPLE", "MetricsRoute", "metrics_app", "read_address", "read_labels"]

SIMPLE: Final = ("policy", "status", "severity", "category", "source")
DETAILED: Final = ("rule", "policy", "kind", "name", "status", "severity", "category", "source")
_KNOWN: Final = frozenset((*SIMPLE, *DETAILED, "cluster"))


Readings = Callable[[], Awaitable[Iterable[Reading]]]


class MetricsRoute:
    """Handler of the route."""

    def __init__(self, readers: ReaderPool, *others: Readings, labels: Sequence[str] = SIMPLE) -> None:
        """Take the readers of the store, the source of further metrics, and the labels beside `namespace`."""
        self._readers = readers
        self._others = others
        self._labels = tuple(labels)

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the route, relative to the base path."""
        return [web.get("/metrics", self._metrics)]

    async def _metrics(self, _: web.Request) -> web.Response:
        text = await self._readers.ask(lambda reader: _render(reader, self._labels))
        for other in self._others if SCOPE.get() is None else ():  # they are about all namespaces
            text += render_text(await other())
        return web.Response(text=text, content_type="text/plain", charset="utf-8")


def metrics_app(metrics: MetricsRoute, hosts: Collection[str]) -> web.Application:
    """Return an application with this route alone; with `hosts`, requests for other host names are refused."""
    app = web.Application(middlewares=[errors_as_json, *([known_hosts(hosts)] if hosts else [])])
    app.on_response_prepare.append(add_headers)
    app.add_routes(metrics.routes())
    return app


def read_address(text: str) -> tuple[str, int]:
    """Return address and port of `--metrics-address`; raises UsageError.

    >>> read_address("[::1]:9090")
    ('::1', 9090)
    """
    address, colon, port = text.rpartition(":")
    host = address[1:-1] if address.startswith("[") and address.endswith("]") else address
    is_port = port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536
    if not (colon and host and is_port) or (":" in host and host == address):
        raise UsageError(f"--metrics-address is `{text}`: expected ADDRESS:PORT, such as 127.0.0.1:9090")
    return host, int(port)


def read_labels(words: Sequence[str]) -> Sequence[str]:
    """Return the labels of `--metrics-labels`: `simple`, `detailed`, or names; raises UsageError for an unknown one.

    >>> read_labels(["namespace", "policy"])
    ('policy',)
    """
    named = {"": SIMPLE, "simple": SIMPLE, "detailed": DETAILED}.get(",".join(words))
    if named is not None:
        return named
    for each in words:
        if each not in _KNOWN and each != "namespace":
            raise UsageError(f"unknown label `{each}`: expected simple, detailed, or {', '.join(sorted(_KNOWN))}")
    return tuple(each for each in words if each != "namespace")


def _render(reader: Reader, labels: Sequence[str]) -> str:
    named: dict[tuple[str, ...], float] = {}
    cluster: dict[tuple[str, ...], float] = {}
    for namespace, *values, count in reader.counts(NO_FILTER, ("namespace", *labels)):
        if namespace:
            named[(namespace, *values)] = count
        else:
            cluster[tuple(values)] = count
    own = tuple(labels)
    return render_text(
        (
            Reading("policy_report_result", "Open results by namespace.", "gauge", ("namespace", *own), named),
            Reading("cluster_policy_report_result", "Open results without a namespace.", "gauge", own, cluster),
        )
    )
