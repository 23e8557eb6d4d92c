"""`pyverno controller release`: stop the controllers and let the cluster admit requests without them."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from pyverno.cli.args.records import group_of, seconds, switch, text
from pyverno.cli.terminal import STDOUT

# trust rows: environment

__all__ = ["ReleaseFlags", "run_release"]


@dataclass(frozen=True, slots=True)
class ReleaseGroup:
    """Cluster and limits."""

    kubeconfig: str = text(
        "--kubeconfig", "Kubeconfig file; by default the service account of the pod.", metavar="FILE"
    )
    context: str = text("--context", "Context of the kubeconfig.", metavar="NAME")
    namespace: str = text("--namespace", "Namespace of the controllers.", default="kyverno", metavar="NAME")
    timeout: float = seconds("--timeout", "Time in which all replicas have to end.", default="60s")
    is_purge: bool = switch("--purge", "Also delete the certificates and leases of the controllers.")


@dataclass(frozen=True, slots=True)
class ReleaseFlags:
    """The flags of the command."""

    options: ReleaseGroup = group_of("Options", ReleaseGroup)


def run_release(flags: ReleaseFlags) -> None:
    """Print the stopped controllers; raises HostError when replicas are left after the timeout."""
    from pyverno.cluster.access import in_cluster, load_kubeconfig
    from pyverno.cluster.client import Client
    from pyverno.controllers.webhooks.release import purge, release

    options = flags.options
    is_outside = options.kubeconfig or options.context or os.environ.get("KUBECONFIG")
    access = load_kubeconfig(options.kubeconfig, options.context) if is_outside else in_cluster()

    async def run() -> list[str]:
        async with Client(access, qps=0) as client:
            stopped = await release(client, options.namespace, seconds=options.timeout)
            if options.is_purge:
                await purge(client, options.namespace)
            return stopped

    for name in asyncio.run(run()):
        STDOUT.write(f"deployment.apps/{name} scaled to 0\n")
    STDOUT.write("webhook configurations and generated admission policies deleted\n")
