"""Plain command lines are read as click reads them."""

from __future__ import annotations

import pytest

from pyverno.cli.args.flags import Flag, comma_list, number, parse_fast, switch, value

FLAGS = (
    comma_list("-r", "--resource", help=""),
    switch("-t", "--table", help=""),
    switch("--wait", help="", default=True),
    value("-o", "--out-file", help=""),
    value("--format", help="", default="text", choices=("text", "json")),
    number("--workers", help="", default=1),
)
DEFAULTS = {"resource": (), "table": False, "wait": True, "out_file": "", "format": "text", "workers": 1}


@pytest.mark.parametrize(
    ("words", "arguments", "changed"),
    [
        ([], (), {}),
        (["a", "", "b"], ("a", "", "b"), {}),
        (["-r", "a,b", "x", "--resource", "c", "-r", ""], ("x",), {"resource": ("a", "b", "c")}),
        (["-t", "--table", "--wait"], (), {"table": True}),
        (["-o", "a", "--out-file", "b,c"], (), {"out_file": "b,c"}),
        (["--format", "json", "--workers", "4"], (), {"format": "json", "workers": 4}),
    ],
)
def test_plain_words_are_read(words: list[str], arguments: tuple[str, ...], changed: dict[str, object]) -> None:
    """Names, values and arguments in any order; lists grow, of values the last one counts."""
    assert (arguments, DEFAULTS | changed) == parse_fast(FLAGS, words)


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["-"],
            ["--"],
            ["--help"],
            ["-h"],
            ["-x"],
            ["--resourc", "a"],
            ["--resource=a"],
            ["-r=a"],
            ["-ra"],
            ["-tr", "a"],
        ),
        *(["-r"], ["-r", "-"], ["-r", "-t"], ["-r", '"a,b"'], ["-r", "a\nb"], ["--format", "xml"], ["--workers", "x"]),
        *(["--no-wait"], ["--wait=false"], ["--v", "4"]),
    ],
)
def test_everything_else_is_left_to_click(words: list[str]) -> None:
    """Invalid options too are left to click, which reports the error."""
    assert parse_fast(FLAGS, ["a", *words]) is None


def test_a_value_is_named_after_its_first_long_name() -> None:
    """As click does."""
    assert "out_file" == Flag(("-o", "--out-file", "--other"), "text", "").field
