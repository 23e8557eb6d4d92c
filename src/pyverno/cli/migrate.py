"""`pyverno migrate`: store objects again at a new version; answers that the cluster client is not there yet."""

from __future__ import annotations

from pyverno.cli.args.options import comma_list, value
from pyverno.cli.args.sections import command
from pyverno.errors import UsageError

__all__ = ["migrate"]


def _migrate(**_: object) -> None:
    raise UsageError("this version of pyverno has no cluster client yet: `pyverno migrate` comes with it")


_RESOURCE = comma_list("--resource", help="CustomResourceDefinitions whose objects are stored again.")
_RESOURCE.required = True

migrate = command(
    "migrate",
    "Store the objects of a CustomResourceDefinition at its storage version (not available in this version).",
    _migrate,
    {
        "Options": (
            _RESOURCE,
            value("--kubeconfig", help="File with the access to the cluster.", metavar="FILE"),
            value("--context", help="Context of that file.", metavar="NAME"),
        )
    },
)
