"""Elasticsearch and OpenSearch: documents by the bulk API.

The id of a document is that of the notice, so that a repeated delivery writes the same document again. `typelessApi`
has no effect: types are gone since version 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import orjson

from pyverno.errors import UsageError
from pyverno.kube.json import JSON
from pyverno.ui.notifications.delivery import Delivery, DeliveryError
from pyverno.ui.notifications.notice import Notice
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.transport import Endpoint, Transport

__all__ = ["open_elasticsearch"]

_ROTATIONS: Final = {"daily": "-%Y.%m.%d", "none": "", "monthly": "-%Y.%m", "annually": "-%Y"}
_FORBIDDEN: Final = frozenset('\\/*?"<>| ,#:')


async def open_elasticsearch(transport: Transport, options: Options) -> Elasticsearch:
    """Return the target of these options; raises UsageError for an index that cannot exist."""
    index = options.text("index") or "policy-reporter"
    if _FORBIDDEN.intersection(index) or index != index.lower() or index[0] in "-_+.":
        raise UsageError("`index` is no name of an index")
    endpoint = await Endpoint.open(transport, options, "host", "/_bulk")
    key = options.text("apiKey")
    return Elasticsearch(endpoint, index, _ROTATIONS[options.choice("rotation", tuple(_ROTATIONS))], key)


class Elasticsearch:
    """One cluster, and the index with the form of its time."""

    def __init__(self, endpoint: Endpoint, index: str, rotation: str, key: str) -> None:
        """Take the address; `key` is an API key, or empty."""
        self._endpoint = endpoint
        self._index = index
        self._rotation = rotation
        self._key = key

    async def send(self, delivery: Delivery) -> None:
        """Write all documents; raises DeliveryError when one is refused."""
        lines: list[bytes] = []
        for notice in delivery.notices:
            lines.append(orjson.dumps({"index": {"_index": self._name(notice), "_id": notice.id}}))
            lines.append(orjson.dumps({**notice.to_json(delivery.custom), "@timestamp": notice.at * 1000}))
        headers = {"Content-Type": "application/x-ndjson"}
        if self._key:
            headers["Authorization"] = f"ApiKey {self._key}"
        reply = await self._endpoint.send(b"\n".join(lines) + b"\n", headers)
        _check(reply.json())

    def _name(self, notice: Notice) -> str:
        return f"{self._index}{datetime.fromtimestamp(notice.at, UTC).strftime(self._rotation)}"


def _check(answer: JSON) -> None:
    """Raise DeliveryError when a document is refused; it is final when all that failed would fail again."""
    if not isinstance(answer, dict) or not answer.get("errors"):
        return
    items = answer.get("items")
    outcomes = [each for item in (items if isinstance(items, list) else ()) for each in _outcomes(item)]
    statuses = [status for status in outcomes if status >= 300]
    is_final = bool(statuses) and all(400 <= status <= 499 and status != 429 for status in statuses)
    raise DeliveryError(f"{len(statuses)} documents are refused ({min(statuses, default=0)})", is_final=is_final)


def _outcomes(item: JSON) -> Iterator[int]:
    """Yield the statuses of one document, which has one action."""
    for each in item.values() if isinstance(item, dict) else ():
        status = each.get("status") if isinstance(each, dict) else None
        if isinstance(status, int):
            yield status
