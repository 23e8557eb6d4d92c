"""`python -m tests.bench.backgrounding cluster | controller KUBECONFIG | writer KUBECONFIG`: the processes of B16.

Each prints a line of JSON when it is ready, and answers each line on stdin by one. Controller and writer collect
garbage as `controllers.runtime.process` has every controller do. This module must never measure.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from time import process_time
from typing import Any, Final

from kubesandbox import Sandbox, Settings
from pyverno.cluster.access import Access, load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.controller import AdmissionSettings
from pyverno.controllers.background.controller import BackgroundController, BackgroundSettings
from pyverno.controllers.background.resultreports import ResultReportSettings
from pyverno.controllers.runtime.gctuning import keep_collections_short
from pyverno.kube.gvk import GVR
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox
from pyverno.value import replace

__all__ = ["ACCOUNT", "RESOURCES", "made"]

ACCOUNT: Final = "system:serviceaccount:kyverno:kyverno-background-controller"
RESOURCES: Final = {
    "Secret": GVR("", "v1", "secrets"),
    "ConfigMap": GVR("", "v1", "configmaps"),
    "NetworkPolicy": GVR("networking.k8s.io", "v1", "networkpolicies"),
    "ResourceQuota": GVR("", "v1", "resourcequotas"),
}
_WRITERS: Final = 10


def made(namespace: str) -> list[dict[str, Any]]:
    """Return the five objects that the rules generate in a namespace: two copies and three with data of the rule."""

    def thing(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **fields}

    return [
        thing("v1", "Secret", "pull", type="Opaque", data={"token": "c2VjcmV0"}),
        thing("v1", "ConfigMap", "authority", data={"ca.crt": "certificate " * 100}),
        thing("v1", "ConfigMap", "zones", data={"zone": "a", "team": namespace}),
        thing("networking.k8s.io/v1", "NetworkPolicy", "deny", spec={"podSelector": {}, "policyTypes": ["Ingress"]}),
        thing("v1", "ResourceQuota", "pods", spec={"hard": {"pods": "20"}}),
    ]


async def _serve(answer: Callable[[str], Awaitable[Any]], **first: Any) -> None:
    """Print the first line, then an answer to each line on stdin."""
    print(json.dumps(first), flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        print(json.dumps(await answer(line.decode().strip())), flush=True)


async def _cluster() -> None:
    """Serve a cluster and its admission webhooks."""
    settings = AdmissionSettings(background_account=ACCOUNT, qps=0)
    async with PolicySandbox(Sandbox(Settings(controllers=False)), Observers(), settings) as cluster:

        async def settle(_line: str) -> dict[str, Any]:
            await cluster.settle()
            return {}

        await _serve(settle, kubeconfig=cluster.sandbox.kubeconfig)


async def _controller(access: Access) -> None:
    """Run the background controller; answer with its processor time and the number of requests by method."""
    metrics = Metrics()
    sent: Counter[str] = Counter()
    count = metrics.queried

    def queried(operation: str, resource: str, namespace: str) -> None:
        count(operation, resource, namespace)
        if resource not in ("leases", "events"):
            sent[f"{operation} {resource}"] += 1

    metrics.queried = queried  # type: ignore[method-assign]
    no_reports = ResultReportSettings(types=frozenset())
    settings = BackgroundSettings(account=ACCOUNT, qps=0, reports=no_reports)
    controller = BackgroundController(access, settings, metrics)
    stop = asyncio.Event()
    running = asyncio.create_task(controller.run(stop))
    collecting = asyncio.create_task(keep_collections_short())
    while not controller.is_idle:
        await asyncio.sleep(0.05)

    async def used(_line: str) -> dict[str, Any]:
        return {"seconds": process_time(), "sent": sent, "idle": controller.is_idle}

    await _serve(used)
    collecting.cancel()
    stop.set()
    await running


async def _writer(access: Access) -> None:
    """Write the objects of so many namespaces with the client alone; answer with the processor time it took."""
    async with Client(access, qps=0) as client:
        collecting = asyncio.create_task(keep_collections_short())

        async def write(line: str) -> dict[str, Any]:
            names = json.loads(line)
            began = process_time()

            async def work() -> None:
                while names:
                    for body in made(names.pop()):
                        await client.create(RESOURCES[body["kind"]], body, body["metadata"]["namespace"])

            await asyncio.gather(*(work() for _ in range(_WRITERS)))
            return {"seconds": process_time() - began}

        await _serve(write)
        collecting.cancel()


def _main(part: str, kubeconfig: str = "") -> None:
    if part == "cluster":
        asyncio.run(_cluster())
        return
    access = load_kubeconfig(kubeconfig)
    groups = ["system:serviceaccounts", "system:serviceaccounts:kyverno"]
    access = replace(access, impersonate={"as": ACCOUNT, "as-groups": groups})
    asyncio.run((_controller if part == "controller" else _writer)(access))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    _main(*sys.argv[1:])
