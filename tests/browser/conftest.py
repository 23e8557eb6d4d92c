"""One browser and one server for all tests, and a page for each test that records what must not happen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from pyverno.loopthread import LoopThread
from tests.browser.samples import SampleInspector, sample_reports, sample_targets
from tests.support.loops import entered
from tests.support.uiserver import UiServer, serve_ui

T = TypeVar("T")
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_WATCH = """
window.seen = [];
document.addEventListener("securitypolicyviolation", event => {
  window.seen.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""
AXE = Path(__file__).parent / "axe-core" / "axe.min.js"
SCREENS = Path(__file__).parents[2] / "build" / "screens"


class Visit:
    """One page in a fresh profile; `problems` are errors, dialogs, foreign requests and violations of the policy."""

    def __init__(self, page: Page, url: str) -> None:
        """Watch the page."""
        self.page = page
        self.url = url
        self.requests: list[str] = []
        self._problems: list[str] = []
        page.on("console", lambda message: self._note(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self._note(str(error)))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self._check(request.url))

    def open(self, fragment: str = "") -> Page:
        """Load a page anew, and wait for its heading."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/#/{fragment}")
        self.page.locator("main h1").first.wait_for()
        return self.page

    def go(self, fragment: str) -> None:
        """Go to a page as a link does, without loading anything anew, and wait for its heading."""
        self.page.evaluate(
            "fragment => { document.querySelector('main h1').remove(); location.hash = fragment; }", f"#/{fragment}"
        )
        self.page.locator("main h1").first.wait_for()

    def problems(self) -> list[str]:
        """Return the recorded problems: errors, dialogs, foreign requests and violations."""
        return [*self._problems, *self.page.evaluate("window.seen ?? []")]

    def forgive(self) -> None:
        """Forget the problems that the test has checked itself."""
        self._problems.clear()

    def _note(self, text: str) -> None:
        self._problems.append(text)

    def _refuse(self, dialog: Any) -> None:
        self._note(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _check(self, url: str) -> None:
        self.requests.append(url)
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != urlsplit(self.url).netloc:
            self._note(f"foreign request: {url}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser; skips where there is none."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip(f"no browser is installed ({', '.join(_NAMES)}): the pages were not tested")
    flags = [*_FLAGS, *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [])]
    expect.set_options(timeout=60_000)  # of a busy machine
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=flags)
        yield opened
        opened.close()


class Site:
    """The server, in a thread with a loop of its own."""

    def __init__(self, thread: LoopThread, ui: UiServer) -> None:
        """Take the running server and its loop."""
        self._thread = thread
        self._ui = ui
        self.url = ui.url

    def run(self, work: Callable[[UiServer], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine of the server's loop, and return what it returns."""
        return self._thread.run(work(self._ui), 300)


@contextmanager
def open_site(folder: Path) -> Iterator[Site]:
    """Run a server with the sample reports in its store."""
    serving = serve_ui(folder, inspectors={"c": SampleInspector()}, targets=sample_targets())
    with LoopThread("site") as thread, entered(thread, serving) as ui:
        site = Site(thread, ui)
        site.run(lambda ui: ui.feed.write(sample_reports()))
        yield site


@pytest.fixture(scope="session")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The server of all tests that change nothing."""
    with open_site(tmp_path_factory.mktemp("site")) as opened:
        yield opened


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    """A page at 1280 px; the test fails when the page recorded a problem."""
    with open_visit(browser, site.url) as opened:
        yield opened
        assert [] == opened.problems()


class open_visit:  # noqa: N801 - a context manager that is used as a function
    """Open a page of a width in a colour scheme."""

    def __init__(self, browser: Browser, url: str, *, width: int = 1280, scheme: str = "light") -> None:
        """Take the browser and the address of the server."""
        self._context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,  # type: ignore[arg-type]
            accept_downloads=True,
        )
        self._context.set_default_timeout(60_000)
        self._context.add_init_script(_WATCH)
        self._url = url

    def __enter__(self) -> Visit:
        return Visit(self._context.new_page(), self._url)

    def __exit__(self, *_: object) -> None:
        self._context.close()
