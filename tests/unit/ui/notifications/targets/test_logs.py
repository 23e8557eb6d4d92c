"""Loki, Elasticsearch, Alertmanager and webhooks get what their protocols ask for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web

from pyverno.ui.notifications.delivery import DeliveryError
from pyverno.ui.notifications.notice import CHANGED, RESOLVED, Notice, notice_of
from tests.support.notifications import HOSTILE, change, deliver, notice
from tests.support.services import Asked, Service


def send(target: str, *notices: Notice, answer: dict[str, Any] | None = None, path: str = "/") -> Sequence[Asked]:
    """Return the requests that a stub got; `URL` in the target is its address."""

    async def play() -> Sequence[Asked]:
        async with Service({path: lambda: web.json_response(answer or {})}) as service:
            await deliver(f"targets: [{{{target.replace('URL', service.url('').rstrip('/'))}}}]", notices)
            return service.asked

    return asyncio.run(play())


def test_loki_gets_lines_by_stream() -> None:
    """Messages and names of objects are in the line; labels are few, and custom fields have names that Loki takes."""
    first, second = notice(name="a", message=HOSTILE), notice(name="b")
    (asked,) = send("type: loki, host: URL, username: u, password: p, customFields: {a-b: c}", first, second)
    (stream,) = json.loads(asked.body)["streams"]
    assert "/loki/api/v1/push" == asked.path
    assert "Basic dTpw" == asked.headers["Authorization"]
    assert ("c", "fail") == (stream["stream"]["a_b"], stream["stream"]["status"])
    assert "name" not in stream["stream"]
    assert ["1000000000000"] * 2 == [at for at, _ in stream["values"]]
    assert [HOSTILE, "no"] == [json.loads(line)["message"] for _, line in stream["values"]]


def test_elasticsearch_gets_documents_whose_ids_stay() -> None:
    """A repeated delivery writes the same documents; the index has the month of the change."""
    one = notice()
    target = "type: elasticsearch, host: URL, rotation: monthly, apiKey: k, typelessApi: true"
    (asked,) = send(target, one, answer={"errors": False}, path="/_bulk")
    action, document = [json.loads(line) for line in asked.body.splitlines()]
    assert {"index": {"_index": "policy-reporter-1970.01", "_id": one.id}} == action
    assert ("p", 1_000_000, "opened") == (document["policy"], document["@timestamp"], document["event"])
    assert ("ApiKey k", "application/x-ndjson") == (asked.headers["Authorization"], asked.headers["Content-Type"])


@pytest.mark.parametrize(("status", "is_final"), [(400, True), (429, False), (503, False)])
def test_a_refused_document_is_an_error_though_the_answer_is_200(status: int, *, is_final: bool) -> None:
    """The bulk API answers 200 and reports errors in the body."""
    answer = {"errors": True, "items": [{"index": {"status": status, "error": {"reason": "mapper"}}}]}
    with pytest.raises(DeliveryError) as caught:
        send("type: elasticsearch, host: URL", notice(), answer=answer, path="/_bulk")
    assert (is_final, f"1 documents are refused ({status})") == (caught.value.is_final, caught.value.message)


def test_alertmanager_ends_the_alert_that_it_knows() -> None:
    """Labels of an alert are the same when it is resolved, and the former one ends when a status changes."""
    (asked,) = send("type: alertManager, host: URL", notice(), notice(RESOLVED))
    opened, resolved = json.loads(asked.body)
    assert "/api/v2/alerts" == asked.path
    assert opened["labels"] == resolved["labels"]
    assert ("1970-01-02T00:16:40Z", "1970-01-01T00:16:40Z") == (opened["endsAt"], resolved["endsAt"])
    (asked,) = send("type: alertManager, host: URL", notice_of(change("fail", "error"), CHANGED))
    assert [("fail", "1970-01-01T00:16:40Z"), ("error", "1970-01-02T00:16:40Z")] == [
        (each["labels"]["status"], each["endsAt"]) for each in json.loads(asked.body)
    ]


def test_a_webhook_gets_policy_reporters_fields() -> None:
    """One result in a request, a list with a digest; each request has a key that stays when it is repeated."""
    one = notice(message=HOSTILE, properties={"k": "v"})  # type: ignore[arg-type]
    target = "type: webhook, webhook: URL/x, headers: {X-Token: t}, customFields: {team: a}"
    (asked,) = send(target, one)
    body = json.loads(asked.body)
    assert (HOSTILE, {"k": "v", "team": "a"}, "fail") == (body["message"], body["properties"], body["status"])
    assert {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": "team", "uid": ""} == body["resource"]
    assert ("t", "d" * 32) == (asked.headers["X-Token"], asked.headers["Idempotency-Key"])
    (asked,) = send(f"{target}, digest: 1h", one, one)
    assert 2 == len(json.loads(asked.body))


def test_splunk_gets_events_with_their_time() -> None:
    """One JSON object after the other, with the token of the collector."""
    asked = send("type: splunk, host: URL, token: t", notice(name="a", message=HOSTILE), notice(name="b"))[0]
    events = [json.loads(line) for line in asked.body.splitlines()]
    assert ("/services/collector/event", "Splunk t") == (asked.path, asked.headers["Authorization"])
    assert [(1000, HOSTILE), (1000, "no")] == [(each["time"], each["event"]["message"]) for each in events]
    (asked,) = send("type: splunk, host: URL/own/path, token: t", notice())
    assert "/own/path" == asked.path


def test_events_that_splunk_refuses_are_an_error() -> None:
    """Splunk's answer carries an error code even with status 200."""
    with pytest.raises(DeliveryError, match="the collector refuses"):
        send("type: splunk, host: URL, token: t", notice(), answer={"code": 5}, path="/services/collector/event")
