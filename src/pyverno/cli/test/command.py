"""`pyverno test`: run test suites of policies and compare the results with the expected ones."""

from __future__ import annotations

import click

from pyverno.cli.args.configpath import runs_as_kyverno
from pyverno.cli.args.sections import command
from pyverno.cli.errors import Exit
from pyverno.cli.registries import read_registry_access
from pyverno.cli.test.flags import SECTIONS
from pyverno.cli.test.options import DEFAULT_FILE, REPORT_FORMS, SuiteOptions, parse_selector
from pyverno.errors import UsageError

__all__ = ["test"]

_HELP = f"""Run the test suites found below folders, or in git repositories.

A suite is a file `{DEFAULT_FILE}` that names policies, resources and expected results. The command ends
with 1 when a result differs, when a suite cannot be loaded, when --strict finds a check that proves nothing, or when
coverage or mutation score is below --fail-under.
"""


def _test(sources: tuple[str, ...], **flags: object) -> None:
    from pyverno.cli.test.run import run_tests

    options = _options(sources, flags)
    if options.watch:
        from pyverno.cli.test.watch import watch_tests

        watch_tests(options, run_tests)
    raise Exit(run_tests(options))


def _options(sources: tuple[str, ...], flags: dict[str, object]) -> SuiteOptions:
    workers = flags["workers"]
    if not isinstance(workers, int) or workers < 1:
        raise UsageError(f"--workers must be at least 1, got {workers}")
    _check(flags)
    selector, errors = parse_selector(str(flags["test_case_selector"]))
    same = ("file_name", "git_branch", "output_format", "dns", *_SWITCHES, *_MEASURES)
    return SuiteOptions(
        sources=sources,
        selector=selector,
        selector_errors=errors,
        workers=workers,
        allow_empty=bool(flags["allow_empty"]) or runs_as_kyverno(),
        registry=read_registry_access(registry=bool(flags["registry"]), trust_root=str(flags["trust_root"] or "")),
        **{name: flags[name] for name in same},  # type: ignore[arg-type]  # click has checked the types
    )


def _check(flags: dict[str, object]) -> None:
    measures = flags["coverage"] or flags["mutate"]
    for name in ("fail_under", "report"):
        if flags[name] and not measures:
            raise UsageError(f"--{name.replace('_', '-')} needs --coverage or --mutate")
    if flags["allow_empty"] and flags["require_tests"]:
        raise UsageError("--allow-empty and --require-tests cannot be used together")
    report = str(flags["report"])
    if report and not report.endswith(REPORT_FORMS):
        raise UsageError(f"the file of --report must end with {', '.join(REPORT_FORMS)}, got `{report}`")
    if flags["write"] and (measures or flags["test_case_selector"]):
        raise UsageError("--write cannot be used with --coverage, --mutate or --test-case-selector")


_MEASURES = ("coverage", "mutate", "max_mutants", "seed", "fail_under", "report", "write")
_SWITCHES = ("fail_only", "remove_color", "detailed_results", "require_tests", "strict", "watch")

test = command(
    "test",
    _HELP,
    _test,
    SECTIONS,
    click.Argument(["sources"], nargs=-1, required=True, metavar="DIR|GIT..."),
    examples=(
        "pyverno test .",
        "pyverno test policies/ --strict --workers 4",
        "pyverno test policies/ --coverage --fail-under 90",
        "pyverno test policies/ --mutate --workers 4 --report mutants.html",
        "pyverno test policies/ --write",
        'pyverno test . --test-case-selector "policy=require-*, rule=*, resource=bad-pod"',
        "pyverno test . --output-format junit > results.xml",
        "pyverno test https://github.com/kyverno/policies/pod-security --git-branch main",
    ),
)
