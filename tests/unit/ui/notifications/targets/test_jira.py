"""Issues of Jira: one for each notice, found again by labels."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web

from pyverno.errors import UsageError
from pyverno.ui.notifications.notice import RESOLVED, Notice
from tests.support.notifications import HOSTILE, deliver, notice
from tests.support.services import Asked, Service


def send(one: Notice, *, extra: str = "", known: str = "", attempt: int = 1) -> Sequence[Asked]:
    """Return the requests that a Jira with one issue, or none, got."""
    issues = [{"key": known}] if known else []

    def found() -> web.Response:
        return web.json_response({"issues": issues})

    async def play() -> Sequence[Asked]:
        async with Service({"/rest/api/3/search/jql": found, "/rest/api/2/search": found}) as service:
            target = f"{{host: '{service.url()}', username: u, apiToken: t, projectKey: K, resolved: true{extra}}}"
            await deliver(f"target: {{jira: {target}}}", [one], attempt=attempt)
            return service.asked

    return asyncio.run(play())


def test_an_issue_is_a_document_in_which_texts_are_no_markup() -> None:
    """Version 3: texts are nodes; the summary is filled once, and what fills it is no template."""
    one = notice(message=HOSTILE, policy="{{ .result.Rule }}")
    (asked,) = send(one, extra=", labels: [l], customFields: {customfield_1: v, team: a}")
    fields: dict[str, Any] = json.loads(asked.body)["fields"]
    assert ("/rest/api/3/issue", "Basic dTp0") == (asked.path, asked.headers["Authorization"])
    assert "Pod team/a: Policy Violation: {{ .result.Rule }}" == fields["summary"]
    assert ("v", "K", "Task") == (fields["customfield_1"], fields["project"]["key"], fields["issuetype"]["name"])
    texts = {row["content"][0]["text"]: row["content"][1]["text"] for row in fields["description"]["content"]}
    assert (HOSTILE, "a") == (texts["Message: "], texts["team: "])
    assert {"l", f"result-{one.key}", "severity-high", "policy-___.result.Rule___"} < set(fields["labels"])


def test_marks_are_escaped_where_a_description_is_markup() -> None:
    """Version 2 of the API reads descriptions as markup."""
    (asked,) = send(notice(message="{noformat} [~admin] !http://x/y.png! *b*"), extra=", apiVersion: v2")
    description = json.loads(asked.body)["fields"]["description"]
    assert r"\{noformat\} \[\~admin\] \!http\://x/y.png\! \*b\*" in description


def test_a_repeated_delivery_opens_no_second_issue() -> None:
    """Its first attempt may have opened one although no answer came."""
    one = notice()
    assert ["/rest/api/3/search/jql"] == [each.path for each in send(one, known="K-1", attempt=2)]
    assert ["/rest/api/3/search/jql", "/rest/api/3/issue"] == [each.path for each in send(one, attempt=2)]


def test_a_resolved_result_is_a_comment_on_its_issue() -> None:
    """Without an issue no comment is sent."""
    one = notice(RESOLVED)
    found = send(one, known="K-1")
    assert ["/rest/api/3/search/jql", "/rest/api/3/issue/K-1/comment"] == [each.path for each in found]
    assert f'labels = "result-{one.key}" ORDER BY created DESC' == json.loads(found[0].body)["jql"]
    assert ["/rest/api/3/search/jql"] == [each.path for each in send(one)]


@pytest.mark.parametrize("template", ["{{ .result.UID }}", "{{ if .result.Policy }}x{{ end }}", "{{"])
def test_a_template_has_fields_only(template: str) -> None:
    """Other template actions would silently render differently than in Policy Reporter."""
    with pytest.raises(UsageError, match="`summaryTemplate` may only have"):
        send(notice(), extra=f", summaryTemplate: '{template}'")
