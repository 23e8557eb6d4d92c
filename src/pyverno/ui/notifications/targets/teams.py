"""Microsoft Teams: workflows and incoming webhooks, with adaptive cards.

Texts of results are text runs, the only texts of a card in which Markdown means nothing.
"""

from __future__ import annotations

from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.notice import clip
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.targets.lines import list_fields, one_line, split_visible, summarize
from pyverno.ui.notifications.transport import Endpoint, Transport

__all__ = ["open_teams"]

_MOST_SHOWN: Final = 20
_MOST_TEXT: Final = 1000


async def open_teams(transport: Transport, options: Options) -> Teams:
    """Return the target of these options."""
    return Teams(await Endpoint.open(transport, options, "webhook"))


class Teams:
    """One webhook."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Take the address."""
        self._endpoint = endpoint

    async def send(self, delivery: Delivery) -> None:
        """Send one card: a notice with its fields, or a list."""
        card: JSONObject = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "body": [_row((one_line(delivery.title), True), size="large"), *_rows(delivery)],
        }
        attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
        await self._endpoint.send({"type": "message", "attachments": [attachment]})


def _rows(delivery: Delivery) -> list[JSONObject]:
    shown, left = split_visible(delivery, _MOST_SHOWN)
    if len(shown) == 1 and not left:
        fields = list_fields(shown[0], delivery.custom)
        return [_row((f"{one_line(name)}: ", True), (one_line(text), False)) for name, text in fields]
    rows = [_row((summarize(notice), False)) for notice in shown]
    return [*rows, _row((f"and {left} more", False))] if left else rows


def _row(*runs: tuple[str, bool], size: str = "default") -> JSONObject:
    inlines: list[JSONObject] = [
        {"type": "TextRun", "text": clip(text, _MOST_TEXT), "size": size, "weight": "bolder" if is_bold else "default"}
        for text, is_bold in runs
    ]
    return {"type": "RichTextBlock", "inlines": inlines}
