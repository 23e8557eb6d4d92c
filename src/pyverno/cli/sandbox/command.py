"""`pyverno sandbox`: a Kubernetes API server in this process, for kubectl and Helm, without a cluster."""

from __future__ import annotations

import click

from pyverno.cli.args.sections import command
from pyverno.cli.errors import Exit
from pyverno.cli.sandbox.flags import SECTIONS

__all__ = ["sandbox"]

_HELP = """Run a Kubernetes API server in one process and print how to reach it.

kubectl and Helm reach it over HTTPS. It has namespaces, RBAC, custom resources, admission webhooks and policies, the
controllers of workloads, and one emulated node whose pods become ready without running anything. With
--with-controllers it also has the CustomResourceDefinitions of policies; the admission controller reviews every
request, and the background controller works on what requests trigger. Ctrl+C stops it; with --exec it runs one command
and ends with its exit code.
"""


def _sandbox(words: tuple[str, ...], **flags: object) -> None:
    from pyverno.cli.sandbox.run import run_sandbox

    raise Exit(run_sandbox(words, flags))


sandbox = command(
    "sandbox",
    _HELP,
    _sandbox,
    SECTIONS,
    click.Argument(["words"], nargs=-1, metavar="[COMMAND]..."),
    examples=(
        "pyverno sandbox",
        "pyverno sandbox --with-controllers",
        "pyverno sandbox --with-controllers --with-registry",
        "pyverno sandbox --with-controllers --with-ui",
        "pyverno sandbox --kube-version 1.33 --load crds.yaml --load apps.yaml",
        "pyverno sandbox --data-dir ./cluster --port 6443 --kubeconfig ./kubeconfig",
        "pyverno sandbox --map-service kyverno/kyverno-svc=127.0.0.1:9443 --log-requests",
        "pyverno sandbox --exec kubectl get nodes",
    ),
)
sandbox.allow_interspersed_args = False
