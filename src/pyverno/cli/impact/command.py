"""`pyverno impact`: the flags of the command."""

from __future__ import annotations

from pyverno.cli.args.flags import number, repeated, switch, value
from pyverno.cli.args.sections import command
from pyverno.cli.args.shared import CLUSTER, output_format
from pyverno.cli.errors import Exit

__all__ = ["impact"]

_HELP = """Show what a change of policies would refuse, allow, change, generate and delete.

Every object, or recorded request, is judged by the policies of --from and by those of --to, in the same way; what
differs is counted by policy, namespace and owner, with examples. Without --from the new policies are compared with
none.

The exit code is 1 when --fail-on is reached, and 2 when something cannot be read or nothing was
judged.
"""


def _impact(**flags: object) -> None:
    from pyverno.cli.impact.run import ImpactOptions, run_impact

    given = {key: tuple(each) if isinstance(each, list) else each for key, each in flags.items()}
    raise Exit(run_impact(ImpactOptions(**given)))  # type: ignore[arg-type]  # the flags below type them


impact = command(
    "impact",
    _HELP,
    _impact,
    {
        "Input": (
            repeated("--from", help="Policies as they are: a file or a folder.", metavar="FILE", key="old"),
            repeated("--to", help="Policies as they will be.", metavar="FILE", is_required=True, key="new"),
            repeated("-r", "--resource", help="Objects: a file or a folder.", metavar="FILE", key="resources"),
            switch("-c", "--cluster", help="The objects of a cluster, of every kind that the policies match."),
            *CLUSTER,
            value("-n", "--namespace", help="Only objects of this namespace of the cluster.", metavar="NAME"),
            repeated(
                "--recorded",
                help="Requests: AdmissionReviews, as the admission controller records them, and Kubernetes audit logs "
                "of level RequestResponse.",
                metavar="DIR",
            ),
            value(
                "--owner-label", help="Label that names the owner of an object without owner reference.", default="team"
            ),
        ),
        "Output": (
            output_format("table", "markdown", "html", "json"),
            number("--examples", help="Examples of each group.", default=3, least=0, most=1000),
            number(
                "--fail-on",
                help="Exit with 1 when at least this many objects would newly be refused or deleted; 0 for never.",
                default=0,
                least=0,
                most=10_000_000,
            ),
        ),
    },
    examples=(
        "pyverno impact --from old/ --to new/ -r manifests/",
        "pyverno impact --from old/ --to new/ --cluster --fail-on 1",
        "pyverno impact --from old/ --to new/ --recorded audit/ -o markdown",
    ),
)
