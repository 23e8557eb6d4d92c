"""Logins in a browser: at an issuer by OpenID Connect, and behind a proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, Page, expect

from pyverno.cli.ui.access import LoginOptions
from pyverno.cli.ui.run import UiOptions, serving
from pyverno.loopthread import LoopThread
from tests.browser.conftest import AXE, SCREENS, Visit, open_visit
from tests.support.issuer import CLIENT, SECRET, Issuer, serve_issuer
from tests.support.loops import entered
from tests.support.ports import free_port
from tests.unit.report.test_collected import report

LOGO = b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><circle cx="20" cy="20" r="18"/></svg>'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one report, and the secret of the client."""
    (tmp_path / "report.yaml").write_text(yaml.safe_dump(report({"policy": "p", "rule": "r", "result": "fail"})))
    (tmp_path / "secret").write_text(SECRET)
    return tmp_path


@contextmanager
def site(folder: Path, login: Callable[[Issuer, int], LoginOptions], **look: str) -> Iterator[str]:
    """Serve the pages behind a login."""

    @asynccontextmanager
    async def serve() -> AsyncIterator[str]:
        port = free_port()
        async with serve_issuer() as issuer:
            files = (str(folder / "report.yaml"),)
            options = UiOptions(files=files, port=port, login=login(issuer, port), **look)  # type: ignore[arg-type]
            async with serving(options) as url:
                yield url.rstrip("/")

    with LoopThread("site") as thread, entered(thread, serve()) as url:
        yield url


def by_issuer(folder: Path, **flags: object) -> Callable[[Issuer, int], LoginOptions]:
    """Return the flags of a login by OpenID Connect."""
    return lambda issuer, port: LoginOptions(
        issuer=issuer.url,
        client=CLIENT,
        secret_file=str(folder / "secret"),
        public_url=f"http://127.0.0.1:{port}",
        username_claim="email",
        **flags,  # type: ignore[arg-type]
    )


def shown_text(page: Page) -> str:
    """Return the text of a page without script."""
    return page.locator("body").inner_text()


def test_a_browser_logs_in_at_the_issuer_and_out_again(browser: Browser, folder: Path) -> None:
    """Code and PKCE; the name is on the page, and no axe finding; the address of a page survives."""
    with site(folder, by_issuer(folder)) as url, open_visit(browser, url) as visit:
        page = visit.page
        page.goto(url)
        expect(page.locator("#user")).to_have_text("ann@example.org")
        assert page.url.startswith(url)
        expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
        page.evaluate(AXE.read_text(encoding="utf-8"))
        assert [] == [each["id"] for each in page.evaluate("axe.run()")["violations"]]
        SCREENS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENS / "logged-in-light-1280.png")
        cookies = [each for each in page.context.cookies() if each["httpOnly"] and each["sameSite"] == "Lax"]
        assert len(page.context.cookies()) == len(cookies) > 0
        # the issuer still knows the person, so that the page is open again at once
        with page.expect_event("load"):
            page.get_by_role("button", name="Log out").click()
        expect(page.locator("#user")).to_have_text("ann@example.org")
        assert [] == own_problems(visit)


def test_a_person_who_is_not_admitted_reads_why(browser: Browser, folder: Path) -> None:
    """The page shows the name and how to get access, and no reports."""
    with site(folder, by_issuer(folder, allow_users=("bob@example.org",))) as url, open_visit(browser, url) as visit:
        visit.page.goto(url)
        assert "`ann@example.org` may not see these pages" in shown_text(visit.page)
        assert 403 == visit.page.request.get(f"{url}/api/v1/results").status


def test_a_proxy_names_the_person(browser: Browser, folder: Path) -> None:
    """A listed peer sends the name in a header; without it nothing is served. Banner and logo are on every page."""
    flags = LoginOptions(proxy_user_header="X-Remote-User", proxy_peers=("127.0.0.1",))
    (folder / "logo.svg").write_bytes(LOGO)
    look = {"banner": "Production", "logo": str(folder / "logo.svg")}
    with site(folder, lambda *_: flags, **look) as url, open_visit(browser, url) as visit:
        assert 401 == visit.page.request.get(f"{url}/api/v1/results").status
        visit.page.set_extra_http_headers({"X-Remote-User": "carol"})
        visit.page.goto(url)
        expect(visit.page.locator("#user")).to_have_text("carol")
        # the proxy has the session
        expect(visit.page.get_by_role("button", name="Log out")).to_have_count(0)
        expect(visit.page.locator("#banner")).to_have_text("Production")
        assert 22 < visit.page.locator(".brand img").evaluate("image => image.naturalWidth")
        visit.page.evaluate(AXE.read_text(encoding="utf-8"))
        assert [] == [each["id"] for each in visit.page.evaluate("axe.run()")["violations"]]
        visit.page.screenshot(path=SCREENS / "banner-light-1280.png")
        assert [] == visit.problems()


def own_problems(visit: Visit) -> list[str]:
    """Return the problems without the requests to the issuer, which a login needs."""
    return [each for each in visit.problems() if not each.startswith("foreign request")]
