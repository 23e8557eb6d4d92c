"""Counts, groups, and the comparison with an earlier collection."""

from __future__ import annotations

import json
import re

from pyverno.report.collected import STATUSES, read_report
from pyverno.report.csvtext import csv_text
from pyverno.report.html import html_page
from pyverno.report.overview import GROUPINGS, overview_of
from tests.unit.report.test_collected import report

FAIL = {"policy": "p", "rule": "r", "result": "fail", "severity": "high", "message": "no"}
PASS = {"policy": "q", "rule": "r", "result": "pass"}


def test_groups_with_failures_come_first() -> None:
    """Each group has its counts and the worst severity of its problems."""
    overview = overview_of(read_report(report(PASS, FAIL)))
    assert [("p", "high", 1), ("q", "", 0)] == [(each.name, each.severity, each.problems) for each in overview.groups]


def test_results_can_be_grouped_by_all_of_their_fields() -> None:
    """Each grouping keeps every result."""
    for grouping in GROUPINGS:
        overview = overview_of(read_report(report(PASS, FAIL)), grouping)
        assert 2 == sum(sum(group.counts.values()) for group in overview.groups)


def test_policies_of_different_kinds_with_one_name_have_a_group_each() -> None:
    """A ClusterPolicy and the ValidatingPolicy that replaces it are counted apart; other groupings know no source."""
    results = report(
        {**FAIL, "source": "kyverno"}, {**FAIL, "source": "KyvernoValidatingPolicy", "result": "pass"}, PASS
    )
    overview = overview_of(read_report(results))
    assert [("p (kyverno)", 1, 0), ("p (KyvernoValidatingPolicy)", 0, 1), ("q", 0, 1)] == [
        (each.label, each.counts["fail"], each.counts["pass"]) for each in overview.groups
    ]
    written = overview.to_json()["groups"]
    assert [("p", "kyverno"), ("p", "KyvernoValidatingPolicy"), ("q", None)] == [
        (each["name"], each.get("source")) for each in written
    ]
    assert "p (kyverno)" in html_page(overview)
    assert 2 == len(overview_of(read_report(results), "rule").groups) - 1
    assert ["high"] == [each.name for each in overview_of(read_report(report(FAIL)), "severity").groups]


def test_new_and_resolved_problems_are_separated_from_known_ones() -> None:
    """Results are compared with an earlier collection; a pass is neither new nor resolved."""
    before = list(read_report(report(FAIL, {**FAIL, "policy": "old"}, PASS)))
    now = list(read_report(report(FAIL, {**FAIL, "policy": "fresh"})))
    overview = overview_of(now, baseline=before)
    assert (["fresh"], ["old"]) == (
        [each.finding.policy for each in overview.new],
        [each.finding.policy for each in overview.resolved],
    )


def test_an_empty_baseline_makes_all_problems_new() -> None:
    """An empty baseline differs from no baseline."""
    now = list(read_report(report(FAIL)))
    assert (1, 0) == (len(overview_of(now, baseline=[]).new), len(overview_of(now).new))


def test_a_page_has_no_markup_of_its_results() -> None:
    """Names and messages are data: nothing in them becomes an element or an attribute.

    Register: CVE-2026-44245.
    """
    hostile = '"><script>alert(1)</script><img src=x onerror=y>'
    results = report({**FAIL, "message": hostile, "policy": hostile, "rule": hostile})
    page = html_page(overview_of(read_report(results)), made=hostile, title=hostile)
    assert "<script" not in page and "<img" not in page
    assert "default-src 'none'" in page


def test_a_page_names_what_could_not_be_read() -> None:
    """A page without all reports must not look like a clean result."""
    page = html_page(overview_of([], problems=["policyreports cannot be read: forbidden"]))
    assert "Not complete:</strong> policyreports cannot be read: forbidden" in page


def test_cells_of_a_spreadsheet_are_no_formulas() -> None:
    """A message that begins with `=` is text."""
    text = csv_text(read_report(report({**FAIL, "message": '=HYPERLINK("x")'})))
    assert ',"\'=HYPERLINK(""x"")",' in text


def test_an_overview_is_json() -> None:
    """It has the keys for new and resolved problems only after a comparison."""
    found = json.loads(json.dumps(overview_of(read_report(report(FAIL))).to_json()))
    assert (["groupedBy", "groups", "results", "summary"], 1) == (sorted(found), found["summary"]["fail"])


def test_the_page_can_be_read_by_everybody() -> None:
    """White text on the colour of each status has the contrast of WCAG AA, and the content is the main landmark."""
    page = html_page(overview_of([]))
    colors = {found.group(2): found.group(1) for found in re.finditer(r'background:(#\w{6})">(\w+)<', page)}
    assert {*STATUSES} == {*colors}
    assert [] == [(status, color) for status, color in colors.items() if 1.05 / (_luminance(color) + 0.05) < 4.5]
    assert re.search(r"<body><main>.*</main></body>", page, re.DOTALL)


def _luminance(color: str) -> float:
    parts = [int(color[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
