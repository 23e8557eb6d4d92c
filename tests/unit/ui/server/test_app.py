"""The HTTP server, as browsers and scripts use it."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from pyverno.ui.live import LiveUpdates
from pyverno.ui.server.security import CONTENT_SECURITY_POLICY
from pyverno.ui.server.staticfiles import web_root
from tests.support.uiserver import UiServer, serve_ui
from tests.unit.ui.store.samples import report, result


def test_every_response_has_the_security_headers(tmp_path: Path) -> None:
    """Pages, files, answers, errors and the event stream all have them."""

    async def play() -> None:
        async with serve_ui(tmp_path) as ui:
            for path in (
                "/",
                "/static/style.css",
                "/api/v1/results",
                "/api/v1/results?x=1",
                "/nothing",
                "/api/v1/events",
            ):
                async with ui.session.get(f"{ui.url}{path}") as response:
                    assert CONTENT_SECURITY_POLICY == response.headers["Content-Security-Policy"], path
                    assert "nosniff" == response.headers["X-Content-Type-Options"]

    asyncio.run(play())


def test_other_sites_cannot_read_or_change_anything(tmp_path: Path) -> None:
    """A name that resolves to this machine, a form, and a script of another origin are refused."""

    async def status(ui: UiServer, method: str, path: str, headers: dict[str, str], data: str = "{}") -> int:
        async with ui.session.request(method, f"{ui.url}{path}", headers=headers, data=data) as response:
            return response.status

    async def play() -> None:
        async with serve_ui(tmp_path) as ui:
            as_json = {"Content-Type": "application/json"}
            assert 421 == await status(ui, "GET", "/api/v1/results", {"Host": "evil.example"})
            assert 421 == await status(ui, "POST", "/api/v1/review", {"Host": "evil.example:80", **as_json})
            assert 403 == await status(ui, "POST", "/api/v1/review", {"Content-Type": "text/plain"})
            assert 403 == await status(ui, "POST", "/api/v1/review", {"Origin": "https://evil.example", **as_json})
            assert 403 == await status(ui, "POST", "/api/v1/review", {"Origin": "null", **as_json})
            assert 200 == await status(ui, "POST", "/api/v1/review", {"Origin": ui.url, **as_json})

    asyncio.run(play())


def test_bad_requests_are_one_clear_error(tmp_path: Path) -> None:
    """As JSON, with the word at fault, and never with a traceback."""

    async def play() -> None:
        async with serve_ui(tmp_path) as ui:
            for path, word in (
                ("results?staus=fail", "staus"),
                ("results?limit=many", "limit"),
                ("results?limit=100000000", "limit"),
                ("results?cursor=x", "cursor"),
                ("results?order=best", "best"),
                ("facets?fields=name", "name"),
                ("summary?by=name", "name"),
                ("export?format=exe", "exe"),
                ("trend?kind=Pod", "history is kept"),
            ):
                assert word in (await ui.get(f"/api/v1/{path}", status=400))["error"], path
            for path in ("results/1", "results/x", "resources/7", "results/99999999999999999999"):
                assert "error" in await ui.get(f"/api/v1/{path}", status=404)
            for data in (b"{", b"[]", b"\xff", b"9"):
                headers = {"Content-Type": "application/json"}
                async with ui.session.post(f"{ui.url}/api/v1/review", data=data, headers=headers) as response:
                    assert 400 == response.status
                    assert "error" in await response.json()

    asyncio.run(play())


def test_pages_work_below_any_path(tmp_path: Path) -> None:
    """Addresses of files and of the API are relative; the path without its slash leads to it."""

    async def play() -> None:
        async with serve_ui(tmp_path, base_path="/x/y") as ui:
            async with ui.session.get(f"{ui.url}/") as response:
                page = await response.text()
            for address in re.findall(r'(?:href|src)="([^"#][^"]*)"', page):
                if address.startswith("data:"):
                    continue
                assert not address.startswith(("/", "http")), address
                async with ui.session.get(f"{ui.url}/{address}") as response:
                    assert 200 == response.status, address
            async with ui.session.get(ui.url, allow_redirects=False) as response:
                assert (308, "/x/y/") == (response.status, response.headers["Location"])

    asyncio.run(play())


def test_pages_fetch_nothing_from_elsewhere() -> None:
    """No address of another host is in any file, but in comments and names of XML."""
    for path in web_root().rglob("*"):
        if path.suffix in {".html", ".js", ".css"} and "vendor" not in path.parts:
            text = path.read_text().replace("http://www.w3.org/2000/svg", "")
            assert not re.findall(r"https?://|//[a-z]+\.[a-z]+/", text), path
            assert not re.findall(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
            ), path


def test_files_are_sent_once(tmp_path: Path) -> None:
    """A browser that has a file gets 304, and one that reads gzip gets less."""

    async def play() -> None:
        async with serve_ui(tmp_path) as ui:
            async with ui.session.get(f"{ui.url}/static/style.css") as response:
                tag, encoding = response.headers["ETag"], response.headers["Content-Encoding"]
            async with ui.session.get(f"{ui.url}/static/style.css", headers={"If-None-Match": tag}) as response:
                assert (304, "gzip") == (response.status, encoding)

    asyncio.run(play())


def test_what_the_page_names_is_kept_for_good(tmp_path: Path) -> None:
    """The folder name is the digest of all files, so only the page itself is revalidated."""

    async def play() -> list[str]:
        found = []
        async with serve_ui(tmp_path) as ui:
            async with ui.session.get(f"{ui.url}/") as response:
                found.append(response.headers["Cache-Control"])
                names = re.findall(r'(?:href|src)="(static/[^"]+)"', await response.text())
            for name in (*names, names[-1].replace("app.js", "pages/results.js")):
                async with ui.session.get(f"{ui.url}/{name}") as response:
                    assert 200 == response.status, name
                    found.append(response.headers["Cache-Control"])
        return found

    assert ["no-cache", *["public, max-age=31536000, immutable"] * 3] == asyncio.run(play())


def test_what_a_user_sees_is_kept_by_no_cache(tmp_path: Path) -> None:
    """A cache between, or a browser that several persons use, would show it to others, and after the logout."""

    async def play() -> set[str]:
        found = set()
        async with serve_ui(tmp_path) as ui:
            for path in ("results", "summary", "export?format=csv", "config", "no-such-page"):
                async with ui.session.get(f"{ui.url}/api/v1/{path}") as response:
                    found.add(response.headers["Cache-Control"])
        return found

    assert {"no-store"} == asyncio.run(play())


def test_files_outside_of_the_folder_do_not_exist(tmp_path: Path) -> None:
    """Encoded and relative paths do not leave the folder."""

    async def play() -> None:
        async with serve_ui(tmp_path) as ui:
            for path in ("../pyproject.toml", "%2e%2e/pyproject.toml", "..%2fpyproject.toml", "//etc/passwd", "js", ""):
                async with ui.session.get(f"{ui.url}/static/{path}") as response:
                    assert 404 == response.status, path

    asyncio.run(play())


def test_open_pages_learn_of_changes(tmp_path: Path) -> None:
    """Within one message, which holds counts and no result."""

    async def play() -> None:
        async with serve_ui(tmp_path) as ui, ui.session.get(f"{ui.url}/api/v1/events") as response:
            assert b": connected\n" == await response.content.readline()
            await ui.feed.write([report(result(message="secret"), result("q", status="pass"))])
            lines = [await response.content.readline() for _ in range(4)]
            (data,) = [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]
            assert {"number": 1, "changes": {"fail": 1, "pass": 1}} == json.loads(data)

    asyncio.run(play())


def test_a_page_can_tell_whether_it_missed_a_change(tmp_path: Path) -> None:
    """The configuration has the number of the latest change, by which a page that connects late loads again."""

    async def play() -> None:
        async with serve_ui(tmp_path, live=LiveUpdates(number=7)) as ui:
            assert 7 == (await ui.get("/api/v1/config"))["number"]
            await ui.feed.write([report(result())])
            assert 8 == (await ui.get("/api/v1/config"))["number"]

    asyncio.run(play())


def test_a_quiet_stream_of_events_sends_comments(tmp_path: Path) -> None:
    """Proxies close silent connections; a page ignores comments, and still gets the next message."""

    async def play() -> tuple[list[bytes], bytes]:
        live = LiveUpdates(heartbeat_seconds=0.01)
        async with serve_ui(tmp_path, live=live) as ui, ui.session.get(f"{ui.url}/api/v1/events") as response:
            quiet = [await response.content.readline() for _ in range(6)]
            live.publish_counts({"fail": 1})
            while (line := await response.content.readline()) in (b": still here\n", b"\n"):
                pass
            return quiet, line

    assert ([b": connected\n", b"\n", *2 * [b": still here\n", b"\n"]], b"id: 1\n") == asyncio.run(play())


def test_a_page_that_is_closed_is_no_fault(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its stream of events ends with the next message, and the log stays empty."""

    async def play() -> None:
        async with serve_ui(tmp_path) as ui:
            async with ui.session.get(f"{ui.url}/api/v1/events") as response:
                assert b": connected\n" == await response.content.readline()
                response.close()
            await ui.get("/api/v1/config")
            await ui.feed.write([report(result())])
            await ui.get("/api/v1/config")

    asyncio.run(play())
    assert [] == [record.getMessage() for record in caplog.records if record.name == "pyverno.ui"]


def test_readiness_gives_the_reason_why_results_may_be_old(tmp_path: Path) -> None:
    """The page shows the same reason."""

    async def play() -> None:
        async with serve_ui(tmp_path, problems=["policyreports are not known yet"]) as ui:
            async with ui.session.get(f"{ui.url}/ready") as response:
                assert (503, "policyreports are not known yet\n") == (response.status, await response.text())
            assert ["policyreports are not known yet"] == (await ui.get("/api/v1/config"))["problems"]

    asyncio.run(play())


@pytest.mark.parametrize("form", ["csv", "json", "html", "sarif", "junit", "markdown", "yaml"])
def test_exports_hold_the_selected_results(form: str, tmp_path: Path) -> None:
    """An export holds exactly the selected results."""

    async def play() -> None:
        async with serve_ui(tmp_path) as ui:
            await ui.feed.write([report(result("chosen", message="<b>no"), result("other", status="pass"))])
            async with ui.session.get(f"{ui.url}/api/v1/export?format={form}&status=fail") as response:
                text = await response.text()
                assert response.headers["Content-Disposition"].startswith("attachment")
            assert "chosen" in text
            assert "other" not in text
            if form in ("html", "junit", "markdown"):
                assert "<b>no" not in text

    asyncio.run(play())


def test_results_can_be_read_page_by_page(tmp_path: Path) -> None:
    """Facets, resources and history have routes, too."""

    async def play() -> None:
        async with serve_ui(tmp_path) as ui:
            await ui.feed.write([report(*(result(f"p{number}") for number in range(5)))])
            first = await ui.get("/api/v1/results?limit=3")
            second = await ui.get(f"/api/v1/results?limit=3&cursor={first['cursor']}")
            assert [f"p{number}" for number in range(5)] == [
                each["policy"] for each in first["items"] + second["items"]
            ]
            assert (5, "") == (first["total"], second["cursor"])
            assert {"value": "fail", "count": 5} == (await ui.get("/api/v1/facets"))["status"][0]
            (resource,) = (await ui.get("/api/v1/resources"))["items"]
            assert 5 == len((await ui.get(f"/api/v1/resources/{resource['id']}"))["results"])
            await ui.feed.write([report()])
            assert 5 == len(await ui.get("/api/v1/history"))
            assert 0 == (await ui.get("/api/v1/trend?days=7"))[-1]["fail"]

    asyncio.run(play())


def test_policies_namespaces_and_sources_are_listed_with_their_results(tmp_path: Path) -> None:
    """The counts are those of the filter, by status."""

    async def play() -> list[list[tuple[str, int]]]:
        async with serve_ui(tmp_path) as ui:
            await ui.feed.write([report(result("a"), result("b", namespace="x"), result("b", status="pass"))])
            lists = [await ui.get(f"/api/v1/{name}?status=fail") for name in ("policies", "namespaces", "sources")]
            return [sorted((each["name"], each["fail"]) for each in found["items"]) for found in lists]

    assert [[("a", 1), ("b", 1)], [("team", 1), ("x", 1)], [("kyverno", 2)]] == asyncio.run(play())


@pytest.mark.parametrize(
    "method, headers, status", [("GET", {"Host": "[::1"}, 421), ("POST", {"Origin": "http://[::1"}, 403)]
)
def test_a_malformed_address_in_a_header_is_refused(
    method: str, headers: dict[str, str], status: int, tmp_path: Path
) -> None:
    """It is no bug of the server: the answer is that to every other foreign host."""

    async def play() -> tuple[int, object]:
        async with (
            serve_ui(tmp_path) as ui,
            ui.session.request(method, f"{ui.url}/api/v1/config", headers=headers, data=b"{}") as response,
        ):
            return response.status, sorted(await response.json())

    assert (status, ["error"]) == asyncio.run(play())
