"""The flags of `pyverno test`."""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.cli.args.flags import CONFIG, Flag, number, switch, value
from pyverno.cli.test.options import DEFAULT_FILE, FORMATS

__all__ = ["SECTIONS"]

SECTIONS: Mapping[str, tuple[Flag, ...]] = {
    "Suites": (
        value(
            "-f",
            "--file-name",
            help="Name of the files with suites.",
            default=DEFAULT_FILE,
            metavar="NAME",
            role="selection",
        ),
        value("-b", "--git-branch", help="Branch of a git repository.", metavar="BRANCH", role="network"),
        value(
            *("-t", "--test-case-selector"),
            help="Run only some rows: policy=P,rule=R,resource=S, any of them, with wildcards.",
            metavar="TEXT",
            role="selection",
        ),
    ),
    "Running": (
        *CONFIG,
        switch("--watch", help="Run again whenever a file of the suites changes, until interrupted.", role="once"),
        switch(
            "--strict",
            help="Fail for checks that prove nothing: excluded resources, unknown rules and names, ...",
            role="strictness",
        ),
        switch("--allow-empty", help="Accept a run without suites, and one in which no row is run.", role="leniency"),
        switch("--require-tests", help="Fail when no row is run, also under the name `kyverno`.", role="strictness"),
        switch(
            "--registry",
            help="Read registries, for signatures of images and imageRegistry context entries.",
            role="network",
        ),
        value(
            "--trust-root",
            help="File with trusted authorities and logs, for keyless signatures.",
            metavar="FILE",
            role="facts",
        ),
        number("--workers", help="Number of processes that run suites.", default=1, role="programs"),
        switch("--dns", help="Look up the host names for which policies ask (`is_external_url`).", role="network"),
    ),
    "Measuring": (
        switch("--coverage", help="Show which rules and branches of the policies no row covers.", role="strictness"),
        switch(
            "--mutate",
            help="Run the suites against changed policies, and show the changes that no row detects.",
            role="strictness",
        ),
        number(
            "--fail-under",
            help="Fail when coverage or mutation score is below this percent.",
            default=0,
            least=0,
            most=100,
            role="strictness",
        ),
        value("--report", help="File for coverage and mutants: .json, .md or .html.", metavar="FILE", role="writes"),
        number(
            "--max-mutants",
            help="Most mutants of one policy, chosen by --seed; 0 = all.",
            default=0,
            least=0,
            role="leniency",
        ),
        number(
            "--seed",
            help="Seed for the choice of mutants when there are more than --max-mutants.",
            default=0,
            role="leniency",
        ),
    ),
    "Writing": (
        switch(
            "--write",
            help="Add rows for results that no row checks to the test files; make one where there is none.",
            role="writes",
        ),
    ),
    "Output": (
        value("-o", "--output-format", help="Format of the results, instead of tables.", choices=FORMATS, role="form"),
        switch("--detailed-results", help="Add messages and differences.", role="form"),
        switch("--fail-only", help="Show only the rows that failed in the summary.", role="form"),
        switch("--remove-color", help="Never use colours.", role="form"),
    ),
}
"""All flags, in the order of the help."""
