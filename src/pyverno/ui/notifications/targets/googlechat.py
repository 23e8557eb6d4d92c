"""Google Chat: incoming webhooks, with cards. Texts of widgets may hold marks of HTML, so they are escaped."""

from __future__ import annotations

from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.sinks.markup import html_text
from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.notice import clip
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.targets.lines import list_fields, one_line, split_visible, summarize
from pyverno.ui.notifications.transport import Endpoint, Transport

__all__ = ["open_google_chat"]

_MOST_SHOWN: Final = 20
_MOST_FIELDS: Final = 20


async def open_google_chat(transport: Transport, options: Options) -> GoogleChat:
    """Return the target of these options."""
    return GoogleChat(await Endpoint.open(transport, options, "webhook"))


class GoogleChat:
    """One webhook of a space."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Take the address."""
        self._endpoint = endpoint

    async def send(self, delivery: Delivery) -> None:
        """Send one card: a notice with its fields, or a list."""
        card = {"header": {"title": clip(one_line(delivery.title), 200)}, "sections": [{"widgets": _widgets(delivery)}]}
        await self._endpoint.send({"cardsV2": [{"cardId": delivery.id, "card": card}]})


def _widgets(delivery: Delivery) -> list[JSONObject]:
    shown, left = split_visible(delivery, _MOST_SHOWN)
    if len(shown) == 1 and not left:
        fields = [*list_fields(shown[0], delivery.custom)][:_MOST_FIELDS]
        return [
            {"decoratedText": {"topLabel": clip(one_line(name), 60), "text": _escape(text, 1500), "wrapText": True}}
            for name, text in fields
        ]
    rows = [_escape(summarize(each), 800) for each in shown]
    return [{"textParagraph": {"text": text}} for text in (*rows, *([f"and {left} more"] if left else []))]


def _escape(text: str, most: int) -> str:
    return html_text(clip(text, most))
