"""`pyverno oci`: policies as artifacts in an OCI registry; answers that the registry client is not there yet."""

from __future__ import annotations

import click

from pyverno.cli.args.groups import group
from pyverno.cli.args.sections import command
from pyverno.errors import UsageError

__all__ = ["oci"]


def _unavailable(**_: object) -> None:
    raise UsageError("this version of pyverno has no registry client yet: `pyverno oci` comes with it")


def _image() -> click.Option:
    return click.Option(["-i", "--image"], required=True, help="Reference of the artifact.", metavar="IMAGE")


push = command(
    "push",
    "Push policies to a registry.",
    _unavailable,
    {"Options": (_image(),)},
    click.Argument(["source"], metavar="FILE|DIR"),
)
pull = command(
    "pull",
    "Pull policies from a registry.",
    _unavailable,
    {"Options": (_image(),)},
    click.Argument(["folder"], metavar="DIR"),
)
oci = group("oci", "Push and pull policies as OCI artifacts (not available in this version).", push, pull)
