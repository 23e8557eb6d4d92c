"""`pyverno controller`: the controllers as processes, as a Deployment runs them.

Each controller has its flags in `controller.flags` and its work in `controller.run`.
"""

from __future__ import annotations

from pyverno.cli.args.groups import group
from pyverno.cli.args.records import command_of
from pyverno.cli.controller.flags import AdmissionFlags

__all__ = ["controller"]


def _admission(flags: AdmissionFlags) -> None:
    from pyverno.cli.controller.run import run_admission

    run_admission(flags)


controller = group(
    "controller",
    "Run a controller in, or beside, a cluster.",
    command_of(
        "admission",
        "Review the admission requests of a cluster, and maintain its webhook configurations.",
        AdmissionFlags,
        _admission,
        examples=(
            "pyverno controller admission",
            "pyverno controller admission --kubeconfig ~/.kube/config --serverIP 192.0.2.1:9443",
        ),
    ),
    examples=("pyverno controller admission",),
)
