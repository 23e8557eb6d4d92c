"""`pyverno jp`: queries, syntax trees and functions as Kyverno prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commandline import Run


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("metadata.name",), '# metadata.name\n"good"\n'),
        (("metadata.name", "-u"), "# metadata.name\ngood\n"),
        (("metadata.name", "--unquoted=false"), '# metadata.name\n"good"\n'),
        (("spec.containers", "-c"), '# spec.containers\n[{"image":"nginx:1.2","name":"main"}]\n'),
        (("keys(metadata)",), '# keys(metadata)\n[\n  "name",\n  "namespace"\n]\n'),
        (("kind", "apiVersion"), '# kind\n"Pod"\n# apiVersion\n"v1"\n'),
    ],
)
def test_query_prints_the_expression_and_its_result(cli: Run, arguments: tuple[str, ...], printed: str) -> None:
    """On a YAML file."""
    ran = cli("jp", "query", *arguments, "--input", "good.yaml")
    assert (0, printed, "") == (ran.code, ran.out, ran.err)


def test_query_reads_expressions_from_files(cli: Run, folder: Path) -> None:
    """The closing newline of a file is part of the expression; arguments come first."""
    (folder / "a.txt").write_text("kind\n")
    (folder / "b.txt").write_text("apiVersion")
    ran = cli("jp", "query", "metadata.name", "-q", "a.txt,b.txt", "-i", "good.yaml")
    assert '# metadata.name\n"good"\n# kind\n\n"Pod"\n# apiVersion\n"v1"\n' == ran.out


def test_query_prompts_for_what_is_missing(cli: Run) -> None:
    """On stdout, also in a pipe."""
    asked = "Reading from terminal input.\nEnter {} and hit Ctrl+D.\n"
    ran = cli("jp", "query", "a", stdin='{"a": "<"}')
    assert asked.format("input object") + '# a\n"\\u003c"\n' == ran.out
    ran = cli("jp", "query", "-i", "good.yaml", stdin="kind")
    assert asked.format("a jmespath expression") + '# kind\n"Pod"\n' == ran.out


@pytest.mark.parametrize(
    ("arguments", "stdin", "error"),
    [
        ((), "", "at least one query or input object is required"),
        (("a[",), "{}", "failed to compile JMESPath: a[, error: SyntaxError: "),
        (("a.b",), "{}", "error evaluating JMESPath expression: "),
        (("a",), "{", "error parsing input json: -:"),
        (("a",), "a: 1\n---\na: 2\n", "error parsing input json: `-` holds 2 documents, expected one"),
        (("a", "-i", "gone.yaml"), "", "failed open file gone.yaml: no such file or directory"),
    ],
)
def test_query_reports_errors(cli: Run, arguments: tuple[str, ...], stdin: str, error: str) -> None:
    """On stderr, with exit code 1."""
    ran = cli("jp", "query", *arguments, stdin=stdin)
    assert (1, True) == (ran.code, ran.err.startswith(f"Error: {error}")), ran.err


def test_parse_prints_the_tree(cli: Run, folder: Path) -> None:
    """From arguments, from files and from stdin."""
    tree = '# a\nASTField {\n  value: "a"\n}\n\n'
    (folder / "e.txt").write_text("a")
    assert tree == cli("jp", "parse", "a").out
    assert tree == cli("jp", "parse", "--file", "e.txt").out
    assert cli("jp", "parse", stdin="a").out.endswith(f"Enter a jmespath expression and hit Ctrl+D.\n{tree}")


def test_parse_points_at_the_fault(cli: Run) -> None:
    """The expression, and a caret below it."""
    ran = cli("jp", "parse", "a[")
    assert 1 == ran.code
    assert ran.err.endswith("\na[\n  ^\n")


def test_function_lists_what_kyverno_adds(cli: Run) -> None:
    """Sorted by signature; a standard one is shown when it is named, an unknown one is an error."""
    out = cli("jp", "function").out
    assert "Name: truncate\n  Signature: truncate(string, number) string\n  Note:      " in out
    names = [line for line in out.splitlines() if line.startswith("  Signature: ")]
    assert sorted(names) == names
    assert "Name: keys\n" not in out
    assert 1 == cli("jp", "function", "truncate").out.count("Name: ")
    assert "Name: keys\n" in cli("jp", "function", "keys").out
    ran = cli("jp", "function", "truncat")
    assert (1, "", "Error: unknown function `truncat`: did you mean `truncate`?\n") == (ran.code, ran.out, ran.err)


def test_without_a_command_it_prints_its_help(cli: Run) -> None:
    """An unknown one is an error with Kyverno's text."""
    assert cli("jp").out.startswith("Usage: pyverno jp ")
    assert 'Error: unknown command "x" for "pyverno jp"\n' == cli("jp", "x").err


def test_an_unknown_function_has_a_suggestion(cli: Run) -> None:
    """After the text of Kyverno's command."""
    ran = cli("jp", "query", "truncat(@, `1`)", stdin="abc")
    text = "error evaluating JMESPath expression: unknown function: truncat: did you mean `truncate`?"
    assert (1, f"Error: {text}\n") == (ran.code, ran.err)


@pytest.mark.parametrize("flags", [(), ("--compact",), ("--unquoted",)])
@pytest.mark.parametrize("query", ["avg(`[]`)", "[a, avg(`[]`)]", "{b: divide(avg(`[]`), `2`)}"])
def test_a_result_that_json_cannot_hold_is_an_error(cli: Run, query: str, flags: tuple[str, ...]) -> None:
    """With Kyverno's text, after the line of the query."""
    ran = cli("jp", "query", "kind", query, "apiVersion", *flags, "--input", "good.yaml")
    assert ran.out.startswith("# kind\n")
    assert ran.out.endswith(f"\n# {query}\n")
    assert (1, "Error: error marshalling result to JSON: json: unsupported value: NaN\n") == (ran.code, ran.err)
