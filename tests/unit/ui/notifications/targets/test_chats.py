"""Chats get messages in which nothing of a result is interpreted."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from pyverno.errors import UsageError
from pyverno.sinks.characters import visible
from pyverno.ui.notifications.delivery import DeliveryError
from pyverno.ui.notifications.notice import RESOLVED, Notice
from tests.support.notifications import HOSTILE, deliver, notice
from tests.support.services import Service


def send(kind: str, *notices: Notice, extra: str = "") -> Any:
    """Return the JSON that a webhook of a kind got."""

    async def play() -> Any:
        async with Service() as service:
            await deliver(f"targets: [{{type: {kind}, webhook: '{service.url('/hook')}'{extra}}}]", notices)
            (asked,) = service.asked
            assert ("POST", "/hook") == (asked.method, asked.path)
            return json.loads(asked.body)

    return asyncio.run(play())


def walk(value: Any) -> list[dict[str, Any]]:
    """Return every object inside a value."""
    if isinstance(value, dict):
        return [value, *(each for child in value.values() for each in walk(child))]
    return [each for child in value for each in walk(child)] if isinstance(value, list) else []


def test_slack_texts_of_results_are_plain() -> None:
    """Blocks hold `plain_text` alone; the line for devices that show none is escaped and no markup."""
    body = send("slack", notice(message=HOSTILE, policy="<!here>"), extra=", channel: '#a'")
    objects = [each for each in walk(body["attachments"]) if "text" in each and isinstance(each["text"], str)]
    assert {"plain_text"} == {each["type"] for each in objects}
    assert any(visible(HOSTILE) == each["text"] for each in objects)
    assert (False, "#a") == (body["mrkdwn"], body["channel"])
    assert "fail: &lt;!here&gt; on Pod team/a" == body["text"]


def test_slack_lists_what_comes_together() -> None:
    """Twenty rows and the number of the others, the most severe first, resolved ones last."""
    many = [notice(name=f"a{number}", severity="low") for number in range(24)]
    body = send("slack", notice(RESOLVED, name="gone"), *many, notice(name="worst", severity="critical"))
    rows = [each["text"]["text"] for each in walk(body) if each.get("type") == "section"]
    assert "policy results: 25 new, 1 resolved" == body["text"]
    assert (20, "fail [critical] p/r: Pod team/worst — no") == (len(rows), rows[0])
    assert "and 6 more" in json.dumps(body)


def test_teams_texts_of_results_are_runs() -> None:
    """Text runs are the only texts of a card without Markdown; a message cannot add a row."""
    body = send("teams", notice(message=HOSTILE))
    (card,) = [each["content"] for each in body["attachments"]]
    assert {"RichTextBlock"} == {each["type"] for each in card["body"]}
    assert {"TextRun"} == {run["type"] for each in card["body"] for run in each["inlines"]}
    (message,) = [each["inlines"] for each in card["body"] if each["inlines"][0]["text"] == "Message: "]
    assert HOSTILE.replace("\r\n", " ") == message[1]["text"]


def test_discord_marks_of_results_are_escaped() -> None:
    """Text of a result creates no mention, link or formatting."""
    body = send("discord", notice(message=HOSTILE))
    (embed,) = body["embeds"]
    assert ("", {"parse": []}) == (body["content"], body["allowed_mentions"])
    assert r"\[x\]\(https\://evil\.example\) \@everyone" in embed["description"]
    assert r"\<\!channel\>" in embed["description"]


@pytest.mark.parametrize("kind", ["slack", "teams", "discord"])
def test_a_message_stays_within_the_limits_of_a_chat(kind: str) -> None:
    """Texts of any length, with marks only, are cut and sent."""
    long = notice(
        message="*" * 100_000, policy="_" * 5000, rule="r" * 5000, properties={f"k{n}": "*" * 9 for n in range(99)}
    )  # type: ignore[arg-type]
    body = send(kind, *[long] * 3)
    assert len(json.dumps(body)) < 30_000
    assert all(len(each["description"]) <= 4096 for each in walk(body) if "description" in each)
    single = send(kind, long)
    assert all(len(each.get("blocks", [])) <= 50 for each in walk(single))
    assert all(len(each.get("fields", [])) <= 25 for each in walk(single))


@pytest.mark.parametrize(
    ("status", "is_final"), [(404, True), (410, True), (302, True), (403, False), (429, False), (503, False)]
)
def test_what_may_succeed_later_is_not_final(status: int, *, is_final: bool) -> None:
    """An error names the origin, and not the path, which is the secret of a webhook."""
    from aiohttp import web

    async def play() -> DeliveryError:
        answer = lambda: web.Response(status=status, headers={"Retry-After": "7", "Location": "/x"})  # noqa: E731
        async with Service({"/services/T0/S3CRET": answer}) as service:
            with pytest.raises(DeliveryError) as caught:
                await deliver(f"target: {{slack: {{webhook: '{service.url('/services/T0/S3CRET')}'}}}}", [notice()])
            return caught.value

    error = asyncio.run(play())
    assert is_final == error.is_final
    assert "S3CRET" not in str(error)
    assert "127.0.0.1" in str(error)


def test_google_chat_texts_of_results_are_escaped() -> None:
    """Widgets read marks of HTML; the heading is plain."""
    body = send("googleChat", notice(message=HOSTILE))
    texts = [each["text"] for each in walk(body) if "topLabel" in each]
    assert any("&lt;script&gt;" in text for text in texts)
    assert not [text for text in texts if "<" in text]


def test_google_chat_lists_what_comes_together() -> None:
    """Twenty rows and the number of the others."""
    body = send("googleChat", *(notice(name=f"a{number}") for number in range(22)))
    assert 21 == len([each for each in walk(body) if "textParagraph" in each])
    assert "policy results: 22 new" == body["cardsV2"][0]["card"]["header"]["title"]


def test_telegram_sends_plain_text_to_the_chat_of_a_bot() -> None:
    """No mode that reads marks, no previews of links; an answer that is not `ok` fails."""

    async def play(answer: dict[str, Any]) -> Any:
        path = "/bot1:abc_D/sendMessage"
        async with Service({path: lambda: web.json_response(answer)}) as service:
            target = f"targets: [{{type: telegram, host: '{service.url('')}', token: '1:abc_D', chatId: '-7'}}]"
            await deliver(target, [notice(message=HOSTILE)])
            (asked,) = service.asked
            assert path == asked.path
            return json.loads(asked.body)

    body = asyncio.run(play({"ok": True}))
    assert {"chat_id", "text", "link_preview_options"} == set(body)
    assert ("-7", True) == (body["chat_id"], "<script>" in body["text"])
    with pytest.raises(DeliveryError, match="could not send"):
        asyncio.run(play({"ok": False}))


@pytest.mark.parametrize("token", ["abc", "1:a/../b", "1:a?b", "1:a b"])
def test_the_token_of_a_bot_is_nothing_else(token: str) -> None:
    """It becomes a part of the address, and is in no error."""
    with pytest.raises(UsageError, match="`token` is not that of a bot") as caught:
        asyncio.run(deliver(f"targets: [{{type: telegram, token: '{token}', chatId: '1'}}]", [notice()]))
    assert token not in str(caught.value)
