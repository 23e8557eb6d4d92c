"""`pyverno analyze`: the flags of the command."""

from __future__ import annotations

import click

from pyverno.cli.args.flags import comma_list, number, repeated, switch, value
from pyverno.cli.args.sections import command
from pyverno.cli.args.shared import CLUSTER, FIRST_OBJECTS, KUBE_VERSION, SEED, output_format
from pyverno.cli.errors import Exit

__all__ = ["analyze"]

_HELP = """Find what policies do together: conflicts, loops, rules that add nothing.

POLICIES are files, folders, git addresses, or `-` for stdin. Objects of the kinds that they match are generated from
the schemas of Kubernetes, steered by the fields and constants of each policy; only objects that an API server admits
count. Every finding shows the objects on which the engine found it: it states what was tried, and is no proof.

The exit code is 1 when there are findings, and 2 when something cannot be read or no object was
tried.
"""


def _analyze(policies: tuple[str, ...], **flags: object) -> None:
    from pyverno.cli.analyze.options import AnalyzeOptions
    from pyverno.cli.analyze.run import run_analyze

    given = {key: tuple(each) if isinstance(each, list) else each for key, each in flags.items()}
    raise Exit(run_analyze(AnalyzeOptions(policies=policies, **given)))  # type: ignore[arg-type]


analyze = command(
    "analyze",
    _HELP,
    _analyze,
    {
        "Findings": (
            comma_list("--select", help="Codes of the checks to run, or their beginnings; all by default."),
            comma_list("--ignore", help="Codes of checks to leave out, or their beginnings."),
            FIRST_OBJECTS,
            switch(
                "-c", "--cluster", help="Begin with the objects of a cluster, of the kinds that the policies match."
            ),
            *CLUSTER,
            repeated(
                "--recorded",
                help="Begin with the objects of recorded requests: AdmissionReviews and audit logs.",
                metavar="DIR",
            ),
            number(
                "-n",
                "--objects",
                help="Objects to generate, shared by the policies.",
                default=4000,
                least=0,
                most=10_000_000,
            ),
            SEED,
            KUBE_VERSION,
        ),
        "Output": (
            output_format("text", "json", "yaml"),
            switch("--costs", help="Also print the evaluation steps that each rule takes."),
            switch("-q", "--quiet", help="Print findings without their objects and without a summary."),
            value("--explain", help="Describe a check, and run none.", metavar="CODE"),
            switch("--list", help="List the checks, and run none.", key="lists"),
        ),
    },
    click.Argument(["policies"], nargs=-1),
    examples=(
        "pyverno analyze policies/",
        "pyverno analyze policies/ exceptions/ -r manifests/",
        "pyverno analyze policies/ --cluster",
        "pyverno analyze policies/ --select PA1 -n 20000",
        "pyverno analyze policies/ --costs -o json",
        "pyverno analyze --explain PA101",
    ),
)
