"""`pyverno sandbox`: a Kubernetes API server in this process, for real kubectl and Helm, without a cluster.

This module holds the flags only; `sandbox_run` does the work.
"""

from __future__ import annotations

import click

from pyverno.cli.args.options import comma_list, flag, value
from pyverno.cli.args.sections import command
from pyverno.cli.errors import Exit

__all__ = ["sandbox"]

_HELP = """Run a Kubernetes API server in one process and print how to reach it.

Real kubectl and Helm talk to it over HTTPS. It has namespaces, RBAC, custom resources, admission webhooks and policies,
the controllers of workloads, and one made-up node whose pods become ready without running anything. With
--with-controllers the definitions of policies are there as well, and the admission controller judges every request.
Ctrl+C ends it; with --exec it runs one command and ends with its exit code.
"""

_EXAMPLES = """\b
Examples:
  pyverno sandbox
  pyverno sandbox --with-controllers
  pyverno sandbox --kube-version 1.33 --load crds.yaml --load apps.yaml
  pyverno sandbox --data-dir ./cluster --port 6443 --kubeconfig ./kubeconfig
  pyverno sandbox --map-service kyverno/kyverno-svc=127.0.0.1:9443 --log-requests
  pyverno sandbox --exec kubectl get nodes
"""

_SERVER = (
    value("--port", help="Port to listen on; 0 takes a free one.", default=0, type=click.IntRange(0, 65535)),
    value(
        "--address",
        help="Address to listen on. Beyond this machine nobody is let in without a credential.",
        default="127.0.0.1",
        metavar="ADDRESS",
    ),
    value("--kubeconfig", help="Write the kubeconfig to this file as well.", metavar="FILE"),
    flag("--no-authz", help="Let everybody who is known do everything, instead of asking RBAC."),
    flag("--log-requests", help="Write one line per request to stderr, with audit annotations."),
)
_CLUSTER = (
    value("--kube-version", help="Version of Kubernetes to be.", default="1.35", metavar="VERSION"),
    comma_list("--load", help="Files with objects to create at the start."),
    comma_list("--seed-namespaces", help="Further namespaces to create."),
    flag("--no-kubelet", help="Leave pods alone: nobody schedules them or makes them ready."),
    comma_list(
        "--map-service", help="Where a service really is: NAMESPACE/NAME=HOST:PORT, for webhooks that run outside."
    ),
)
_POLICIES = (
    flag("--with-controllers", help="Install the definitions of policies and run the admission controller."),
    flag("--enablePolicyException", help="With --with-controllers: use PolicyExceptions."),
    value(
        "--exceptionNamespace",
        help="With --with-controllers: the only namespace of PolicyExceptions; `*` for any.",
        metavar="NAME",
    ),
)
_LIFE = (
    value("--data-dir", help="Keep objects and keys in this folder between runs.", metavar="FOLDER"),
    flag("--exec", help="Run the command that follows with KUBECONFIG set, then stop and end with its exit code."),
)


def _sandbox(words: tuple[str, ...], **flags: object) -> None:
    from pyverno.cli.sandbox.run import run_sandbox

    raise Exit(run_sandbox(words, flags))


sandbox = command(
    "sandbox",
    _HELP,
    _sandbox,
    {"Server": _SERVER, "Cluster": _CLUSTER, "Policies": _POLICIES, "Life": _LIFE},
    click.Argument(["words"], nargs=-1, metavar="[COMMAND]..."),
    epilog=_EXAMPLES,
)
sandbox.allow_interspersed_args = False
