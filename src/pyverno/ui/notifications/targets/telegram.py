"""Telegram: messages of a bot to a chat, as plain text without previews of links."""

from __future__ import annotations

from typing import Final

from pyverno.errors import UsageError
from pyverno.lazyregex import regex
from pyverno.sinks.characters import visible
from pyverno.ui.notifications.delivery import Delivery, DeliveryError
from pyverno.ui.notifications.notice import clip
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.targets.lines import list_fields, one_line, split_visible, summarize
from pyverno.ui.notifications.transport import Endpoint, Transport, read_tls, read_url
from pyverno.value import replace

__all__ = ["open_telegram"]

_HOST: Final = "https://api.telegram.org"
_TOKEN: Final = regex(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,128}")
_MOST_SHOWN: Final = 20
_MOST_TEXT: Final = 4096


async def open_telegram(transport: Transport, options: Options) -> Telegram:
    """Return the target of these options; raises UsageError for a token that cannot be one."""
    token = options.required("token")
    if _TOKEN.fullmatch(token) is None:
        raise UsageError("`token` is not that of a bot, which has the form NUMBER:LETTERS")
    url = read_url("host", options.text("host") or _HOST)
    url = replace(url, path=f"{url.path.rstrip('/')}/bot{token}/sendMessage")
    headers = {"Content-Type": "application/json", **options.mapping("headers")}
    return Telegram(Endpoint(transport, url, headers, await read_tls(options)), options.required("chatId"))


class Telegram:
    """One bot in one chat."""

    def __init__(self, endpoint: Endpoint, chat: str) -> None:
        """Take the address with the token, and the chat."""
        self._endpoint = endpoint
        self._chat = chat

    async def send(self, delivery: Delivery) -> None:
        """Send one message; without `parse_mode` nothing in it is a mark."""
        body = {"chat_id": self._chat, "text": _text(delivery), "link_preview_options": {"is_disabled": True}}
        answer = (await self._endpoint.send(body)).json()
        if not isinstance(answer, dict) or answer.get("ok") is not True:
            raise DeliveryError("the bot could not send the message")


def _text(delivery: Delivery) -> str:
    shown, left = split_visible(delivery, _MOST_SHOWN)
    if len(shown) == 1 and not left:
        rows = [f"{one_line(name)}: {visible(text)}" for name, text in list_fields(shown[0], delivery.custom)]
    else:
        rows = [clip(summarize(each), 180) for each in shown]
    return clip("\n".join([one_line(delivery.title), "", *rows, *([f"and {left} more"] if left else [])]), _MOST_TEXT)
