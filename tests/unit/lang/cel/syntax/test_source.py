"""Places in an expression, and cel-go's error layout."""

import pytest

from pyverno.lang.cel.syntax.source import CompileError, Issue, Source


@pytest.mark.parametrize(
    ("text", "offset", "expected"),
    [("abc", 0, (1, 0)), ("abc", 2, (1, 2)), ("a\nbc", 2, (2, 0)), ("a\nbc", 3, (2, 1))],
)
def test_an_offset_has_a_line_and_a_column(text: str, offset: int, expected: tuple[int, int]) -> None:
    """Lines count from 1 and columns from 0."""
    assert Source(text).place(offset) == expected


def test_an_issue_shows_the_line_and_a_caret() -> None:
    """The layout is cel-go's: place and text, the source line, dots and a caret."""
    shown = Issue(6, "undefined field 'replicas'").display(Source("object.replicas > 1"))
    assert shown == "ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^"


def test_characters_outside_ascii_get_wide_dots() -> None:
    """cel-go marks a wide character with a wide dot, and points at one with a wide caret."""
    assert Issue(1, "x").display(Source("é+")).splitlines()[-1] == " | ．^"
    assert Issue(0, "x").display(Source("é+")).splitlines()[-1] == " | ＾"


def test_a_compile_error_lists_its_issues_in_order() -> None:
    """Several problems are printed by place."""
    error = CompileError((Issue(2, "later"), Issue(0, "first")), Source("a b"))
    assert [issue.message for issue in error.issues] == ["first", "later"]
    assert error.offset == 0
    assert str(error).count("ERROR: <input>") == 2


def test_a_report_shows_a_hundred_problems_and_counts_the_others():
    """As cel-go's: an expression with thousands of problems does not make a report of gigabytes."""
    source = Source("a" * 200)
    report = CompileError(tuple(Issue(offset, "wrong") for offset in range(150)), source).message
    assert 100 == report.count("ERROR: ")
    assert "50 more errors were truncated" == report.splitlines()[-1]


def test_a_long_line_is_left_out_of_a_report():
    """As cel-go's: a line of more than 16,384 bytes is named by its place only."""
    assert "ERROR: <input>:1:3: wrong" == Issue(2, "wrong").display(Source("a" * 16_385))


def test_a_compile_error_shows_a_hundred_issues_and_counts_the_others() -> None:
    """A report of everything that is wrong with a long expression would be much longer than the expression."""
    error = CompileError(tuple(Issue(number, "x") for number in range(150)), Source("a" * 150))
    assert (100, "50 more errors were truncated") == (error.message.count("ERROR:"), error.message.splitlines()[-1])
