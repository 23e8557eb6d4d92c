"""The playground as a visitor uses it: write, read the answer, share, come back."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Page, expect

from tests.browser.conftest import AXE, Visit
from tests.support.playgroundlinks import CONTENT, LINK

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: tags
spec:
  rules:
    - name: latest
      match:
        any:
          - resources:
              kinds: [Pod]
      validate:
        failureAction: Enforce
        message: name a version
        pattern:
          spec:
            containers:
              - image: "!*:latest"
"""
VERSIONED = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations:
  - expression: isIP('1.2.3.4')
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
    - name: web
      image: nginx:latest
"""


def axe_findings(page: Page) -> list[str]:
    """Return what axe finds on the page as it is."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return [each["id"] for each in page.evaluate("axe.run()")["violations"]]


def write(page: Page, title: str, text: str) -> None:
    """Put a text into an editor."""
    page.get_by_role("textbox", name=title, exact=True).fill(text)


def test_a_review_shows_the_denial_on_its_lines(visit: Visit) -> None:
    """Result, message, and marks beside policy and resource."""
    page = visit.open("playground")
    write(page, "Policies", POLICY)
    write(page, "Resources", POD)
    expect(page.get_by_role("heading", name="denied")).to_be_visible()
    expect(page.locator("td.message")).to_contain_text("name a version")
    marks = page.locator(".editor li.fail")
    expect(marks).to_have_text(["● 7", "● 8"])


def test_a_mistake_is_shown_with_its_line(visit: Visit) -> None:
    """Message and line are those of the compiler."""
    page = visit.open("playground")
    write(page, "Policies", POLICY.replace("failureAction: Enforce", "failureAction: Perhaps"))
    write(page, "Resources", POD)
    expect(page.get_by_role("status").filter(has_text="policies:13")).to_be_visible()


def test_a_shared_link_holds_everything_and_the_server_sees_nothing(visit: Visit) -> None:
    """The texts are in the fragment; a fresh page shows them."""
    page = visit.open("playground")
    write(page, "Policies", POLICY)
    write(page, "Resources", POD)
    page.get_by_role("button", name="Share").click()
    page.wait_for_url("**/#/playground/*")
    link = page.url
    page.evaluate("localStorage.clear()")
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_role("textbox", name="Policies", exact=True)).to_have_value(POLICY)
    expect(page.get_by_role("heading", name="denied")).to_be_visible()
    fragment = link.partition("playground/")[2]
    assert [] == [url for url in visit.requests if fragment in url.partition("#")[0]]


def test_the_texts_are_still_there_after_a_reload(visit: Visit) -> None:
    """They are kept in this browser, and nowhere else."""
    page = visit.open("playground")
    write(page, "Policies", POLICY)
    write(page, "Resources", POD)
    expect(page.get_by_role("heading", name="denied")).to_be_visible()
    page.reload()
    expect(page.get_by_role("textbox", name="Resources", exact=True)).to_have_value(POD)


def test_an_example_is_a_policy_with_resources_that_pass_and_fail(visit: Visit) -> None:
    """The examples come from the wheel, without any other server."""
    page = visit.open("playground")
    page.get_by_label("Examples").select_option("pod-security/baseline/disallow-privileged-containers")
    expect(page.locator(".status.fail").first).to_be_visible()
    expect(page.locator(".status.pass").first).to_be_visible()


def test_tab_indents_and_escape_leaves_the_editor(visit: Visit) -> None:
    """The keyboard is never trapped."""
    page = visit.open("playground")
    area = page.get_by_role("textbox", name="Policies", exact=True)
    area.focus()
    page.keyboard.press("Tab")
    expect(area).to_have_value("  ")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(area).not_to_be_focused()


def test_hostile_texts_stay_texts(visit: Visit) -> None:
    """This holds in names, in messages and in errors of the compiler."""
    script = "<img src=x onerror=alert(1)>"
    page = visit.open("playground")
    write(page, "Policies", POLICY.replace("name a version", f"'{script}'"))
    write(page, "Resources", POD)
    expect(page.locator("td.message")).to_contain_text(script)
    write(page, "Policies", POLICY.replace("name: latest", f"name: latest\n      '{script}': 1"))
    expect(page.get_by_role("status").filter(has_text=script)).to_be_visible()
    assert 0 == page.locator("img").count()


def test_an_explanation_leads_to_the_lines_it_names(visit: Visit) -> None:
    """Its lines are marked while it is open, and a click puts the cursor there."""
    page = visit.open("playground")
    write(page, "Policies", POLICY)
    write(page, "Resources", POD)
    page.get_by_text("Why", exact=True).click()
    line = page.locator("li", has_text='spec.containers[0].image: wanted "!*:latest", found "nginx:latest"')
    line.get_by_role("button", name="Go to line 8 of resources").click()
    area = page.get_by_role("textbox", name="Resources", exact=True)
    expect(area).to_be_focused()
    assert "      image: nginx:latest" == area.evaluate("a => a.value.slice(a.selectionStart, a.selectionEnd)")
    expect(page.locator(".editor li", has_text="●")).to_have_text(["● 7", "● 10", "● 16", "● 8"])
    page.get_by_text("Why", exact=True).click()
    expect(page.locator(".editor li", has_text="●")).to_have_text(["● 7", "● 8"])


def test_the_smallest_change_is_found_on_request(visit: Visit) -> None:
    """The change contains the value that makes the rule pass."""
    page = visit.open("playground")
    write(page, "Policies", POLICY)
    write(page, "Resources", POD)
    page.get_by_text("Why", exact=True).click()
    page.get_by_role("button", name="What would change it?").click()
    expect(page.get_by_text('set spec.containers[0].image to "nginx:v1"')).to_be_visible()


def test_rules_that_do_not_match_give_the_reason(visit: Visit) -> None:
    """The reasons are below the results."""
    page = visit.open("playground")
    write(page, "Policies", POLICY)
    write(page, "Resources", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
    page.get_by_text("1 rule does not match").click()
    page.get_by_text("tags / latest").click()
    expect(page.get_by_text("match.any[0]")).to_be_visible()


def test_a_test_suite_of_the_texts_is_one_click(visit: Visit, tmp_path: Path) -> None:
    """`pyverno test` gives the results that the page showed."""
    page = visit.open("playground")
    write(page, "Policies", POLICY)
    write(page, "Resources", POD)
    with page.expect_download() as download:
        page.get_by_role("button", name="Test suite").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        archive.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pyverno", "test", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (0, True) == (done.returncode, "1 tests passed" in done.stdout), done.stdout + done.stderr


def test_a_link_of_kyvernos_playground_works_at_this_server(visit: Visit) -> None:
    """Only the address is replaced; its texts are shown and reviewed."""
    visit.page.goto(f"{visit.url}/#/?content={quote(CONTENT, safe='')}")
    expect(visit.page.get_by_role("heading", name="admitted")).to_be_visible()
    expect(visit.page.get_by_label("User", exact=True)).to_have_value(re.compile("username: alice"))


def test_links_and_files_can_be_imported_and_states_saved(visit: Visit) -> None:
    """A saved state survives a reload, until it is deleted."""
    page = visit.open("playground")
    page.get_by_role("button", name="Saved and import").click()
    page.get_by_role("textbox", name="Link or file").fill(LINK)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="admitted")).to_be_visible()
    expect(page.get_by_text("the configuration of Kyverno is left out")).to_be_visible()
    page.get_by_role("textbox", name="Name").fill("mine")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_role("textbox", name="Policies", exact=True)).to_have_value("")
    page.reload()
    page.get_by_role("button", name="Saved and import").click()
    page.get_by_role("button", name="mine", exact=True).click()
    expect(page.get_by_role("heading", name="admitted")).to_be_visible()
    expect(page.get_by_label("Operation")).to_have_value("UPDATE")
    page.get_by_role("button", name="Delete mine").click()
    expect(page.get_by_role("button", name="mine", exact=True)).to_have_count(0)


def test_fields_are_completed_while_a_policy_is_written(visit: Visit) -> None:
    """The arrow keys and Enter choose a field; Escape closes the list but keeps the focus."""
    page = visit.open("playground")
    area = page.get_by_role("textbox", name="Policies", exact=True)
    area.fill("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nspec:\n  ")
    area.press("Control+End")
    area.press_sequentially("fail")
    options = page.get_by_role("listbox", name="Completions").get_by_role("option")
    expect(options).to_have_text(
        ["failurePolicy string, one of Ignore, Fail", re.compile("validationFailureAction "), re.compile("Overrides")]
    )
    area.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    area.press("ArrowUp")
    area.press("Enter")
    expect(area).to_have_value("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nspec:\n  failurePolicy: ")
    area.press("Control+Space")
    expect(options).to_have_text([re.compile("Ignore"), re.compile("Fail")])
    assert [] == axe_findings(page)
    area.press("Escape")
    expect(options).to_have_count(0)
    expect(area).to_be_focused()


def test_functions_and_fields_are_documented_under_the_pointer(visit: Visit) -> None:
    """The documentation also appears under the text cursor, by keyboard."""
    page = visit.open("playground")
    area = page.get_by_role("textbox", name="Policies", exact=True)
    area.fill(POLICY.replace("name a version", '"{{ to_upper(request.name) }}"'))
    lines = area.input_value().split("\n")
    number = next(index for index, line in enumerate(lines) if "to_upper" in line)
    box = area.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 8 + 7.8 * (lines[number].index("to_upper") + 2), box["y"] + 8 + 19.5 * (number + 0.5))
    tooltip = page.get_by_role("tooltip")
    expect(tooltip).to_contain_text("to_upper(string) string")
    page.mouse.move(0, 0)
    expect(tooltip).to_have_count(0)
    area.press("Control+Home")
    area.press("ArrowDown")
    area.press("Control+i")
    expect(tooltip).to_contain_text("kind")
    assert [] == axe_findings(page)


def test_a_policy_is_checked_for_a_chosen_kubernetes_version(visit: Visit) -> None:
    """A function of a later version is a warning, until the newest is chosen again; a link keeps the choice."""
    page = visit.open("playground")
    write(page, "Policies", VERSIONED)
    write(page, "Resources", POD)
    page.get_by_label("Kubernetes").select_option("1.27")
    warning = page.get_by_role("status").filter(has_text="Kubernetes 1.27:")
    expect(warning).to_contain_text("policies:7")
    page.get_by_role("button", name="Share").click()
    page.wait_for_url("**/#/playground/*")
    page.reload()
    expect(page.get_by_label("Kubernetes")).to_have_value("1.27")
    page.get_by_label("Kubernetes").select_option("")
    expect(warning).to_have_count(0)
