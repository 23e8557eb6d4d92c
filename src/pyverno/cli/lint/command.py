"""`pyverno lint`: find mistakes in policies, show them with their lines, and fix some of them."""

from __future__ import annotations

from collections.abc import Mapping

import click

from pyverno.cli.args.flags import CONFIG, Flag, comma_list, switch, value
from pyverno.cli.args.sections import command
from pyverno.cli.errors import Exit

__all__ = ["FORMATS", "SECTIONS", "lint"]

FORMATS = (
    *("text", "json", "yaml", "sarif", "github", "junit"),
    *("gitlab", "azure", "teamcity", "tap", "markdown", "csv", "html"),
)


SECTIONS: Mapping[str, tuple[Flag, ...]] = {
    "Findings": (
        comma_list(
            "--select", help="Codes of the checks to run, or their beginnings; all by default.", role="selection"
        ),
        comma_list("--ignore", help="Codes of checks to leave out, or their beginnings.", role="selection"),
        comma_list("--crd", "--crd-path", help="Files with CustomResourceDefinitions.", key="crds", role="facts"),
        switch("--watch", help="Run again whenever a file of the policies changes, until interrupted.", role="once"),
        switch("--fix", help="Correct what can be corrected safely; the rest of a file stays as it is.", role="writes"),
    ),
    "Output": (
        value("--format", help="Format of the findings.", default="text", choices=FORMATS, role="form"),
        value("-o", "--output", help="The same as --format.", metavar="FORMAT", choices=FORMATS, role="form"),
        switch("-q", "--quiet", help="Print findings without lines of the source and without a summary.", role="form"),
        value("--explain", help="Describe a check, and run none.", metavar="CODE", role="once"),
        *CONFIG,
        switch("--list", help="List the checks, and run none.", key="lists", role="once"),
    ),
}
"""All flags, in the order of the help."""


def _lint(policies: tuple[str, ...], **flags: object) -> None:
    from pyverno.cli.lint.run import LintOptions, run_lint

    raise Exit(run_lint(LintOptions(policies=policies, **flags)))  # type: ignore[arg-type]  # the flags above type them


lint = command(
    "lint",
    "Find mistakes in policies that Kyverno accepts.\n\n"
    "POLICIES are files, folders, git addresses, or `-` for stdin. Exceptions and bindings are compared with the "
    "policies that are given with them. A comment `# pyverno: ignore[PV101]` on a line, or on the line above it, "
    "suppresses findings. The exit code is 1 when there are findings, and 2 when something cannot be read.",
    _lint,
    SECTIONS,
    click.Argument(["policies"], nargs=-1),
    examples=(
        "pyverno lint policies/",
        "pyverno lint policies/ exceptions/ --crd crds/certificates.yaml",
        "pyverno lint policies/ --select PV1,PV2 --ignore PV104",
        "pyverno lint policies/ --fix",
        "pyverno lint policies/ --format sarif > lint.sarif",
        "pyverno lint --explain PV104",
    ),
)
