"""`pyverno oci`: the flags of its commands."""

from __future__ import annotations

import click

from pyverno.cli.args.flags import Flag, switch, value
from pyverno.cli.args.groups import group
from pyverno.cli.args.sections import command

__all__ = ["oci"]

_PUSH = """Push policies to a registry, as one artifact.

Each policy of the file or folder becomes a layer of the artifact. A policy that does not compile ends the command
before anything is sent. Credentials come from the configuration of docker or podman.
"""

_PULL = """Pull the policies of an artifact into a folder.

Each policy becomes a file NAME.yaml. Documents that are no policies are refused.
"""


def _push(source: str, image: str, *, allows_http: bool) -> None:
    from pyverno.cli.oci.run import push

    push(source, image, allows_http=allows_http)


def _pull(image: str, folder: str, *, allows_http: bool) -> None:
    from pyverno.cli.oci.run import pull

    pull(image, folder, allows_http=allows_http)


_IMAGE: tuple[Flag, ...] = (
    value("-i", "--image", help="Reference of the artifact.", metavar="IMAGE", is_required=True),
    switch("--allow-insecure-registry", help="Allow plain HTTP to the registry.", key="allows_http"),
)

_push_command = command(
    "push",
    _PUSH,
    _push,
    {"Options": _IMAGE},
    click.Argument(["source"], metavar="FILE|DIR"),
    examples=("pyverno oci push policies/ --image registry.example.org/policies:1",),
)
_pull_command = command(
    "pull",
    _PULL,
    _pull,
    {
        "Options": (
            *_IMAGE,
            value("-d", "--directory", help="Folder for the policies.", metavar="DIR", default=".", key="folder"),
        )
    },
    examples=("pyverno oci pull --image registry.example.org/policies:1 --directory policies",),
)
oci = group(
    "oci",
    "Push and pull policies as OCI artifacts.",
    _push_command,
    _pull_command,
    examples=("pyverno oci push policies/ --image registry.example.org/policies:1",),
)
