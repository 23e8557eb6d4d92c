"""Slack: incoming webhooks, with blocks.

Texts of results are `plain_text` objects, in which Slack interprets neither mentions nor links nor marks.
"""

from __future__ import annotations

from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.sinks.characters import visible
from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.notice import Notice, clip
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.targets.lines import list_fields, one_line, split_visible, summarize
from pyverno.ui.notifications.transport import Endpoint, Transport

__all__ = ["open_slack"]

_COLORS: Final = {
    "resolved": "#2eb67d",
    "critical": "#8b0000",
    "high": "#e01e5a",
    "medium": "#ecb22e",
    "low": "#36c5f0",
    "info": "#9e9e9e",
}
_MOST_SHOWN: Final = 20
_MOST_FIELDS: Final = 10
_MOST_TEXT: Final = 1900
_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


async def open_slack(transport: Transport, options: Options) -> Slack:
    """Return the target of these options."""
    return Slack(await Endpoint.open(transport, options, "webhook"), options.text("channel"))


class Slack:
    """One webhook, and the channel that older webhooks can choose."""

    def __init__(self, endpoint: Endpoint, channel: str) -> None:
        """Take the address."""
        self._endpoint = endpoint
        self._channel = channel

    async def send(self, delivery: Delivery) -> None:
        """Send one message: a notice with its fields, or a list."""
        body: JSONObject = {
            "text": one_line(delivery.title).translate(_ESCAPED),
            "mrkdwn": False,
            "unfurl_links": False,
            "unfurl_media": False,
            "attachments": [_attachment(delivery)],
        }
        if self._channel:
            body["channel"] = self._channel
        await self._endpoint.send(body)


def _attachment(delivery: Delivery) -> JSONObject:
    shown, left = split_visible(delivery, _MOST_SHOWN)
    first = shown[0]
    heading: JSONObject = {"type": "header", "text": _plain(one_line(delivery.title), 150)}
    color = _COLORS.get("resolved" if first.is_resolved else first.severity, _COLORS["info"])
    if len(shown) == 1 and not left:
        return {"color": color, "blocks": [heading, *_details(first, delivery)]}
    rows: list[JSONObject] = [{"type": "section", "text": _plain(summarize(each), 1000)} for each in shown]
    if left:
        rows.append({"type": "context", "elements": [_plain(f"and {left} more", 100)]})
    return {"color": color, "blocks": [heading, *rows]}


def _details(notice: Notice, delivery: Delivery) -> list[JSONObject]:
    fields = [(name, text) for name, text in list_fields(notice, delivery.custom) if name != "Message"]
    blocks: list[JSONObject] = []
    for start in range(0, len(fields), _MOST_FIELDS):
        part = fields[start : start + _MOST_FIELDS]
        blocks.append({"type": "section", "fields": [_plain(f"{name}\n{text}", _MOST_TEXT) for name, text in part]})
    if notice.message:
        blocks.insert(0, {"type": "section", "text": _plain(notice.message, 2900)})
    return blocks[:45]


def _plain(text: str, most: int) -> JSONObject:
    return {"type": "plain_text", "text": clip(visible(text), most), "emoji": False}
