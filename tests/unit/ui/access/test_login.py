"""Logins to the pages by OpenID Connect and by a proxy, from the first request to the logout."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from pyverno.cli.ui.access import LoginOptions, build_login
from pyverno.cli.ui.run import UiOptions, serving
from pyverno.cluster.client import Client
from pyverno.errors import HostError, UsageError
from pyverno.ui.access.access import Access
from pyverno.ui.access.identity import Admission, Identity
from pyverno.ui.access.login import admit
from pyverno.ui.access.sessions import Sessions
from pyverno.ui.live import LiveUpdates
from tests.support.issuer import CLIENT, SECRET, Issuer, serve_issuer
from tests.support.uiserver import serve_ui
from tests.unit.report.test_collected import report

PUBLIC = "http://localhost"


@asynccontextmanager
async def site(folder: Path, **flags: object) -> AsyncIterator[tuple[Issuer, str, aiohttp.ClientSession]]:
    """Serve the pages behind logins at an issuer, and a browser that keeps cookies and follows nothing."""
    import yaml

    (folder / "report.yaml").write_text(yaml.safe_dump(report({"policy": "p", "rule": "r", "result": "fail"})))
    (folder / "secret").write_text(f"{SECRET}\n")
    async with serve_issuer() as issuer:
        login = LoginOptions(
            issuer=issuer.url,
            client=CLIENT,
            secret_file=str(folder / "secret"),
            public_url=PUBLIC,
            **{"username_claim": "email", "groups_claim": "groups", **flags},  # type: ignore[arg-type]
        )
        options = UiOptions(files=(str(folder / "report.yaml"),), port=0, login=login)
        async with serving(options) as url, aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            yield issuer, url, browser


async def walk(url: str, browser: aiohttp.ClientSession, *, change: str = "") -> aiohttp.ClientResponse:
    """Log in as a browser does, up to the answer of the callback; `change` is put after its address."""
    async with browser.get(f"{url}login", allow_redirects=False) as begun:
        assert 302 == begun.status, await begun.text()
        to_issuer = begun.headers["Location"]
    async with browser.get(to_issuer, allow_redirects=False) as back:
        address = back.headers["Location"]
    assert address.startswith(f"{PUBLIC}/login/callback?")
    response = await browser.get(f"{url}login/callback?{urlsplit(address).query}{change}", allow_redirects=False)
    await response.read()
    return response


def test_a_login_opens_the_pages_and_a_logout_closes_them(tmp_path: Path) -> None:
    """The pages are closed before the login and after the logout."""

    async def play() -> list[object]:
        seen: list[object] = []
        async with site(tmp_path) as (_, url, browser):
            for path in ("api/v1/results", "v2/namespaces", "api/v1/events", "api/v1/config"):
                async with browser.get(f"{url}{path}") as response:
                    seen.append(response.status)
            async with browser.get(url, allow_redirects=False) as response:
                seen.append(response.headers.get("Location"))
            response = await walk(url, browser)
            seen.append((response.status, response.headers["Location"]))
            cookie = response.headers.getall("Set-Cookie")[0]
            seen.append([each in cookie for each in ("HttpOnly", "SameSite=Lax", "Path=/")])
            async with browser.get(f"{url}api/v1/config") as response:
                seen.append((await response.json())["user"])
            async with browser.get(f"{url}api/v1/results") as response:
                seen.append((await response.json())["total"])
            async with browser.post(f"{url}logout", json={}) as response:
                seen.append(response.status)
            async with browser.get(f"{url}api/v1/results") as response:
                seen.append(response.status)
        return seen

    assert [
        *[401] * 4,
        "/login",
        (302, "/"),
        [True] * 3,
        "ann@example.org",
        1,
        200,
        401,
    ] == asyncio.run(play())


@pytest.mark.parametrize("ends", ["logout", "time"])
def test_an_open_stream_of_events_ends_with_its_session(tmp_path: Path, ends: str) -> None:
    """Otherwise a page that was left open would go on learning of results after the logout."""

    async def play() -> bytes:
        clock = [0.0]
        sessions, opened = Sessions(path="", is_secure=False, now=lambda: clock[0]), web.Response()
        sessions.open(opened, Identity("ann"))
        cookies = {name: morsel.value for name, morsel in opened.cookies.items()}
        live, admission = LiveUpdates(heartbeat_seconds=0.01), admit(sessions, Admission(), None)
        async with (
            serve_ui(tmp_path, live=live, admission=admission) as ui,
            ui.session.get(f"{ui.url}/api/v1/events", cookies=cookies) as response,
        ):
            first = await response.content.readline()
            if ends == "time":
                clock[0] = 3601.0
            else:
                sessions.close(make_mocked_request("POST", "/logout", {"Cookie": _as_header(cookies)}), web.Response())
            async with asyncio.timeout(30):
                await response.content.read()
            return first

    assert b": connected\n" == asyncio.run(play())


class _Revoking:
    """Rights of a user who sees everything until they are revoked, or nobody decides."""

    def __init__(self) -> None:
        self.scopes: list[frozenset[str] | None] = [None, None, frozenset()]

    async def scope(self, _: Identity) -> frozenset[str] | None:
        if not self.scopes:
            raise HostError("no answer")
        return self.scopes.pop(0)

    async def may(self, _: Identity, __: Access) -> bool:
        return False


def test_an_open_stream_of_events_follows_the_rights(tmp_path: Path) -> None:
    """Counts are those of all namespaces: a page that was left open shows them no longer than the rights hold."""

    async def play() -> list[object]:
        sessions, opened = Sessions(path="", is_secure=False), web.Response()
        sessions.open(opened, Identity("ann"))
        cookies = {name: morsel.value for name, morsel in opened.cookies.items()}
        live, found = LiveUpdates(), []
        async with (
            serve_ui(tmp_path, live=live, admission=admit(sessions, Admission(), _Revoking())) as ui,
            ui.session.get(f"{ui.url}/api/v1/events", cookies=cookies) as response,
        ):
            assert b": connected\n" == await response.content.readline()
            for _ in range(3):
                live.publish_counts({"fail": 1})
                async with asyncio.timeout(30):
                    while not (line := await response.content.readline()).startswith(b"data: "):
                        pass
                found.append(json.loads(line.removeprefix(b"data: "))["changes"])
        return found

    assert [{"fail": 1}, {}, {}] == asyncio.run(play())


def _as_header(cookies: Mapping[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


def test_logins_that_anybody_begins_end_none_of_another(tmp_path: Path) -> None:
    """However many: nothing of a login is kept before it ends."""

    async def play() -> int:
        async with site(tmp_path) as (_, url, browser):
            async with browser.get(f"{url}login", allow_redirects=False) as begun:
                to_issuer = begun.headers["Location"]
            async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as stranger:
                for _ in range(1200):
                    async with stranger.get(f"{url}login", allow_redirects=False) as other:
                        assert 302 == other.status
            async with browser.get(to_issuer, allow_redirects=False) as back:
                query = urlsplit(back.headers["Location"]).query
            async with browser.get(f"{url}login/callback?{query}", allow_redirects=False) as response:
                return response.status

    assert 302 == asyncio.run(play())


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state[:-1] + ("A" if state[-1] != "A" else "B"),
        lambda state: ".".join((state.split(".")[0], "99999999999", state.split(".")[2])),
        lambda state: "x" + state,
        lambda _: "..",
        lambda _: "a.1.b",
        lambda _: "a.\u0661.b",
        lambda _: "\u00e9",
    ],
)
def test_a_state_that_this_server_did_not_make_is_refused(change: Callable[[str], str], tmp_path: Path) -> None:
    """Even when the browser has a cookie with the same text."""

    async def play() -> tuple[int, str]:
        async with site(tmp_path) as (issuer, url, browser):
            async with browser.get(f"{url}login", allow_redirects=False) as begun:
                (state,) = parse_qs(urlsplit(begun.headers["Location"]).query)["state"]
            asked = len(issuer.asked)
            forged = change(state)
            headers = {"Cookie": f"pyverno_login={forged}"}
            async with (
                aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as other,
                other.get(f"{url}login/callback", params={"state": forged, "code": "c"}, headers=headers) as response,
            ):
                assert asked == len(issuer.asked)
                return response.status, (await response.json())["error"]

    status, reason = asyncio.run(play())
    assert 403 == status
    assert "log in again" in reason


def test_a_login_ends_once(tmp_path: Path) -> None:
    """The same state, with another code, is refused."""

    async def play() -> int:
        async with site(tmp_path) as (_, url, browser):
            async with browser.get(f"{url}login", allow_redirects=False) as begun:
                (state,) = parse_qs(urlsplit(begun.headers["Location"]).query)["state"]
                to_issuer = begun.headers["Location"]
            async with browser.get(to_issuer, allow_redirects=False) as back:
                query = urlsplit(back.headers["Location"]).query
            headers = {"Cookie": f"pyverno_login={state}"}
            async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), headers=headers) as both:
                statuses = []
                for _ in range(2):
                    async with both.get(f"{url}login/callback?{query}", allow_redirects=False) as response:
                        statuses.append(response.status)
                assert 302 == statuses[0]
                return statuses[1]

    assert 403 == asyncio.run(play())


def test_a_login_that_another_browser_began_is_refused(tmp_path: Path) -> None:
    """Otherwise a link could log its victim in as another user."""

    async def play() -> tuple[int, str, int]:
        async with site(tmp_path) as (_, url, browser):
            async with browser.get(f"{url}login", allow_redirects=False) as begun:
                query = parse_qs(urlsplit(begun.headers["Location"]).query)
            address = f"{url}login/callback?code=x&state={query['state'][0]}"
            async with aiohttp.ClientSession() as victim, victim.get(address) as response:
                first = (response.status, (await response.json())["error"])
            await walk(url, browser)
            again = await browser.get(address, allow_redirects=False)
            return *first, again.status

    assert (403, "this login was begun in another browser: log in again", 403) == asyncio.run(play())


@pytest.mark.parametrize(
    ("flags", "claims", "reason"),
    [
        ({}, {"email": ""}, "no claim `email` with a text"),
        ({}, {"email_verified": False}, "not verified"),
        ({}, {"aud": "another"}, "for another client"),
        ({}, {"exp": 1}, "`exp`"),
        ({"allow_groups": ("admins",)}, {}, "`ann@example.org` may not see these pages"),
        ({"allow_users": ("bob",)}, {"groups": "admins"}, "`ann@example.org` may not see these pages"),
    ],
)
def test_a_denied_login_has_a_reason(
    flags: dict[str, object], claims: dict[str, object], reason: str, tmp_path: Path
) -> None:
    """The reason is shown at the login, or at the first request after it."""

    async def play() -> str:
        async with site(tmp_path, **flags) as (issuer, url, browser):
            issuer.claims |= claims
            response = await walk(url, browser)
            if response.status == 302:
                response = await browser.get(f"{url}api/v1/results")
            assert 403 == response.status
            return str((await response.json())["error"])

    assert reason in asyncio.run(play())


@pytest.mark.parametrize("claims", [{"groups": ["x", "admins"]}, {"groups": "admins"}])
def test_a_group_opens_the_pages(claims: dict[str, object], tmp_path: Path) -> None:
    """Groups are a list, or one text."""

    async def play() -> int:
        async with site(tmp_path, allow_groups=("admins",)) as (issuer, url, browser):
            issuer.claims |= claims
            await walk(url, browser)
            async with browser.get(f"{url}api/v1/results") as response:
                return response.status

    assert 200 == asyncio.run(play())


def test_a_new_key_of_the_issuer_is_found(tmp_path: Path) -> None:
    """Keys are read again for a token that is signed with one that is not known, but not for every bad token."""

    async def play() -> tuple[int, int]:
        async with site(tmp_path) as (issuer, url, browser):
            issuer.key.name = "two"
            response = await walk(url, browser)
            return response.status, issuer.asked.count("keys")

    assert (302, 1) == asyncio.run(play())


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ({"issuer": "https://other"}, "the issuer names itself `https://other`"),
        ({"token_endpoint": "http://evil.example.org/token"}, "the issuer's `token_endpoint` is wrong"),
        ({"jwks_uri": None}, "the issuer's `jwks_uri` is wrong"),
    ],
)
def test_an_issuer_that_describes_itself_wrongly_is_no_login(
    described: dict[str, object], reason: str, tmp_path: Path
) -> None:
    """The error is a sentence for the operators of the server."""

    async def play() -> tuple[int, str]:
        async with site(tmp_path) as (issuer, url, browser):
            issuer.described = described
            async with browser.get(f"{url}login", allow_redirects=False) as response:
                return response.status, (await response.json())["error"]

    status, error = asyncio.run(play())
    assert 502 == status
    assert reason in error


PROXY = {"proxy_user_header": "X-Auth-User", "proxy_groups_header": "X-Auth-Groups"}


@pytest.mark.parametrize(
    ("peers", "headers", "status"),
    [
        (("127.0.0.0/8",), {"X-Auth-User": "ann", "X-Auth-Groups": "a, admins"}, 200),
        (("127.0.0.0/8",), {"X-Auth-User": "ann", "X-Auth-Groups": "a"}, 403),
        (("127.0.0.0/8",), {"X-Auth-Groups": "admins"}, 401),
        (("10.0.0.0/8",), {"X-Auth-User": "ann", "X-Auth-Groups": "admins"}, 403),
        (("10.0.0.0/8",), {"X-Auth-User": "ann", "X-Auth-Groups": "admins", "X-Forwarded-For": "10.0.0.1"}, 403),
    ],
)
def test_a_proxy_is_believed_from_its_own_address(
    peers: tuple[str, ...], headers: dict[str, str], status: int, tmp_path: Path
) -> None:
    """User headers from any other address are ignored."""

    async def play() -> int:
        login = LoginOptions(**PROXY, proxy_peers=peers, allow_groups=("admins",))
        (tmp_path / "r.yaml").write_text("apiVersion: wgpolicyk8s.io/v1alpha2\nkind: PolicyReport\nresults: []\n")
        async with (
            serving(UiOptions(files=(str(tmp_path / "r.yaml"),), port=0, login=login)) as url,
            aiohttp.ClientSession() as browser,
            browser.get(f"{url}api/v1/results", headers=headers) as response,
        ):
            return response.status

    assert status == asyncio.run(play())


@pytest.mark.parametrize(
    ("login", "reason"),
    [
        (LoginOptions(issuer="https://x", client="c"), "--public-url"),
        (LoginOptions(issuer="https://x", proxy_user_header="U", public_url="https://y"), "not both"),
        (LoginOptions(proxy_user_header="U"), "--proxy-peers"),
        (LoginOptions(proxy_peers=("10.0.0.0/8",)), "--proxy-user-header"),
        (LoginOptions(allow_groups=("a",)), "need a login"),
        (LoginOptions(rights="kubernetes"), "need a login"),
        (LoginOptions(issuer="https://x", public_url="https://y", allow_groups=("a",)), "--oidc-groups-claim"),
        (LoginOptions(issuer="https://x", public_url="https://y", rights_user_prefix="p"), "--oidc-username-prefix"),
    ],
)
def test_a_door_that_would_stand_open_is_an_error(login: LoginOptions, reason: str) -> None:
    """Flags that would leave the pages unprotected are refused at the start."""
    with pytest.raises(UsageError, match=reason):
        login.check()


def test_users_of_several_clusters_need_a_decision() -> None:
    """The rights of a user in one cluster say nothing about another; files have no cluster to ask."""

    async def namespaces() -> list[str]:
        return []

    async def play(count: int, rights: str) -> bool:
        flags = LoginOptions(proxy_user_header="U", proxy_peers=("127.0.0.1",), rights=rights)
        async with AsyncExitStack() as stack:
            clients = [cast(Client, object())] * count
            return build_login(flags, "", clients, namespaces, stack).middleware is not None

    for count, rights in ((0, ""), (0, "all"), (1, ""), (1, "kubernetes"), (2, "all")):
        assert asyncio.run(play(count, rights))
    for count, rights in ((2, ""), (2, "kubernetes"), (0, "kubernetes")):
        with pytest.raises(UsageError, match="give --rights all"):
            asyncio.run(play(count, rights))


@pytest.mark.parametrize(
    "url", ["http://login.example.org", "https://", "ftp://x", "login.example.org", "https://u:p@x"]
)
def test_an_issuer_without_https_is_refused(url: str, tmp_path: Path) -> None:
    """Tokens and codes must not be read on the way."""

    async def play() -> None:
        login = LoginOptions(issuer=url, client="c", public_url="https://policy.example.org")
        (tmp_path / "r.yaml").write_text("apiVersion: wgpolicyk8s.io/v1alpha2\nkind: PolicyReport\nresults: []\n")
        async with serving(UiOptions(files=(str(tmp_path / "r.yaml"),), port=0, login=login)):
            pass

    with pytest.raises(UsageError, match="https://"):
        asyncio.run(play())


@pytest.mark.parametrize(
    ("path", "is_secure", "prefix"), [("", True, "__Host-"), ("/policy", True, "__Secure-"), ("", False, "")]
)
def test_no_other_host_can_set_the_cookie_of_a_session(path: str, is_secure: bool, prefix: str) -> None:
    """Browsers refuse a name with such a prefix from other hosts of the domain and without HTTPS."""
    sessions, opened, closed = Sessions(path=path, is_secure=is_secure), web.Response(), web.Response()
    sessions.open(opened, Identity("me"))
    name = f"{prefix}pyverno_session"
    cookie = opened.cookies[name]
    assert (path or "/", is_secure, "") == (cookie["path"], bool(cookie["secure"]), cookie["domain"])
    request = make_mocked_request("GET", "/", {"Cookie": f"{name}={cookie.value}"})
    other = make_mocked_request("GET", "/", {"Cookie": f"x{name}={cookie.value}"})
    assert (True, False) == (sessions.is_known(request), sessions.is_known(other))
    sessions.close(request, closed)
    assert (False, "0", bool(prefix)) == (
        sessions.is_known(request),
        closed.cookies[name]["max-age"],
        bool(closed.cookies[name]["secure"]),
    )
