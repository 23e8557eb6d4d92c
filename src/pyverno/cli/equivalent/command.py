"""`pyverno equivalent`: the flags of the command."""

from __future__ import annotations

import click

from pyverno.cli.args.flags import comma_list, number, repeated, value
from pyverno.cli.args.sections import command
from pyverno.cli.args.shared import FIRST_OBJECTS, KUBE_VERSION, SEED, output_format
from pyverno.cli.errors import Exit

__all__ = ["equivalent"]

_HELP = """Search for an object on which two sets of policies differ.

OLD and NEW are files or folders with policies of any kind, for example a ClusterPolicy and the ValidatingPolicy that is
to replace it. Objects of the kinds that they match are generated from the schemas of Kubernetes, steered by the fields
and constants of both sides; only objects that an API server admits count. A difference is shown on the smallest object
that has it, and explained for both sides.

Without a difference the command prints what was tried. That is no proof. The exit code is 0 then, 1 for a difference, 2
when the comparison says nothing because a side blocked no request, or all of the kinds and operations that it matches,
and 3 for unusable input.
"""


def _equivalent(old: str, new: str, **flags: object) -> None:
    from pyverno.cli.equivalent.run import EquivalentOptions, run_equivalent

    given = {key: tuple(each) if isinstance(each, list) else each for key, each in flags.items()}
    raise Exit(run_equivalent(EquivalentOptions(old=old, new=new, **given)))  # type: ignore[arg-type]


equivalent = command(
    "equivalent",
    _HELP,
    _equivalent,
    {
        "Search": (
            number("-n", "--objects", help="Objects to generate.", default=2000, least=1, most=10_000_000),
            SEED,
            FIRST_OBJECTS,
            comma_list("--kind", help="Only objects of these kinds.", key="kinds"),
            comma_list(
                "--not-kind",
                help="No objects of these kinds, or no requests for a subresource (Pod/ephemeralcontainers).",
                key="other_kinds",
            ),
            repeated("--crd", help="File or folder with CustomResourceDefinitions.", metavar="FILE", key="crds"),
            comma_list("--operation", help="Operations of the requests (CREATE, UPDATE, DELETE).", key="operations"),
            KUBE_VERSION,
        ),
        "Output": (
            output_format("text", "json", "yaml"),
            value("--certificate", help="File for the record of what was tried.", metavar="FILE"),
            value("--check", help="File with such a record: fail unless both sides are still those.", metavar="FILE"),
        ),
    },
    click.Argument(["old"]),
    click.Argument(["new"]),
    examples=(
        "pyverno equivalent clusterpolicy.yaml validatingpolicy.yaml",
        "pyverno equivalent @disallow-latest-tag @cel/disallow-latest-tag -n 20000",
        "pyverno equivalent old/ new/ --operation CREATE,UPDATE,DELETE --certificate certificate.json",
    ),
)
