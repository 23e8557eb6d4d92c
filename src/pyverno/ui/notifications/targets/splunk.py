"""Splunk: events by its HTTP Event Collector."""

from __future__ import annotations

from typing import Final

import orjson

from pyverno.ui.notifications.delivery import Delivery, DeliveryError
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.transport import Endpoint, Transport
from pyverno.value import replace

__all__ = ["open_splunk"]

_PATH: Final = "/services/collector/event"


async def open_splunk(transport: Transport, options: Options) -> Splunk:
    """Return the target of these options; a `host` without a path gets that of the collector."""
    endpoint = await Endpoint.open(transport, options, "host")
    if endpoint.url.path in ("", "/"):
        endpoint.url = replace(endpoint.url, path=_PATH)
    return Splunk(endpoint, options.required("token"))


class Splunk:
    """One collector."""

    def __init__(self, endpoint: Endpoint, token: str) -> None:
        """Take the address and the token."""
        self._endpoint = endpoint
        self._token = token

    async def send(self, delivery: Delivery) -> None:
        """Send all events at once; raises DeliveryError when the collector refuses them."""
        events = [
            {
                "time": notice.at,
                "source": "pyverno",
                "sourcetype": "_json",
                "event": notice.to_json(delivery.custom),
            }
            for notice in delivery.notices
        ]
        body = b"\n".join(orjson.dumps(each) for each in events)
        answer = (await self._endpoint.send(body, {"Authorization": f"Splunk {self._token}"})).json()
        if not isinstance(answer, dict) or answer.get("code", 0) != 0:
            raise DeliveryError("the collector refuses the events")
