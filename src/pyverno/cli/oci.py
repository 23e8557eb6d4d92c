"""`pyverno oci`: policies as artifacts in an OCI registry; not available yet."""

from __future__ import annotations

import click

from pyverno.cli.args.flags import Flag, value
from pyverno.cli.args.groups import group
from pyverno.cli.args.sections import command
from pyverno.errors import UsageError

__all__ = ["oci"]


def _unavailable(**_: object) -> None:
    raise UsageError("this version of pyverno has no registry client yet: `pyverno oci` comes with it")


_OPTIONS: dict[str, tuple[Flag, ...]] = {
    "Options": (value("-i", "--image", help="Reference of the artifact.", metavar="IMAGE", is_required=True),)
}

push = command(
    "push",
    "Push policies to a registry.",
    _unavailable,
    _OPTIONS,
    click.Argument(["source"], metavar="FILE|DIR"),
    examples=("pyverno oci push policies/ --image registry.example.org/policies:1",),
)
pull = command(
    "pull",
    "Pull policies from a registry.",
    _unavailable,
    _OPTIONS,
    click.Argument(["folder"], metavar="DIR"),
    examples=("pyverno oci pull policies/ --image registry.example.org/policies:1",),
)
oci = group(
    "oci",
    "Push and pull policies as OCI artifacts (not available in this version).",
    push,
    pull,
    examples=("pyverno oci push policies/ --image registry.example.org/policies:1",),
)
