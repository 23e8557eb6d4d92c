"""Grafana Loki: one line of JSON for each notice, in streams by status, policy, severity, source, namespace and kind.

Names of objects and messages are in the line and no labels, because each set of labels is a stream. A line that is
sent again has the same time and text, and Loki keeps it once.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from pyverno.kube.json import JSON, JSONObject
from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.notice import Notice, clip
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.transport import Endpoint, Transport

__all__ = ["open_loki"]

_NOT_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")
_NANOSECONDS: Final = 1_000_000_000


async def open_loki(transport: Transport, options: Options) -> Loki:
    """Return the target of these options."""
    return Loki(await Endpoint.open(transport, options, "host", options.text("path") or "/loki/api/v1/push"))


class Loki:
    """One push API."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Take the address."""
        self._endpoint = endpoint

    async def send(self, delivery: Delivery) -> None:
        """Push all notices."""
        streams: dict[tuple[tuple[str, str], ...], list[JSON]] = {}
        for notice in sorted(delivery.notices, key=lambda each: each.at):
            line = orjson.dumps(notice.to_json(delivery.custom), option=orjson.OPT_SORT_KEYS).decode()
            streams.setdefault(_labels(notice, delivery), []).append([str(notice.at * _NANOSECONDS), line])
        body: JSONObject = {"streams": [{"stream": dict(labels), "values": rows} for labels, rows in streams.items()]}
        await self._endpoint.send(body)


def _labels(notice: Notice, delivery: Delivery) -> tuple[tuple[str, str], ...]:
    labels = {
        "createdBy": "pyverno",
        "cluster": notice.cluster,
        "event": notice.event,
        "status": notice.outcome,
        "policy": notice.policy,
        "rule": notice.rule,
        "severity": notice.severity,
        "category": notice.category,
        "source": notice.source,
        "namespace": notice.namespace,
        "kind": notice.kind,
    }
    for key, value in delivery.custom.items():
        name = _NOT_NAME.sub("_", key) or "_"
        labels[f"_{name}" if name[0].isdigit() else name] = value
    return tuple(sorted((key, clip(value, 250)) for key, value in labels.items() if value))
