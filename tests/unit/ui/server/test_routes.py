"""Every route, found by enumeration: hostile parameters, planted faults, and users of one namespace."""

from __future__ import annotations

import asyncio
import base64
import logging
import random
import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yarl
from aiohttp import web

from pyverno.ui.access.access import Access
from pyverno.ui.access.identity import Admission, Identity
from pyverno.ui.access.login import admit
from pyverno.ui.server import results
from pyverno.ui.store.scope import Scope
from tests.support.plantedfaults import PlantedFaults, modules_below
from tests.support.uiserver import UiServer, serve_ui
from tests.unit.ui.store.samples import report, result

CANARY = "canary-d41d8cd9"
OWN = "own"
NAMES = (
    *("status", "severity", "namespace", "kind", "policy", "rule", "source", "category", "cluster", "name"),
    *("apiVersion", "search", "state", "since", "until", "limit", "offset", "order", "cursor", "by", "days", "after"),
    *("fields", "format", "property.a", "property.", "property.%22", "property.%ff", "label.a", "label.%22.%22", "%ff"),
    *("page", "sortBy", "direction", "namespaces", "kinds", "resources", "apis", "sources", "categories", "labels"),
    *("severities", "policies", "rules", "exclude", "namespaced"),
)
"""Parameters of all routes, and such as no route has."""
VALUES = (
    *("", "x", "%ff", "%ed%a0%80", "%00", "a%00b", "*", "[", "!", "!!", "-", "9" * 30, "-1", "1e5", "NaN", "0", "1"),
    *("a," * 90, "a" * 2040, "*a" * 1000, "%5B" * 600, "[!a]", "[]]", "%F0%9F%92%A9", "%27%3B--", "%25", "..", "a:b"),
)


def cursor(value: object) -> str:
    """Return a cursor as the server would write it."""
    body = value if isinstance(value, bytes) else orjson.dumps(value)
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


CURSORS = (
    *(
        cursor(each)
        for each in ([], [[], 1], [{}, 1], 5, None, "worst", {"worst": 1}, ["worst", True, None, *"abcdef"])
    ),
    *(cursor(["worst", *[each] * 8]) for each in ("a", "\0", "\U0001f600", 2**63, 2**64 - 1, -(2**63), 1.5, [], {})),
    *(cursor(["latest", *each]) for each in ((2**63, 2**63), ("a", "b"), (1, 1))),
    *(cursor(each) for each in (b"\xff", b"[" * 2000, b'["worst","\\ud800",1,1,1,1,1,1,1]', b'["latest",1e400,1]')),
    cursor(b'["worst",1,1,1,1,1,1,1,99999999999999999999999999999]'),
)


def paths(ui: UiServer, method: str = "GET") -> list[str]:
    """Return all routes but the files of the pages and the stream of updates."""
    found = {
        route.resource.canonical
        for route in ui.app.router.routes()
        if route.method == method and route.resource is not None
    }
    return sorted(each for each in found if "/static/" not in each and each != "/api/v1/events")


def filled(path: str, value: str) -> str:
    """Return a path with a value in place of its parameters."""
    return re.sub(r"\{[^}]*\}", value or "-", path)


async def fill(ui: UiServer) -> None:
    """Write results of two namespaces and of none."""
    hidden = [
        result(f"{CANARY}-policy", f"{CANARY}-{status}", status, name=f"{CANARY}-{status}", namespace=namespace,
               message=CANARY, properties={"exceptions": CANARY, CANARY: "x"})
        for namespace in (CANARY, "") for status in ("fail", "pass")
    ]  # fmt: skip
    await ui.feed.write([report(*hidden, name="hidden", labels={"team": CANARY, CANARY: "x"})])
    await ui.feed.write([report(result("open", namespace=OWN), result("shut", "r", "pass", namespace=OWN), name="own")])


async def ask(ui: UiServer, path: str) -> tuple[int, bytes]:
    """Return status and body, with the path as it is written."""
    async with asyncio.timeout(120), ui.session.get(yarl.URL(f"{ui.url}{path}", encoded=True)) as response:
        return response.status, await response.read()


def play(folder: Path, scene: Callable[[UiServer], Awaitable[None]], **options: Any) -> None:
    """Serve filled results."""

    async def run() -> None:
        async with serve_ui(folder, **options) as ui:
            await fill(ui)
            await scene(ui)

    asyncio.run(run())


def hostile(path: str, rng: random.Random) -> Iterator[str]:
    """Yield targets of a route: each parameter with some hostile values, and hostile parts of the path."""
    for name in NAMES:
        for value in CURSORS if name == "cursor" and path.endswith("/results") else rng.sample(VALUES, 2):
            yield f"{filled(path, '1')}?{name}={value}"
    if "{" in path:
        yield from (filled(path, value) for value in (*VALUES, "%2e%2e", "%2f", "a/b", "%0a", "0x1", "%D9%A1", "1_0"))
    yield f"{filled(path, '1')}?{'&'.join(f'kinds=a*{number}' for number in range(600))}"
    yield f"{filled(path, '1')}?{'&'.join(f'labels=k{number}:a' for number in range(400))}"
    yield f"{filled(path, '1')}?{'&'.join(f'property.k{number}=a*' for number in range(300))}"
    yield f"{filled(path, '1')}?fields={','.join(f'property.k{number}' for number in range(600))}"


def test_no_parameter_is_a_bug(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each hostile target has a result or one JSON error that is the client's; nothing reaches the log as an error."""
    rng = random.Random(1)  # noqa: S311 - no secret

    async def scene(ui: UiServer) -> None:
        for path in paths(ui):
            for target in hostile(path, rng):
                status, body = await ask(ui, target)
                assert status < 500, (target[:200], body)
                if status >= 400:
                    assert {"error"} == set(orjson.loads(body)), (target[:200], body)

    play(tmp_path, scene)
    assert [] == [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_filter_cannot_ask_for_many_queries(tmp_path: Path) -> None:
    """Each property, label and facet of a request is a query: their number is limited."""
    facets = ",".join(f"property.k{number}" for number in range(41))
    keys = "&".join(f"property.k{number}=a" for number in range(21))
    labels = "&".join(f"labels=k{number}:a" for number in range(21))

    async def scene(ui: UiServer) -> None:
        assert "facets" in (await ui.get(f"/api/v1/facets?fields={facets}", status=400))["error"]
        assert "properties" in (await ui.get(f"/api/v1/results?{keys}", status=400))["error"]
        assert "properties" in (await ui.get(f"/v2/policies?{labels}", status=400))["error"]
        same = ",".join(["property.exceptions"] * 300)
        assert [CANARY] == [
            each["value"] for each in (await ui.get(f"/api/v1/facets?fields={same}"))["property.exceptions"]
        ]

    play(tmp_path, scene)


@pytest.mark.parametrize("form", ["csv", "sarif", "json"])
def test_an_export_is_bounded_by_its_format_and_text(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made in memory: more is one clear error, and the limit itself is exported."""
    monkeypatch.setattr(results, "_MOST_EXPORTED", {"csv": 4, "sarif": 4})
    monkeypatch.setattr(results, "_MOST_OF_OTHERS", 4)

    async def scene(ui: UiServer) -> None:
        path = f"/api/v1/export?format={form}"
        assert b"more than 4 results" in (await ask(ui, path))[1]
        assert 200 == (await ask(ui, f"{path}&namespace={CANARY}"))[0]
        monkeypatch.setattr(results, "_MOST_TEXT", 3)
        assert b"more than 3 characters" in (await ask(ui, f"{path}&namespace={CANARY}"))[1]

    play(tmp_path, scene)


class User:
    """A logged-in user of one namespace."""

    def identify(self, _: web.Request) -> Identity:
        """Return the user of every request."""
        return Identity("ann")

    def is_known(self, _: web.Request) -> bool:
        """Return True."""
        return True


class Own:
    """The rights of a user who may list the reports of one namespace, and nothing else."""

    async def scope(self, _: Identity) -> Scope:
        """Return the namespace of the user."""
        return frozenset({OWN})

    async def may(self, _: Identity, __: Access) -> bool:
        """Return False."""
        return False


def test_no_route_shows_another_namespace(tmp_path: Path) -> None:
    """Whatever the parameters: a new route is tried by itself. Without a scope the same targets find the texts."""
    queries = ("", "?state=all", "?format=json&state=all", f"?search={CANARY}", f"?namespace={CANARY}", "?by=policy",
               "?fields=property.exceptions,label.team,namespace", f"?namespaces={CANARY}", "?namespace=*",
               "?limit=1000", "?page=1&offset=1000&sortBy=message")  # fmt: skip
    seen: dict[bool, set[str]] = {True: set(), False: set()}

    def scene_of(*, is_scoped: bool) -> Callable[[UiServer], Awaitable[None]]:
        async def scene(ui: UiServer) -> None:
            for path in paths(ui):
                values = (*map(str, range(1, 9)), "exceptions", "kyverno") if "{" in path else ("",)
                for target in (f"{filled(path, value)}{query}" for value in values for query in queries):
                    _, body = await ask(ui, target)
                    if CANARY.encode() in body.replace(target.encode(), b"").replace(f"`{CANARY}".encode(), b""):
                        seen[is_scoped].add(path)

        return scene

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    play(tmp_path / "a", scene_of(is_scoped=False))
    play(tmp_path / "b", scene_of(is_scoped=True), admission=admit(User(), Admission(), Own()))
    assert set() == seen[True]
    assert len(seen[False]) > 15


SITES = ("pyverno.ui.server", "pyverno.ui.store", "pyverno.ui.views")
SPARED = (
    # what answers a fault
    *("errors.errors_as_json", "errors._answer", "errors._log", "serving._refuse", "security.add_headers"),
    *("serving.sent_in_time", "pool.ReaderPool.__aexit__"),
)
ERRORS: tuple[Callable[[], BaseException], ...] = (
    lambda: ValueError(CANARY),
    lambda: KeyError(CANARY),
    lambda: RecursionError(CANARY),
    lambda: MemoryError(CANARY),
    lambda: OSError(28, CANARY, "/var/lib/results.db"),
    lambda: StopIteration(CANARY),
    lambda: sqlite3.OperationalError(f"database is locked: {CANARY}"),
    lambda: sqlite3.DatabaseError("database disk image is malformed"),
    lambda: orjson.JSONDecodeError(CANARY, "", 0),
    lambda: AssertionError(CANARY),
    lambda: TimeoutError(CANARY),
)


def test_a_bug_of_a_handler_costs_one_request(tmp_path: Path) -> None:
    """At every site: one JSON error without the text of the exception, and the next request is answered."""
    rng = random.Random(2)  # noqa: S311 - no secret
    faults = PlantedFaults(modules_below(*SITES), SPARED)
    reached: set[str] = set()

    async def scene(ui: UiServer) -> None:
        for path in paths(ui):
            target = filled(path, "1")
            faults.armed = ""
            faults.calls.clear()
            before = await ask(ui, target)
            for site in sorted(set(faults.calls) - (reached if len(reached) > 60 else set())):
                reached.add(site)
                faults.arm(site, rng.choice(ERRORS))
                status, body = await ask(ui, target)
                if faults.thrown and status != before[0]:
                    assert status >= 400, (site, status)
                    assert {"error"} == set(orjson.loads(body)), (site, status, body)
                    assert CANARY.encode() not in body, (site, body)
                faults.armed = ""
                assert before[0] == (await ask(ui, target))[0], site

    with faults.installed():
        play(tmp_path, scene)
    assert len(reached) > 60
