"""Texts of results that a run keeps until its end: exact, compressed, and apart from those that a bug has cost."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyverno.engine.result import ResourceRef, Status
from pyverno.report.finding import Finding
from pyverno.report.formats.mergedreports import merged_reports
from pyverno.report.formats.registry import WRITERS
from pyverno.report.packed import Packed, packed
from pyverno.report.policyreport import ReportEntry
from pyverno.report.problem import Problem
from pyverno.report.table import table_lines
from pyverno.report.text import text_lines
from tests.unit.report.results import result

# 50 KB for an object under 300 policies
MOST_BYTES = 50_000 / 300
POLICIES = 20


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=20)), st.integers(0, 3))
def test_texts_are_what_was_added(texts: list[str], copies: int) -> None:
    """Any text is kept: empty ones, zeros and lone surrogates, also when there are several blocks."""
    texts = [*texts, *(each * 1000 for each in texts)] * copies
    kept = packed(texts)
    assert (texts, len(texts), bool(texts)) == ([*kept], len(kept), bool(kept))
    assert [*kept] == [*kept]


def findings(objects: int) -> Iterator[Finding]:
    """Yield results that have their object in the message; half of them fail."""
    for number in range(objects):
        ref = ResourceRef("v1", "Pod", "team", f"pod-{number}")
        for at in range(POLICIES):
            text = f"Pod {ref.name} has no limit for memory, which container {number * 7} needs"
            yield Finding(f"policy-{at}", "rule", ref, ("fail", "pass")[at % 2], text)


def entries(objects: int) -> Iterator[ReportEntry]:
    """Yield the same as results of rules."""
    rules = [result(policy=f"policy-{at}") for at in range(POLICIES)]
    for number in range(objects):
        ref = ResourceRef("v1", "Pod", "team", f"pod-{number}")
        for at, each in enumerate(rules):
            status = (Status.FAIL, Status.PASS)[at % 2]
            yield ReportEntry(each._replace(status=status, message=f"Pod {ref.name} is {number * 7}"), ref, 1)


WRITTEN: dict[str, Callable[[int], Iterable[str]]] = {
    **{name: lambda objects, write=write: write(findings(objects), ()) for name, write in WRITERS.items()},
    "text": lambda objects: text_lines(findings(objects)),
    "table": lambda objects: table_lines(("A", "B", "C"), ((f.policy, f.rule, f.message) for f in findings(objects))),
    "report": lambda objects: merged_reports(entries(objects)),
    "report in JSON": lambda objects: merged_reports(entries(objects), form="json"),
}


def peak(write: Callable[[int], Iterable[str]], objects: int) -> int:
    """Return the most memory that a document takes while it is written."""
    tracemalloc.start()
    try:
        for _ in write(objects):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", WRITTEN)
def test_a_format_keeps_little_of_a_result(name: str) -> None:
    """Whatever the format: a run with many results does not keep them as objects."""
    write = WRITTEN[name]
    peak(write, 2)
    few, many = (600, 850) if name == "html" else (150, 400)  # a page shows 5,000
    grown = peak(write, many) - peak(write, few)
    assert grown / ((many - few) * POLICIES) <= MOST_BYTES


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_a_result_that_cannot_be_written_is_a_problem_of_the_document(name: str) -> None:
    """The other results are there, and so is a problem that the loss adds."""

    class Nameless:
        """An object that no format can name."""

        def __str__(self) -> str:
            raise TypeError("canary")

    ref = ResourceRef("v1", "Pod", "", "a")
    broken = Finding("bad", "r", Nameless(), "fail")  # type: ignore[arg-type]
    problems: list[Problem] = []
    found = [Finding("p", "r", ref, "fail", "first"), broken, Finding("q", "r", ref, "fail", "last")]
    text = "".join(WRITERS[name](found, problems, lambda each, _: problems.append(Problem(f"lost {each.policy}"))))
    assert [True, True, True] == [word in text for word in ("first", "last", "lost bad")]
    assert "canary" not in text


def test_a_packed_list_is_false_when_empty() -> None:
    """As a list is."""
    assert not Packed()
