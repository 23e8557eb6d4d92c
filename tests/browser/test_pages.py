"""Every page of the reports: its content, and its accessibility in every colour scheme and width."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.conftest import AXE, SCREENS, Site, Visit, open_site, open_visit
from tests.browser.samples import HOSTILE
from tests.unit.ui.store.samples import report, result

PAGES = (
    "",
    "results",
    "results?status=fail&namespace=shop",
    "policies",
    "policies/require-labels",
    "namespaces",
    "namespaces/shop",
    "clusters",
    "clusters/c",
    "resources",
    "resources/1",
    "exceptions",
    "why/1",
    "playground",
    "history",
    "targets",
)
CUT = """
[...document.querySelectorAll(".table")]
  .filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.ariaLabel)
"""
"""The tables with columns that are out of sight."""

LOOKS = (("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390))
AXE_LOOKS = (("light", 1280), ("dark", 390))


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_every_page_is_accessible_and_fits(browser: Browser, site: Site, scheme: str, width: int) -> None:
    """No finding of axe, nothing wider than the window, no error: in both themes, at desktop and phone width."""
    axe = AXE.read_text(encoding="utf-8")
    SCREENS.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    with open_visit(browser, site.url, width=width, scheme=scheme) as visit:
        visit.open("namespaces")
        visit.page.evaluate(axe)
        for page in PAGES:
            visit.go(page)
            # colours depend on the theme, the layout on the width: two of the four looks have all of both
            for each in visit.page.evaluate("axe.run()")["violations"] if (scheme, width) in AXE_LOOKS else ():
                found[f"{page} {each['id']}"] = [node["html"] for node in each["nodes"]][:3]
            if visit.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
                found[f"{page} width"] = visit.page.evaluate("document.documentElement.scrollWidth")
            if cut := visit.page.evaluate(CUT):
                found[f"{page} tables"] = cut
            name = page.partition("?")[0].replace("/", "-") or "dashboard"
            visit.page.screenshot(path=SCREENS / f"{name}-{scheme}-{width}.png")
        assert {} == found
        assert [] == visit.problems()


def test_the_dashboard_counts_and_leads_to_results(visit: Visit) -> None:
    """A tile is a link to what it counts."""
    page = visit.open()
    page.get_by_role("link", name="1 ▲ warn").click()
    expect(page.get_by_role("status").filter(has_text="result")).to_have_text("1 result")
    assert page.url.endswith("#/results?status=warn")


def test_facets_and_search_are_in_the_address(visit: Visit) -> None:
    """A chosen facet can be removed again; the browser's back button works."""
    page = visit.open("results")
    page.get_by_role("group", name="namespace").get_by_label("shop").check()
    count = page.get_by_role("status").filter(has_text="result")
    expect(count).to_have_text("3 results")
    page.get_by_role("searchbox").fill("missing")
    page.get_by_role("button", name="Search").click()
    expect(count).to_have_text("1 result")
    assert page.url.endswith("#/results?namespace=shop&search=missing")
    page.get_by_role("button", name="Remove filter namespace shop").click()
    expect(page.get_by_role("checkbox", name="shop")).not_to_be_checked()
    page.go_back()
    expect(count).to_have_text("1 result")


def test_more_results_follow_the_first(visit: Visit) -> None:
    """The next page is appended."""
    page = visit.open("results?namespace=many")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="More").click()
    expect(rows).to_have_count(60)


@pytest.mark.parametrize("form", ["csv", "json", "sarif", "html", "junit", "markdown"])
def test_exports_are_those_of_the_filter(form: str, visit: Visit) -> None:
    """A click gives a file with the chosen results alone."""
    page = visit.open("results?policy=require-labels")
    with page.expect_download() as download:
        page.get_by_role("link", name=form, exact=True).click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert "require-labels" in text
    assert "no-latest" not in text


def test_an_export_page_runs_no_script(visit: Visit, tmp_path: Path) -> None:
    """Hostile texts stay texts in the file that is sent to others."""
    page = visit.open("results")
    with page.expect_download() as download:
        page.get_by_role("link", name="html", exact=True).click()
    download.value.save_as(tmp_path / "results.html")
    page.goto((tmp_path / "results.html").as_uri())
    expect(page.get_by_text("<img src=x").first).to_be_visible()


@pytest.mark.parametrize(
    "fragment",
    [
        "results",
        "policies",
        f"policies/{quote(HOSTILE, safe='')}",
        "namespaces",
        f"namespaces/{quote(HOSTILE, safe='')}",
        "resources",
        "targets",
        "exceptions",
        "",
        f"results?search={quote(HOSTILE, safe='')}",
    ],
)
def test_hostile_names_and_messages_stay_texts(fragment: str, visit: Visit) -> None:
    """They are shown as written; no script of theirs runs and no element of theirs exists.

    Register: CVE-2026-44245.
    """
    page = visit.open(fragment)
    expect(page.get_by_text("<img src=x").first).to_be_visible()
    assert (0, 0) == (page.locator("img").count(), page.locator("main script").count())


def test_pages_load_nothing_from_elsewhere(visit: Visit) -> None:
    """Every request of every page goes to the own server."""
    visit.open("results")
    for fragment in PAGES:
        visit.go(fragment)
    origins = {"/".join(url.split("/")[:3]) for url in visit.requests if not url.startswith(("data:", "about:"))}
    assert {visit.url} == origins


def test_the_theme_is_chosen_and_kept(visit: Visit) -> None:
    """It survives a reload, in this browser alone."""
    page = visit.open()
    for _ in range(2):
        page.get_by_role("button", name="Theme").click()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    assert "rgb(20, 23, 26)" == page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_keyboard_is_enough(visit: Visit) -> None:
    """Slash searches, Tab reaches links in the order of reading, Enter follows them."""
    page = visit.open("results")
    page.keyboard.press("/")
    page.keyboard.type("ConfigMap")
    page.keyboard.press("Enter")
    count = page.get_by_role("status").filter(has_text="result")
    expect(count).to_have_text("1 result")
    page.reload()
    expect(count).to_have_text("1 result")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    names = []
    for _ in range(9):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.textContent"))
    assert [
        "pyverno",
        "Dashboard",
        "Results",
        "Policies",
        "Namespaces",
        "Clusters",
        "Resources",
        "Exceptions",
        "History",
    ] == names
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Exceptions", level=1)).to_be_visible()


def test_a_wrong_filter_is_an_error_on_the_page(visit: Visit) -> None:
    """The word at fault is shown, and no result."""
    page = visit.open("results?staus=fail")
    expect(page.get_by_role("alert").filter(has_text="staus")).to_be_visible()
    assert 0 == page.locator("tbody tr").count()
    # a browser reports every answer of 400
    assert all("400" in problem for problem in visit.problems())
    visit.forgive()


def test_an_open_page_follows_changes(browser: Browser, tmp_path: Path) -> None:
    """A result that appears in a report appears on the page; one that goes is in the history as resolved."""
    with open_site(tmp_path) as own, open_visit(browser, own.url) as visit:
        page = visit.open("policies/fresh")
        own.run(lambda ui: ui.feed.write([report(result("fresh", message="just now"), name="fresh")]))
        expect(page.get_by_text("just now")).to_be_visible()
        own.run(lambda ui: ui.feed.write([report(name="fresh")]))
        expect(page.get_by_text("just now")).to_have_count(0)
        page = visit.open("history")
        expect(page.get_by_role("cell", name="resolved")).to_be_visible()
        assert [] == visit.problems()


def test_a_change_before_a_page_listens_is_not_lost(browser: Browser, tmp_path: Path) -> None:
    """The page has its results, the connection for updates is slow, and what changes between them still appears."""
    with open_site(tmp_path) as own, open_visit(browser, own.url) as visit:

        def late(route: Route) -> None:
            own.run(lambda ui: ui.feed.write([report(result("fresh", message="just now"), name="fresh")]))
            route.continue_()

        visit.page.route("**/api/v1/events", late, times=1)
        page = visit.open("policies/fresh")
        expect(page.get_by_text("just now")).to_be_visible()


def test_the_address_of_the_api_is_the_filter_of_the_page(visit: Visit) -> None:
    """A script gets the same results that the page shows."""
    page = visit.open("results?status=fail&namespace=shop")
    shown = page.locator("tbody tr").count()
    answer = page.request.get(f"{visit.url}/api/v1/results?status=fail&namespace=shop")
    assert shown == json.loads(answer.text())["total"]


def test_a_policy_is_shown_as_the_cluster_has_it(visit: Visit) -> None:
    """Its text, its kinds and its exceptions, below its results."""
    page = visit.open("policies/require-labels")
    section = page.get_by_role("region", name="The policy")
    expect(section).to_contain_text("Every object names its team.")
    expect(section).to_contain_text("Matches v1/Pod.")
    expect(section).to_contain_text("name: require-labels")
    assert [] == visit.problems()


def test_exceptions_show_their_results_and_their_end(visit: Visit) -> None:
    """One explains a result, the other names a policy that is not there."""
    page = visit.open("exceptions")
    rows = page.locator("tbody tr")
    expect(rows.nth(0).locator("td").nth(3)).to_have_text("1")
    expect(rows.nth(1)).to_contain_text("unused")
    expect(rows.nth(1)).to_contain_text("no policy")
    assert [] == visit.problems()


def test_targets_are_shown_with_what_became_of_their_notices(visit: Visit) -> None:
    """By name, with counts and the last error; the address is not on the page."""
    page = visit.open("targets")
    row = page.get_by_role("row").filter(has_text="team-a")
    expect(row.get_by_role("cell")).to_have_text(
        ["team-a", "slack", "every 600 s, by policy", "sent", "12", "1", "0", HOSTILE]
    )
    assert "S3CRET" not in page.content()


def test_a_result_leads_to_its_reason_and_to_a_draft(visit: Visit) -> None:
    """From the table to the explanation, to the line of the object, to an exception with its effect."""
    page = visit.open("results?policy=require-labels&status=fail")
    page.get_by_role("link", name="Why fail: require-labels").click()
    page.get_by_role("button", name="Go to line 4 of resources").first.click()
    expect(page.locator(".numbered .current")).to_have_text("  name: web\n")
    page.get_by_role("button", name="Draft an exception").click()
    expect(page.get_by_role("region", name="Effect")).to_contain_text("○ skip")
    page.get_by_role("link", name="Open in the playground").click()
    page.get_by_role("heading", name="Playground").wait_for()
    assert [] == visit.problems()


def test_what_cannot_be_explained_is_a_sentence(visit: Visit) -> None:
    """The server's reason, not an empty page."""
    page = visit.open("results?policy=no-latest&status=warn")
    page.get_by_role("link", name="Why warn: no-latest").click()
    expect(page.get_by_role("alert").last).to_contain_text("no policy `no-latest` any more")
    visit.forgive()


def test_a_filter_is_saved_as_a_view_and_boards_are_imported(visit: Visit) -> None:
    """Both are on the dashboard, lead to their results, and can be deleted."""
    page = visit.open("results?status=fail&namespace=shop")
    page.get_by_label("Name of the view").fill("Shop")
    page.get_by_role("button", name="Save view").click()
    visit.go("")
    section = page.get_by_role("region", name="Views")
    section.get_by_text("Import", exact=True).first.click()
    page.get_by_label("Views or boards").fill("customBoards: [{name: Data, namespaces: {list: [data]}, x: 1}]")
    section.get_by_role("button", name="Import").click()
    expect(section).to_contain_text("1 saved. Data: `x` has no meaning here.")
    section.get_by_role("link", name="Data").click()
    expect(page.get_by_role("status").filter(has_text="result")).to_have_text("2 results")
    visit.go("")
    section.get_by_role("button", name="Delete Data").click()
    expect(section.get_by_role("link")).to_have_text(["Everything that fails", "Shop"])
    section.get_by_role("link", name="Shop").click()
    expect(page.get_by_role("status").filter(has_text="result")).to_have_text("1 result")
    assert [] == visit.problems()


def test_any_property_and_label_can_be_a_facet(visit: Visit) -> None:
    """It is kept in this browser, and its values narrow the results."""
    page = visit.open("results")
    page.get_by_label("Add a facet").select_option("label.team")
    group = page.get_by_role("group", name="label.team")
    group.get_by_label("blue").check()
    expect(page.get_by_role("status").filter(has_text="result")).to_have_text("5 results")
    assert page.url.endswith("label.team=blue")
    visit.open("results")
    expect(page.get_by_role("group", name="label.team")).to_be_visible()
    page.get_by_label("Add a facet").select_option("rule")
    expect(page.get_by_role("group", name="rule", exact=True).get_by_label("tag")).to_be_visible()


def test_an_opened_part_stays_open(visit: Visit) -> None:
    """When results change, and when the page is opened again; a closed one stays closed."""
    page = visit.open()
    figures = page.locator("figure details")
    figures.locator("summary").click()
    expect(figures).to_have_attribute("open", "")
    visit.open()
    expect(figures).to_have_attribute("open", "")
    figures.locator("summary").click()
    visit.open()
    expect(figures).not_to_have_attribute("open", "")


def test_a_board_of_resources_is_a_view_of_resources(visit: Visit) -> None:
    """The imported board opens the resources page with its namespace filter."""
    page = visit.open()
    section = page.get_by_role("region", name="Views")
    section.get_by_text("Import", exact=True).first.click()
    page.get_by_label("Views or boards").fill(
        "customBoards: [{name: Objects, namespaces: {list: [data]}, display: resources}]"
    )
    section.get_by_role("button", name="Import").click()
    section.get_by_role("link", name="Objects").click()
    expect(page.get_by_role("heading", name="Resources", level=1)).to_be_visible()
    assert page.url.endswith("#/resources?namespace=data")
