"""Discord: webhooks, with embeds. Marks in texts of results are escaped, and mention no member."""

from __future__ import annotations

import re
from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.notice import clip
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.targets.lines import list_fields, one_line, split_visible, summarize
from pyverno.ui.notifications.transport import Endpoint, Transport

__all__ = ["open_discord"]

_COLORS: Final = {"critical": 0x8B0000, "high": 0xE01E5A, "medium": 0xECB22E, "low": 0x36C5F0}
_RESOLVED: Final = 0x2EB67D
_OTHER: Final = 0x9E9E9E
_MARKS: Final = re.compile(r"([\\*_~`|<>@#:\[\]()\-+.!])")
_MOST_SHOWN: Final = 20
_MOST_FIELDS: Final = 20
_MOST_DESCRIPTION: Final = 3500


async def open_discord(transport: Transport, options: Options) -> Discord:
    """Return the target of these options."""
    return Discord(await Endpoint.open(transport, options, "webhook"))


class Discord:
    """One webhook."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Take the address."""
        self._endpoint = endpoint

    async def send(self, delivery: Delivery) -> None:
        """Send one message: a notice with its fields, or a list."""
        await self._endpoint.send({"content": "", "allowed_mentions": {"parse": []}, "embeds": [_embed(delivery)]})


def _embed(delivery: Delivery) -> JSONObject:
    shown, left = split_visible(delivery, _MOST_SHOWN)
    first = shown[0]
    embed: JSONObject = {
        "title": _escape(delivery.title, 250),
        "color": _RESOLVED if first.is_resolved else _COLORS.get(first.severity, _OTHER),
    }
    if len(shown) == 1 and not left:
        fields = [each for each in list_fields(first, delivery.custom) if each[0] != "Message"][:_MOST_FIELDS]
        # an embed has 6000 characters in all
        embed["fields"] = [
            {"name": _escape(name, 60), "value": _escape(text, 160), "inline": True} for name, text in fields
        ]
        embed["description"] = _escape(first.message, 1200)
        return embed
    rows = [_escape(summarize(each), _MOST_DESCRIPTION // _MOST_SHOWN - 3) for each in shown]
    embed["description"] = "\n".join([*rows, *([f"and {left} more"] if left else [])])
    return embed


def _escape(text: str, most: int) -> str:
    """Return a text of at most so many characters in which nothing is a mark.

    >>> _escape("@everyone [x](https://a)", 100)
    '\\\\@everyone \\\\[x\\\\]\\\\(https\\\\://a\\\\)'
    """
    found = _MARKS.sub(r"\\\1", clip(one_line(text), most))
    if len(found) > most:
        # a cut must not separate a mark from its escape
        found = _MARKS.sub(r"\\\1", clip(one_line(text), most // 2))
    return found
