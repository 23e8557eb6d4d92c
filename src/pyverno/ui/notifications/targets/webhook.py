"""Webhooks: Policy Reporter's JSON, one result in a request, or a list where there is a digest."""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.kube.json import JSON
from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.transport import Endpoint, Transport

__all__ = ["open_webhook"]


async def open_webhook(transport: Transport, options: Options) -> Webhook:
    """Return the target of these options."""
    return Webhook(await Endpoint.open(transport, options, "webhook"))


class Webhook:
    """One address."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Take the address."""
        self._endpoint = endpoint

    async def keep_alive(self, params: Mapping[str, JSON]) -> None:
        """Send a keep-alive message to the receiver."""
        await self._endpoint.send(dict(params))

    async def send(self, delivery: Delivery) -> None:
        """Send the notices; a repeated request has the same `Idempotency-Key`."""
        items = [notice.to_json(delivery.custom) for notice in delivery.notices]
        body = items if delivery.is_digest else items[0]
        await self._endpoint.send(body, {"Idempotency-Key": delivery.id})
