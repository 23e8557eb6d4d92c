"""Alertmanager: one alert for each result, which ends when the result is resolved.

The object is in the labels, so that each result is an alert of its own. An alert that is not resolved ends after a
day, as in Policy Reporter.
"""

from __future__ import annotations

import re
from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.notice import Notice
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.transport import Endpoint, Transport
from pyverno.ui.store.rows import as_time

__all__ = ["open_alertmanager"]

_DAY: Final = 86_400
_NOT_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")


async def open_alertmanager(transport: Transport, options: Options) -> Alertmanager:
    """Return the target of these options."""
    return Alertmanager(await Endpoint.open(transport, options, "host", "/api/v2/alerts"))


class Alertmanager:
    """One Alertmanager."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Take the address."""
        self._endpoint = endpoint

    async def send(self, delivery: Delivery) -> None:
        """Send all alerts; of a result that changed, the alert of its former status ends."""
        alerts: list[JSONObject] = []
        for notice in delivery.notices:
            if notice.before:
                alerts.append(_alert(notice, notice.before, delivery, notice.at))
            if not notice.is_resolved:
                alerts.append(_alert(notice, notice.status, delivery, notice.at + _DAY))
        await self._endpoint.send(alerts)


def _alert(notice: Notice, status: str, delivery: Delivery, end: int) -> JSONObject:
    labels = {
        "alertname": "PolicyReporterViolation",
        "cluster": notice.cluster,
        "severity": notice.severity,
        "status": status,
        "source": notice.source,
        "policy": notice.policy,
        "rule": notice.rule,
        "kind": notice.kind,
        "namespace": notice.namespace,
        "name": notice.name,
    }
    annotations = {
        **notice.properties,
        "message": notice.message,
        "category": notice.category,
        "resource": notice.resource,
        "resource_apiversion": notice.api_version,
        **delivery.custom,
    }
    start = min(notice.at, end - 1) if end == notice.at else notice.at
    return {
        "labels": {key: value for key, value in labels.items() if value},
        "annotations": {_name(key): value for key, value in annotations.items() if value},
        "startsAt": as_time(start),
        "endsAt": as_time(end),
    }


def _name(key: str) -> str:
    name = _NOT_NAME.sub("_", key) or "_"
    return f"_{name}" if name[0].isdigit() else name
