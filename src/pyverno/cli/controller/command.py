"""`pyverno controller`: the controllers as processes, as a Deployment runs them.

The flags of each stand in a module of their own; this module must never do any work.
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
        "Answer the admission requests of a cluster by its policies, and keep its webhook configurations.",
        AdmissionFlags,
        _admission,
        epilog="""\b
Examples:
  pyverno controller admission
  pyverno controller admission --kubeconfig ~/.kube/config --serverIP 192.0.2.1:9443
""",
    ),
)
