"""`pyverno test`: run test suites of policies and compare what the policies say with what was expected.

This module holds the flags only; `test_run` does the work.
"""

from __future__ import annotations

import click

from pyverno.cli.args.options import flag, value
from pyverno.cli.args.sections import command
from pyverno.cli.errors import Exit
from pyverno.cli.test.options import DEFAULT_FILE, FORMATS, SuiteOptions, parse_selector
from pyverno.errors import UsageError

__all__ = ["test"]

_HELP = f"""Run the test suites found below folders, or in git repositories.

A suite is a file `{DEFAULT_FILE}` that names policies, resources and the results that are expected. The command ends
with 1 when a result is another one, when a suite can not be loaded, or when --strict finds a check that proves nothing.
"""

_EXAMPLES = """\b
Examples:
  pyverno test .
  pyverno test policies/ --strict --workers 4
  pyverno test . --test-case-selector "policy=require-*, rule=*, resource=bad-pod"
  pyverno test . --output-format junit > results.xml
  pyverno test https://github.com/OWNER/REPOSITORY/FOLDER --git-branch main
"""

_INPUT = (
    value("-f", "--file-name", help="Name of the files with suites.", default=DEFAULT_FILE, metavar="NAME"),
    value("-b", "--git-branch", help="Branch of a git repository.", metavar="BRANCH"),
    value(
        "-t",
        "--test-case-selector",
        help="Run only some rows: policy=P,rule=R,resource=S, any of them, with wildcards.",
        metavar="TEXT",
    ),
)
_RUN = (
    flag("--strict", help="Fail for checks that prove nothing: excluded resources, unknown rules and names, ..."),
    flag("--require-tests", help="Fail when there are no suites."),
    flag("--registry", help="Read image registries for imageRegistry context entries."),
    value("--workers", help="Number of processes that run suites.", default=1, type=int),
)
_OUTPUT = (
    value(
        "-o",
        "--output-format",
        help="Form of the results, instead of tables.",
        default="",
        type=click.Choice([*FORMATS, ""]),
        metavar=f"[{'|'.join(FORMATS)}]",
    ),
    flag("--detailed-results", help="Add messages and differences."),
    flag("--fail-only", help="Sum up the rows that failed."),
    flag("--remove-color", help="Never use colours."),
)


def _test(sources: tuple[str, ...], **flags: object) -> None:
    from pyverno.cli.test.run import run_tests

    raise Exit(run_tests(_options(sources, flags)))


def _options(sources: tuple[str, ...], flags: dict[str, object]) -> SuiteOptions:
    workers = flags["workers"]
    if not isinstance(workers, int) or workers < 1:
        raise UsageError(f"--workers must be at least 1, got {workers}")
    if flags["registry"]:
        from pyverno.cli.errors import report_warning

        report_warning("--registry has no effect: this version of pyverno does not read image registries")
    selector, errors = parse_selector(str(flags["test_case_selector"]))
    same = ("file_name", "git_branch", "output_format", *_SWITCHES)
    return SuiteOptions(
        sources=sources,
        selector=selector,
        selector_errors=errors,
        workers=workers,
        **{name: flags[name] for name in same},  # type: ignore[arg-type]  # click has checked the types
    )


_SWITCHES = ("fail_only", "remove_color", "detailed_results", "require_tests", "strict")

test = command(
    "test",
    _HELP,
    _test,
    {"Suites": _INPUT, "Running": _RUN, "Output": _OUTPUT},
    click.Argument(["sources"], nargs=-1, required=True, metavar="DIR|GIT..."),
    epilog=_EXAMPLES,
)
