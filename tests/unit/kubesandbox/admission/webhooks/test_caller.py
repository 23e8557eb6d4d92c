"""The HTTPS client of webhooks."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from kubesandbox.admission.webhooks.caller import CallError, WebhookCaller
from kubesandbox.admission.webhooks.hooks import ClientConfig
from tests.support.admissionstage import cluster, serving


def calling(tmp_path, reply):
    """Call a webhook that answers in some way."""

    async def main():
        _, view = cluster()
        caller = WebhookCaller(view)
        async with serving(tmp_path, hook=reply) as served:
            try:
                return await caller.call(ClientConfig.of(served.client("hook")), b'{"request":{"uid":"u"}}', timeout=5)
            finally:
                await caller.close()

    return asyncio.run(main())


def test_a_closed_caller_calls_no_webhook_again():
    """A request that is under way when the server ends fails, and opens no connection that nothing closes."""

    async def main():
        caller = WebhookCaller(cluster()[1])
        await caller.close()
        await caller.call(ClientConfig.of({"url": "https://localhost:1/hook"}), b"{}", timeout=5)

    with pytest.raises(CallError, match="the server ends"):
        asyncio.run(main())


def test_an_answer_is_an_object(tmp_path):
    """The JSON object of the answer is returned as it is."""
    assert {"response": {"allowed": True}} == calling(tmp_path, lambda _: {"response": {"allowed": True}})


def test_redirections_are_not_followed(tmp_path):
    """A webhook cannot send the review, with its secrets, somewhere else."""

    def redirect(_review):
        return web.Response(status=307, headers={"Location": "https://localhost:1/elsewhere"})

    with pytest.raises(CallError, match="the server responded with the status code 307"):
        calling(tmp_path, redirect)


def test_endless_answers_are_cut_off(tmp_path):
    """An answer of more than 16 MiB is a failure."""
    with pytest.raises(CallError, match="the answer is larger than 16777216 bytes"):
        calling(tmp_path, lambda _: web.Response(body=b" " * (16 * 1024 * 1024 + 1)))


@pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"text"', b"{"])
def test_answers_that_are_no_objects_are_failures(tmp_path, body):
    """Lists, numbers and broken JSON are no reviews."""
    with pytest.raises(CallError, match="couldn't get version/kind; json parse error: "):
        calling(tmp_path, lambda _: web.Response(body=body, content_type="application/json"))
