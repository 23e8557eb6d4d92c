"""`pyverno migrate`: store objects again at a new version; not available yet."""

from __future__ import annotations

from pyverno.cli.args.flags import Flag, value
from pyverno.cli.args.sections import command
from pyverno.errors import UsageError

__all__ = ["migrate"]


def _migrate(**_: object) -> None:
    raise UsageError("this version of pyverno has no cluster client yet: `pyverno migrate` comes with it")


migrate = command(
    "migrate",
    "Store the objects of a CustomResourceDefinition at its storage version (not available in this version).",
    _migrate,
    {
        "Options": (
            Flag(
                ("--resource",), "list", "CustomResourceDefinitions whose objects are stored again.", is_required=True
            ),
            value("--kubeconfig", help="Kubeconfig file.", metavar="FILE"),
            value("--context", help="Context of the kubeconfig.", metavar="NAME"),
        )
    },
    examples=("pyverno migrate --resource policyexceptions.kyverno.io",),
)
