"""Flags are read as Go's pflag reads them."""

from __future__ import annotations

import click
import pytest

from pyverno.cli.args.errors import argument_error
from pyverno.cli.args.flags import comma_list, duration, switch, value
from pyverno.cli.args.options import Command, option, split_list, with_verbosity
from pyverno.cli.root import run
from pyverno.errors import UsageError


def _command() -> Command:
    return Command(
        "probe",
        params=[
            click.Argument(["words"], nargs=-1),
            option(comma_list("-r", "--resource", help="")),
            option(switch("-p", "--print-it", help="")),
            option(switch("--on", help="", default=True)),
            option(value("-o", "--output", help="")),
            option(duration("--ttl", help="", default="1h")),
        ],
        callback=lambda **seen: seen,
    )


@pytest.mark.parametrize(
    ("arguments", "name", "expected"),
    [
        (["-r", "a,b", "-r=c", "--resource=d"], "resource", ("a", "b", "c", "d")),
        (["-r", '"a,b",c'], "resource", ("a,b", "c")),
        ([], "resource", ()),
        (["-p"], "print_it", True),
        (["--print-it=true"], "print_it", True),
        (["-p=false"], "print_it", False),
        (["-p", "--print-it=0"], "print_it", False),
        (["--on=false"], "on", False),
        ([], "on", True),
        (["-o=x"], "output", "x"),
        (["-ox"], "output", "x"),
        (["-o", "x", "--output", "y"], "output", "y"),
        (["--", "-o"], "words", ("-o",)),
        (["--ttl", "1m"], "ttl", 60_000_000_000),
        ([], "ttl", 3_600_000_000_000),
    ],
)
def test_forms_of_flags(arguments: list[str], name: str, expected: object) -> None:
    """Lists, switches, short and long values."""
    assert expected == _command().main(arguments, standalone_mode=False)[name]


def test_a_switch_takes_true_and_false_only() -> None:
    """Anything else is an error."""
    with pytest.raises(UsageError, match='invalid argument "maybe" for "--on" flag'):
        _command().main(["--on=maybe"], standalone_mode=False)


@pytest.mark.parametrize(
    ("written", "expected"), [("-v", "--v=2"), ("--v", "--v=2"), ("-v6", "--v=6"), ("-v=6", "--v=6"), ("--vm", "--vm")]
)
def test_verbosity_has_one_form(written: str, expected: str) -> None:
    """A bare flag means level 2."""
    assert [expected] == with_verbosity([written])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["-v", "4", "p.yaml"], ["--v=4", "p.yaml"]),
        (["--v", "4"], ["--v=4"]),
        (["--v", "p.yaml"], ["--v=2", "p.yaml"]),
        (["-v", "²"], ["--v=2", "²"]),
        (["-v6", "4"], ["--v=6", "4"]),
        (["-v", "--", "-v", "4"], ["--v=2", "--", "-v", "4"]),
    ],
)
def test_verbosity_takes_the_next_word_when_it_is_a_level(written: list[str], expected: list[str]) -> None:
    """As klog reads it; any other word is an argument."""
    assert expected == with_verbosity(written)


def test_an_empty_list_has_no_items() -> None:
    """An empty text is no item."""
    assert [] == split_list("")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (click.NoSuchOption("--x"), "unknown flag: --x"),
        (click.NoSuchOption("-x"), "unknown shorthand flag: 'x' in -x"),
        (click.MissingParameter(param=click.Option(["-i", "--image"])), 'required flag(s) "image" not set'),
        (click.MissingParameter(param=click.Argument(["name"])), "accepts 1 arg(s), received 0"),
        (
            click.MissingParameter(param=click.Argument(["names"], nargs=-1)),
            "requires at least 1 arg(s), only received 0",
        ),
        (click.UsageError("Got unexpected extra argument (x)"), 'unknown command "x" for "pyverno"'),
    ],
)
def test_texts_of_wrong_arguments(error: click.ClickException, expected: str) -> None:
    """Those of cobra and pflag."""
    assert expected == argument_error(error)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["oci", "push", "-i", "x"], "accepts 1 arg(s), received 0"),
        (["create", "exception", "a", "b"], "accepts 1 arg(s), received 2"),
        (["create", "exception", "a b", "c d"], "accepts 1 arg(s), received 2"),
        (["create", "exception"], "accepts 1 arg(s), received 0"),
        (["create", "exception", "a"], 'required flag(s) "policy-rules" not set'),
        (["create", "exception", "a", "b", "--nope"], "unknown flag: --nope"),
    ],
)
def test_the_number_of_arguments_is_checked_before_required_flags(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong flags, then a wrong number of arguments, then missing flags: the order and the words of cobra."""
    code = run(words)

    assert (code, capsys.readouterr().err) == (1, f"Error: {error}\n")
