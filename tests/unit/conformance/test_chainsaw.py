"""Expressions, assertion trees and durations of scenarios."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.chainsaw.assertions import mismatches
from tests.conformance.chainsaw.configuration import Configuration, configuration_of, seconds
from tests.conformance.chainsaw.expressions import evaluate, expression_of, substitute
from tests.conformance.chainsaw.failure import ScenarioFailure
from tests.conformance.chainsaw.operations import Context
from tests.conformance.chainsaw.scenario import perform_all, perform_step

HOLDING: list[tuple[Any, Any]] = [
    ({"a": {"b": 1}}, {"a": {"b": 1.0, "c": 2}, "d": 3}),
    ({"a": []}, {"a": []}),
    ({"a": {}}, {"a": {"b": 1}}),
    ({"a": [{"b": 1}, {}]}, {"a": [{"b": 1, "c": 1}, {"x": 1}]}),
    ({"(length(a))": 2}, {"a": [1, 2]}),
    ({"(a[?b == 'x'])": [{"c": 1}]}, {"a": [{"b": "y"}, {"b": "x", "c": 1}]}),
    ({"(a != null)": False}, {}),
    ({"a": "(join('-', ['x', $n]))"}, {"a": "x-name"}),
    ({"~.a": {"(@ > `1`)": True}}, {"a": [2, 3]}),
    ({"~index.a": {"b": "($index)"}}, {"a": [{"b": 0}, {"b": 1}]}),
    ({"(length(a))->size": "($size)"}, {"a": [1]}),
    ({"\\(a)\\": 1}, {"(a)": 1}),
]


@pytest.mark.parametrize(("expected", "value"), HOLDING)
def test_an_assertion_holds(expected: Any, value: Any) -> None:
    """Maps may hold more than is asked, lists may not; keys in parentheses are computed."""
    assert [] == list(mismatches(expected, value, {"n": "name"}))


FAILING: list[tuple[Any, Any, str]] = [
    ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b: expected 1, got 2"),
    ({"a": {"b": 1}}, {"a": {}}, "a.b: there is no such field"),
    ({"a": {"b": 1}}, {"a": None}, "a.b: there is no such field"),
    ({"a": {}}, {"a": None}, "a: must not be null"),
    ({"a": {}}, {}, "a: there is no such field"),
    ({"a": True}, {"a": 1}, "a: expected True, got 1"),
    ({"a": "1"}, {"a": 1}, "a: expected '1', got 1"),
    ({"a": [1]}, {"a": [1, 2]}, "a: expected 1 items, got 2"),
    ({"a": [1]}, {"a": "x"}, "a: expected 1 items, got 'x'"),
    ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, "a[0].b: expected 1, got 2"),
    ({"(a[?b == 'x'])": [{}]}, {"a": []}, "(a[?b == 'x']): expected 1 items, got 0"),
    ({"~.a": {"b": 1}}, {"a": [{"b": 1}, {"b": 2}]}, "a[1].b: expected 1, got 2"),
]


@pytest.mark.parametrize(("expected", "value", "problem"), FAILING)
def test_what_does_not_hold_is_named_with_its_place(expected: Any, value: Any, problem: str) -> None:
    """The first difference names its place."""
    assert [problem] == list(mismatches(expected, value, {}))


def test_bindings_are_values_and_never_parsed() -> None:
    """A binding with quotes, backticks and dollars stays what it is."""
    hostile = "a'b`c\"d\\e $other {{ x }}"
    assert hostile == evaluate("$name", None, {"name": hostile})
    assert "$name" == evaluate("'$name'", None, {"name": 1})
    assert [{"a": "`"}] == evaluate("[$name]", {}, {"name": {"a": "`"}})
    with pytest.raises(ScenarioFailure, match=r"variable not defined: \$gone"):
        evaluate("$gone", None, {})


def test_a_broken_expression_fails_the_scenario() -> None:
    """It never passes as a text."""
    with pytest.raises(ScenarioFailure, match="SyntaxError"):
        evaluate("a[", {}, {})


_BROKEN = {"sleep": {"bindings": [{"name": "a", "value": "($gone)"}], "duration": "0s"}}


def _context(folder: Path) -> Context:
    return Context(None, folder, "default", {}, folder, folder)  # type: ignore[arg-type]  # nothing asks a cluster


def test_a_failure_in_finally_fails_the_step(tmp_path: Path) -> None:
    """Its clean-up is noted for the end of the scenario all the same."""
    noted: list[Any] = []
    with pytest.raises(ScenarioFailure, match=r"^step 1, finally, 1\. .*\$gone"):
        asyncio.run(
            perform_step(_context(tmp_path), {"finally": [_BROKEN], "cleanup": [_BROKEN, _BROKEN]}, "step 1", noted)
        )
    ((where, name, operations),) = noted
    failures = asyncio.run(perform_all(where, operations, f"{name}, cleanup"))
    assert ["step 1, cleanup, 1.", "step 1, cleanup, 2."] == [str(each)[:19] for each in failures]


def test_the_first_failure_of_a_step_is_the_one_that_counts(tmp_path: Path) -> None:
    """Later operations of the step do not run; those of `finally` do."""
    with pytest.raises(ScenarioFailure, match=r"^step 1, 1\."):
        asyncio.run(perform_step(_context(tmp_path), {"try": [_BROKEN, _BROKEN], "finally": [_BROKEN]}, "step 1", []))


@pytest.mark.parametrize(
    ("text", "expression"),
    [("(a)", "a"), ("(jp;a)", "a"), ("a", None), ("(a", None), ("(a\nb)", None), (1, None), (None, None)],
)
def test_texts_in_parentheses_are_expressions(text: Any, expression: str | None) -> None:
    """On one line only: CEL of several lines is just a text."""
    assert expression == expression_of(text)


def test_documents_are_filled_in_by_value_only() -> None:
    """Anchors of policies are keys in parentheses."""
    document = {"metadata": {"name": "($test.metadata.name)"}, "(image)": ["(length($list))", "$list"]}
    bindings = {"test": {"metadata": {"name": "x"}}, "list": [1, 2]}
    assert {"metadata": {"name": "x"}, "(image)": [2, "$list"]} == substitute(document, bindings)


@pytest.mark.parametrize(("text", "expected"), [("1m30s", 90.0), ("200ms", 0.2), ("5s", 5.0), ("1h", 3600.0)])
def test_durations_are_read_as_go_writes_them(text: str, expected: float) -> None:
    """Hours, minutes, seconds and milliseconds."""
    assert expected == seconds(text)


def test_absolute_names_are_below_the_scenario(tmp_path: Path) -> None:
    """Go joins them to the folder; nothing outside of the corpus is read."""
    from tests.conformance.chainsaw.operations import located

    assert [tmp_path / "a.yaml"] == located(tmp_path, "/a.yaml")


@pytest.mark.parametrize(
    ("written", "templates", "apply"),
    [
        ("spec: {templating: {enabled: false}, timeouts: {apply: 10s}}", False, 10.0),
        ("spec: {template: false, timeouts: {apply: 1m30s}}", False, 30.0),
        ("spec: {namespace: {fastDelete: true}}", True, 5.0),
    ],
)
def test_the_nearest_configuration_counts(tmp_path: Path, written: str, templates: bool, apply: float) -> None:
    """Both of its versions are read; operations that write are tried for as long as it allows, up to half a minute."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".chainsaw.yaml").write_text("spec: {template: true, timeouts: {apply: 1s}}")
    (tmp_path / "a" / ".chainsaw.yaml").write_text(written)
    found = configuration_of(tmp_path / "a" / "b", Path.read_text)
    assert (templates, apply) == (found.templates, found.patience("create", {}))


def test_an_operation_is_tried_for_its_own_time() -> None:
    """Its timeout comes before that of its step, and that before the configuration's."""
    found = Configuration().with_timeouts({"assert": "20s"})
    assert (20.0, 7.0, 15.0) == (
        found.patience("wait", {}),
        found.patience("assert", {"timeout": "7s"}),
        found.patience("delete", {}),
    )
