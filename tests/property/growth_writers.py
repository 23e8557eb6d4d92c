"""Writers of objects and reports under the doubling law: server-side apply, patches of the sandbox, and reports.

Objects have one entry for each part of the size; two managers own them. Reports have as many results, and messages that
grow. Every public function of `report` has a row here or a reason in `REPORT_EXEMPT`.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from pyverno.engine.explain.change import Change
from pyverno.engine.explain.edits import Edit
from pyverno.engine.explain.nodes import CheckNode, Node, PatternNode, RuleTrace, Shown
from pyverno.engine.result import FailureAction, ResourceRef, RuleResult, RuleType, Status
from pyverno.engine.rule import Family, PolicyInfo, RuleInfo
from pyverno.errors import NOWHERE, UsageError
from pyverno.kube.apply.schematree import schema_tree_for
from pyverno.kube.apply.serverside import apply, track
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.patch.strategicpatch import strategic_patch
from pyverno.kube.reportapis import POLICY_REPORTS
from pyverno.kube.schemas import schema_set
from pyverno.kube.yaml.documents import Document
from pyverno.report.collected import Collected, read_report, worst_first
from pyverno.report.csvtext import csv_rows, csv_text
from pyverno.report.ephemeral import Reported, admission_report
from pyverno.report.exceptions import exception_for
from pyverno.report.explanation import Places, change_lines, rule_lines
from pyverno.report.finding import Finding, finding
from pyverno.report.formats.azure import azure
from pyverno.report.formats.github import github
from pyverno.report.formats.gitlab import gitlab
from pyverno.report.formats.htmlpage import page
from pyverno.report.formats.jobsummary import job_summary
from pyverno.report.formats.junit import Case, junit, write_case
from pyverno.report.formats.listing import indented, json_document, json_list, yaml_document
from pyverno.report.formats.mergedreports import merged_reports
from pyverno.report.formats.sarif import sarif
from pyverno.report.formats.spreadsheet import spreadsheet
from pyverno.report.formats.tap import tap
from pyverno.report.formats.teamcity import teamcity
from pyverno.report.html import html_page
from pyverno.report.markdown import markdown_table
from pyverno.report.objectreport import ReportSubject, merge_results, reports_of, results_digest
from pyverno.report.overview import overview_of
from pyverno.report.packed import packed
from pyverno.report.policyreport import ReportEntry
from pyverno.report.problem import problems_of
from pyverno.report.table import draw_table, table_lines
from pyverno.report.text import text_lines
from tests.property.growth import Call, Shape, Subject

__all__ = ["REPORT_EXEMPT", "REPORT_ROWS", "report_functions", "writer_subjects"]

_ROW_BYTES: Final = 64
_REF: Final = ResourceRef("v1", "Pod", "n", "p")
_ABOUT: Final = Reported(_REF, "u", GVK("", "v1", "Pod"), GVR("", "v1", "pods"), "r")
_DOCUMENT: Final = Document({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, "")
_SUBJECT: Final = ReportSubject(_REF, "u")
_API: Final = POLICY_REPORTS
_WRITE: Final = {"schema": schema_tree_for(schema_set(), GVK("", "v1", "Pod")), "version": "v1"}

REPORT_EXEMPT: Final[Mapping[str, str]] = dict.fromkeys(
    (
        "ephemeral.policy_label", "policyreport.plain_result", "policyreport.result_object",
        "policyreport.result_order", "summary.reported_status", "objectreport.report_name", "objectreport.subject_of",
        "objectreport.bounded_result",
        "collected.is_report", "problem.located", "problem.problem_of", "text.plain",
        "identity.identity", "markdown.markdown_row", "collected.rank",
        "csvtext.csv_row", "html.html_row", "rendered.no_bug",
        "rendered.rendered", "formats.junit.write_case", "formats.listing.indented",
    ),
    "writes one result, as part of a function that has a row",
) | {
    "objectmark.fits": "reads one object, as its digest does",
    "objectmark.mark_of": "a digest of one object, whose JSON the review has read",
    "ephemeral.background_report": "writes what `admission_report` writes, with other labels",
    "formats.listing.yaml_document": "is beside `json_document` in its row",
    "csvtext.csv_lines": "writes what `csv_text` joins",
}  # fmt: skip


def _object(size: int, *, changes: bool = False) -> JSONObject:
    count = max(1, size // (2 * _ROW_BYTES))
    image = "b" if changes else "a"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "labels": {f"l{number}": image for number in range(count)}},
        "spec": {"containers": [{"name": f"c{number}", "image": image, "args": ["x"]} for number in range(count)]},
    }


def _reversed(body: JSONObject) -> JSONObject:
    return {**body, "spec": {"containers": body["spec"]["containers"][::-1]}}


def _owned(size: int) -> JSONObject:
    """Return an object that one manager applied and another one changed."""
    one = apply(None, _object(size), manager="one", time="2026-01-01T00:00:00Z", force=False, **_WRITE)
    changed = {**_object(size, changes=True), "metadata": {**one["metadata"], "labels": {}}}
    return track(one, changed, manager="two", time="2026-01-01T00:00:01Z", **_WRITE)


def _applies(make: Callable[[int], JSONObject], manager: str) -> Shape:
    def shape(size: int) -> Call:
        live, wanted = _owned(size // 2), make(size // 2)
        return lambda _: apply(live, wanted, manager=manager, time="2026-01-01T00:00:02Z", force=True, **_WRITE)

    return shape


def _tracks(make: Callable[[int], JSONObject]) -> Shape:
    def shape(size: int) -> Call:
        live, after = _owned(size // 2), make(size // 2)
        after = {**after, "metadata": {**after["metadata"], "managedFields": live["metadata"]["managedFields"]}}
        return lambda _: track(live, after, manager="three", time="2026-01-01T00:00:02Z", **_WRITE)

    return shape


def _patches(make: Callable[[int], JSONObject]) -> Shape:
    def shape(size: int) -> Call:
        schemas, live, patch = schema_set(), _object(size // 2), make(size // 2)
        return lambda _: strategic_patch(live, patch, schemas=schemas, definition=schemas.kinds["", "v1", "Pod"])

    return shape


_OBJECTS: Final[Mapping[str, Callable[[int], JSONObject]]] = {
    "the same": _object,
    "changed": lambda size: _object(size, changes=True),
    "reversed": lambda size: _reversed(_object(size)),
    "left out": lambda _: _object(1),
}


def _result(number: int, message: str) -> RuleResult:
    policy = PolicyInfo("ClusterPolicy", "kyverno.io/v1", f"p{number}", Family.RULES)
    info = RuleInfo(policy, f"r{number}", RuleType.VALIDATION, NOWHERE)
    return RuleResult(info, FailureAction.AUDIT, (Status.FAIL, Status.PASS, Status.ERROR)[number % 3], message)


def _results(size: int) -> list[RuleResult]:
    return [_result(number, "m" * (_ROW_BYTES // 2)) for number in range(max(1, size // _ROW_BYTES))]


def _entries(size: int) -> list[ReportEntry]:
    """Return results of many objects, the last one first."""
    return [
        ReportEntry(result, ResourceRef("v1", "Pod", f"n{number % 7}", f"p{number}"), number)
        for number, result in enumerate(_results(size))
    ][::-1]


def _findings(size: int) -> list[Finding]:
    return [finding(result, _REF, _DOCUMENT) for result in _results(size)]


def _cells(size: int) -> list[list[str]]:
    return [[f"row {number}", "x" * (_ROW_BYTES // 2), "a|b"] for number in range(max(1, size // _ROW_BYTES))]


def _both(
    write: Callable[[Any], object], make: Callable[[int], Any], long: Callable[[str], Any]
) -> Mapping[str, Shape]:
    """Return shapes with many rows and with one long text."""

    def many(size: int) -> Call:
        rows = make(size)
        return lambda _: write(rows)

    def one(text: str) -> Shape:
        def shape(size: int) -> Call:
            rows = long((text * size)[:size])
            return lambda _: write(rows)

        return shape

    return {"many": many, **{f"long {name}": one(text) for name, text in _TEXTS.items()}}


_TEXTS: Final = {"letters": "a", "lines": "a\n", "marks": "<&\"'|%`", "wide": "\u4e00", "escapes": "\x1b[1m\x00"}


def _entry(text: str) -> ReportEntry:
    return ReportEntry(_result(0, text), _REF, 1)


def _item(number: int, message: str) -> JSONObject:
    resource = {"kind": "Pod", "namespace": f"n{number % 7}", "name": f"p{number}"}
    return {
        "policy": f"p{number}",
        "rule": "r",
        "result": ("fail", "pass", "error")[number % 3],
        "message": message,
        "resources": [resource],
        "timestamp": {"seconds": number},
    }


def _items(size: int) -> list[JSONObject]:
    return [_item(number, "m" * (_ROW_BYTES // 2)) for number in range(max(1, size // _ROW_BYTES))][::-1]


def _collected(size: int) -> list[Collected]:
    return [*read_report({"results": _items(size)})]


_NO_PLACES: Final = Places(lambda _: None, lambda _, __: None)


def _pattern_node(number: int, text: str) -> PatternNode:
    outcome = ("fail", "pass")[number % 2]
    return PatternNode("value", ("spec", number, "image"), outcome, wanted=Shown("a"), found=Shown(text))


def _rule_trace(nodes: Sequence[Node]) -> RuleTrace:
    pattern = PatternNode("map", (), "fail", children=tuple(nodes))
    return RuleTrace(_result(0, "m").rule, True, children=(CheckNode("pattern", (), ("fail",), children=(pattern,)),))


def _change(texts: Sequence[str]) -> Change:
    return Change(tuple(Edit(("spec", number), text) for number, text in enumerate(texts)), Status.PASS, (), {})


_FORMATS: Final[Mapping[str, Callable[[list[Finding]], Iterator[str]]]] = {
    "github.github": github,
    "sarif.sarif": sarif,
    "gitlab.gitlab": gitlab,
    "azure.azure": azure,
    "teamcity.teamcity": teamcity,
    "tap.tap": tap,
    "jobsummary.job_summary": job_summary,
    "htmlpage.page": page,
    "spreadsheet.spreadsheet": spreadsheet,
}


REPORT_ROWS: Final[Mapping[str, Mapping[str, Shape]]] = {
    "ephemeral.admission_report": _both(
        lambda results: admission_report(_ABOUT, results, 1), _results, lambda text: [_result(0, text)]
    ),
    "exceptions.exception_for": _both(
        lambda entries: [exception_for(each) for each in entries], _entries, lambda text: [_entry(text)]
    ),
    "explanation.rule_lines": _both(
        lambda nodes: [*rule_lines(_rule_trace(nodes), _NO_PLACES)],
        lambda size: [_pattern_node(number, row[1]) for number, row in enumerate(_cells(size))],
        lambda text: [_pattern_node(0, text)],
    ),
    "explanation.change_lines": _both(
        lambda texts: [*change_lines(_change(texts), _NO_PLACES)],
        lambda size: [row[1] for row in _cells(size)],
        lambda text: [text],
    ),
    "finding.finding": _both(
        lambda results: [finding(each, _REF, _DOCUMENT) for each in results],
        _results,
        lambda text: [_result(0, text)],
    ),
        "formats.junit.junit": _both(
        lambda cases: [*junit(map(write_case, cases))],
        lambda size: [Case("p", "r", f"n/{row[0]}", "Fail", message=row[1], is_failure=True) for row in _cells(size)],
        lambda text: [Case("p", "r", "n/p", "Fail", message=text, is_failure=True)],
    ),
    "markdown.markdown_table": _both(
        lambda rows: markdown_table(("a", "b", "c"), rows), _cells, lambda text: [["a", text, "c"]]
    ),
    "problem.problems_of": _both(
        problems_of,
        lambda size: [UsageError(row[1]) for row in _cells(size)],
        lambda text: [UsageError(text)],
    ),
    "text.text_lines": _both(
        lambda findings: [*text_lines(findings)],
        _findings,
        lambda text: [finding(_result(0, text), _REF, _DOCUMENT)],
    ),
    "formats.mergedreports.merged_reports": _both(
        lambda entries: [*merged_reports(entries), *merged_reports(entries, form="json")],
        _entries,
        lambda text: [_entry(text)],
    ),
    "packed.packed": _both(
        lambda texts: [*packed(texts)], lambda size: [row[1] for row in _cells(size)], lambda text: [text]
    ),
    "formats.listing.json_document": _both(
        lambda items: [*json_document({"a": iter(items)}), *yaml_document({"a": iter(items)})],
        _items,
        lambda text: [_item(0, text)],
    ),
    "formats.listing.json_list": _both(
        lambda texts: [*json_list(map(indented, texts))],
        lambda size: [row[1] for row in _cells(size)],
        lambda text: [text],
    ),
    "objectreport.merge_results": _both(
        lambda items: merge_results(items, items[::-1], items), _items, lambda text: [_item(0, text)]
    ),
    "objectreport.results_digest": _both(results_digest, _items, lambda text: [_item(0, text)]),
    "objectreport.reports_of": _both(
        lambda items: [*reports_of(_SUBJECT, items, _API)], _items, lambda text: [_item(0, text)]
    ),
    "collected.read_report": _both(
        lambda items: [*read_report({"results": items})], _items, lambda text: [_item(0, text)]
    ),
    "collected.worst_first": _both(worst_first, _collected, lambda text: [*read_report({"results": [_item(0, text)]})]),
    "overview.overview_of": _both(
        lambda found: overview_of(found, "resource", found[::2]),
        _collected,
        lambda text: [*read_report({"results": [_item(0, text)]})],
    ),
    "csvtext.csv_text": _both(csv_text, _collected, lambda text: [*read_report({"results": [_item(0, text)]})]),
    "html.html_page": _both(
        lambda found: html_page(overview_of(found, "resource", [])),
        _collected,
        lambda text: [*read_report({"results": [_item(0, text)]})],
    ),
    **{
        f"formats.{name}": _both(
            lambda findings, write=write: [*write(findings)],
            _findings,
            lambda text: [finding(_result(0, text), _REF, _DOCUMENT)],
        )
        for name, write in _FORMATS.items()
    },
    "csvtext.csv_rows": _both(lambda rows: csv_rows(("a", "b", "c"), rows), _cells, lambda text: [["a", text, "c"]]),
        "table.table_lines": _both(
        lambda rows: [*table_lines(("a", "b", "c"), rows)], _cells, lambda text: [["a", text, "c"]]
    ),
    "table.draw_table": _both(lambda rows: draw_table(("a", "b", "c"), rows), _cells, lambda text: [["a", text, "c"]]),
}  # fmt: skip


def report_functions() -> Iterator[str]:
    """Yield every public function of `report`, by its name below it."""
    room = import_module("pyverno.report")
    for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        module = import_module(found.name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isfunction(value) and value.__module__ == found.name:
                yield f"{found.name.removeprefix('pyverno.report.')}.{name}"


def writer_subjects() -> Iterator[Subject]:
    """Yield all rows."""
    shapes = {
        f"{name} by manager {manager}": _applies(make, manager)
        for name, make in _OBJECTS.items()
        for manager in ("one", "three")
    }
    yield Subject("kube.apply.serverside.apply", shapes)
    yield Subject("kube.apply.serverside.track", {name: _tracks(make) for name, make in _OBJECTS.items()})
    patches = {name: _patches(make) for name, make in _OBJECTS.items()}
    yield Subject("kube.patch.strategicpatch.strategic_patch", patches)
    for name, rows in REPORT_ROWS.items():
        yield Subject(f"report.{name}", rows)
