"""Calls of services: the request, the response, and what stops a call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pyverno.cluster.access import SERVICE_ACCOUNT
from pyverno.cluster.egress import Egress, EgressSettings, Lookup
from pyverno.cluster.egressrules import EgressRules
from pyverno.engine.host import HttpCall
from pyverno.errors import HostError, UsageError
from tests.support.services import Service, names
from tests.support.webhookserver import make_certificate

OPEN = EgressRules.read(())
Play = Callable[[Egress, Service], Awaitable[None]]


def play(work: Play, service: Service | None = None, lookup: Lookup | None = None, **settings: Any) -> Service:
    """Run a scene with a local service that the rules permit."""
    service = service or Service()

    async def run() -> None:
        egress = Egress(EgressSettings(**{"rules": OPEN, "seconds": 5, **settings}), lookup or names())
        async with service:
            try:
                await work(egress, service)
            finally:
                await egress.close()

    asyncio.run(run())
    return service


def test_a_call_sends_what_the_policy_wrote() -> None:
    """Method, path, query, headers and JSON body arrive; the result has status and bytes."""

    async def work(egress: Egress, service: Service) -> None:
        call = HttpCall("POST", service.url("/a b?x=1"), {"X-Team": "blue"}, {"b": 1.0, "a": None})
        assert (200, b'{"ok": true}') == await egress.exchange(call)

    (asked,) = play(work).asked
    assert ("POST", "/a%20b?x=1", b'{"a":null,"b":1}') == (asked.method, asked.path, asked.body)
    assert "blue" == asked.headers["X-Team"]
    assert "application/json" == asked.headers["Content-Type"]
    assert "Authorization" not in asked.headers


def test_a_closed_client_calls_no_service_again() -> None:
    """A review that outlives its server gets an error."""

    async def work(egress: Egress, service: Service) -> None:
        await egress.close()
        with pytest.raises(HostError, match="the client of services is closed"):
            await egress.fetch(HttpCall("GET", service.url()))

    assert [] == play(work).asked


def test_a_get_has_no_body() -> None:
    """Data are sent with POST only."""

    async def work(egress: Egress, service: Service) -> None:
        assert {"ok": True} == await egress.fetch(HttpCall("GET", service.url(), body={"a": 1}))

    (asked,) = play(work).asked
    assert (b"", False) == (asked.body, "Content-Type" in asked.headers)


def test_headers_of_the_connection_are_left_out_and_odd_ones_refused() -> None:
    """As in Go, Host and Content-Length cannot be set; a line break in a header is an error."""

    async def work(egress: Egress, service: Service) -> None:
        odd = {"Host": "evil", "Content-Length": "1", "Proxy-Authorization": "x", "Accept-Encoding": "gzip"}
        await egress.exchange(HttpCall("GET", service.url(), odd))
        for headers in ({"X": "a\r\nY: b"}, {"X Y": "a"}, {"": "a"}, {"X:": "a"}):
            with pytest.raises(HostError, match=r"a header of the call .* is not valid"):
                await egress.exchange(HttpCall("GET", service.url(), headers))

    (asked,) = (service := play(work)).asked
    assert f"127.0.0.1:{service.port}" == asked.headers["Host"]
    assert "identity" == asked.headers["Accept-Encoding"]
    assert not {"Content-Length", "Proxy-Authorization"} & set(asked.headers)


def test_the_token_for_services_goes_along_unless_the_policy_has_its_own(tmp_path: Path) -> None:
    """The token file is read for every call, because it rotates; without the file no token is sent."""
    file = tmp_path / "token"

    async def work(egress: Egress, service: Service) -> None:
        await egress.exchange(HttpCall("GET", service.url()))
        for text in ("one\n", "two"):
            file.write_text(text)
            await egress.exchange(HttpCall("GET", service.url()))
        await egress.exchange(HttpCall("GET", service.url(), {"authorization": "Basic x"}))

    sent = [
        next((value for name, value in each.headers.items() if name.lower() == "authorization"), None)
        for each in play(work, token_file=file).asked
    ]
    assert [None, "Bearer one", "Bearer two", "Basic x"] == sent


def test_the_service_account_token_is_never_sent_to_services() -> None:
    """A process with the service account's own token file as the setting does not start."""
    with pytest.raises(UsageError, match="never sent to services"):
        EgressSettings(token_file=SERVICE_ACCOUNT / "token")


@pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False)])
def test_an_answer_may_have_so_many_bytes(size: int, fits: bool) -> None:
    """A response at the limit is accepted; one more byte is an error."""
    service = Service({"/big": lambda: web.Response(body=b"x" * size)})

    async def work(egress: Egress, service: Service) -> None:
        call = HttpCall("GET", service.url("/big"))
        if fits:
            assert size == len((await egress.exchange(call))[1])
        else:
            with pytest.raises(HostError, match="less than max allowed response length of 1000"):
                await egress.exchange(call)

    play(work, service, max_bytes=1000)


def test_an_answer_may_take_so_long_and_no_longer_than_the_review() -> None:
    """Both the flag and the deadline of the review bound the call."""
    service = Service({"/slow": _Slow})

    async def work(egress: Egress, service: Service) -> None:
        with pytest.raises(HostError, match=r"did not answer within 0\.2 seconds"):
            await egress.exchange(HttpCall("GET", service.url("/slow")))
        with pytest.raises(HostError, match=r"did not answer within 0(\.0\d*)? seconds"):
            await egress.exchange(HttpCall("GET", service.url("/slow"), deadline=time.monotonic() + 0.05))

    play(work, service, seconds=0.2)


class _Slow(web.StreamResponse):
    """Never responds."""

    async def prepare(self, request: web.BaseRequest) -> Any:
        await asyncio.Event().wait()
        return await super().prepare(request)


def test_the_status_of_an_answer_decides_and_its_text_stays_out_of_errors() -> None:
    """A status outside of 200-299 and an invalid JSON body are errors that do not repeat the response."""
    service = Service(
        {
            "/gone": lambda: web.Response(status=404, text="the password is x"),
            "/text": lambda: web.Response(text="the password is x"),
        }
    )

    async def work(egress: Egress, service: Service) -> None:
        for path, text in (("/gone", "HTTP 404"), ("/text", "the service answered with something that is no JSON")):
            with pytest.raises(HostError) as raised:
                await egress.fetch(HttpCall("GET", service.url(path)))
            assert text == raised.value.message
        assert (404, b"the password is x") == await egress.exchange(HttpCall("GET", service.url("/gone")))

    play(work, service)


def test_only_get_and_post_are_sent() -> None:
    """Other methods fail before any request is sent."""

    async def work(egress: Egress, service: Service) -> None:
        with pytest.raises(HostError, match="only GET and POST are allowed"):
            await egress.exchange(HttpCall("DELETE", service.url()))

    assert [] == play(work).asked


def test_a_bundle_is_all_that_is_trusted() -> None:
    """The certificate is verified against the bundle of the policy and the called name."""
    certificate = make_certificate()
    bundle = certificate.certificate.decode()

    async def work(egress: Egress, service: Service) -> None:
        call = HttpCall("GET", service.url(host="localhost"), ca_bundle=bundle)
        assert {"ok": True} == await egress.fetch(call)
        for url, trusted in (
            (service.url(host="localhost"), ""),
            (service.url(host="localhost"), make_certificate().certificate.decode()),
            (service.url(host="other.test"), bundle),
        ):
            with pytest.raises(HostError, match="has no valid certificate"):
                await egress.exchange(HttpCall("GET", url, ca_bundle=trusted))
        with pytest.raises(HostError, match=r"^failed to parse PEM CA bundle for APICall$"):
            await egress.exchange(HttpCall("GET", service.url(), ca_bundle="-----BEGIN CERTIFICATE-----\nx"))

    lookup = names(localhost=["127.0.0.1"], other_test=["127.0.0.1"])
    service = play(work, Service(certificate=certificate), lookup)
    assert [f"localhost:{service.port}"] == [each.headers["Host"] for each in service.asked]


def test_an_unreachable_service_is_an_error_without_addresses() -> None:
    """Refused connections and unknown names show the origin in the policy, never the resolved address."""

    async def work(egress: Egress, service: Service) -> None:
        for url in ("http://closed.test:1", "http://unknown.test"):
            with pytest.raises(HostError) as raised:
                await egress.exchange(HttpCall("GET", f"{url}/path?token=secret"))
            assert f"`{url}` cannot be reached, or does not answer as HTTP servers do" == raised.value.message

    play(work, lookup=names(closed_test=["127.0.0.1"]))
