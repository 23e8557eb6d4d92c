"""B14: how soon the reports controller reports one pod that changes among 100,000 that it follows.

The cluster is a process of its own, whose objects were written to its journal before it started. Only failures are
reported, so that the first scan, which is not measured, does not write 100,000 reports.
"""

from __future__ import annotations

import asyncio
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kubesandbox.storage.journal import SqliteJournal
from kubesandbox.storage.store import Key, Store
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.reports.controller import ReportsController, ReportsSettings
from pyverno.controllers.reports.evaluation import ReportFilter
from pyverno.controllers.reports.settings import ScanSettings
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.reportapis import POLICY_REPORTS
from pyverno.kube.status import StatusError
from pyverno.testing import install_definitions
from tests.bench import inputs
from tests.bench.child import Child
from tests.bench.scanning import pods

__all__ = ["worst_seconds"]

_COUNT: Final = 100_000
_CHANGES: Final = 5
_SECONDS: Final = 600.0
_PODS: Final = GVR("", "v1", "pods")
_NAMESPACES: Final = GVR("", "v1", "namespaces")
_POLICIES: Final = GVR("kyverno.io", "v1", "clusterpolicies")
_JOURNAL: Final = "objects.sqlite"


@cache
def worst_seconds() -> float:
    """Return the most seconds from the change of a pod to its report, of several changes one after the other."""
    with TemporaryDirectory() as folder:
        changed = _seed(Path(folder))
        with Child("tests.bench.sandboxing", folder) as cluster:
            return asyncio.run(_measure(cluster.first["kubeconfig"], changed))


def _seed(folder: Path) -> list[JSONObject]:
    """Write the pods of a cluster to its journal; return those that are changed later."""
    folder.chmod(0o700)
    journal = SqliteJournal(folder / _JOURNAL)
    store, changed = Store(journal=journal), list[JSONObject]()
    for number, body in enumerate(pods(_COUNT)):
        metadata = body["metadata"]
        store.put(Key("pods", metadata["namespace"], metadata["name"]), body)
        if number % (_COUNT // _CHANGES) == _COUNT // _CHANGES // 2:
            changed.append(body)
    journal.close()
    return changed


async def _measure(kubeconfig: str, changed: list[JSONObject]) -> float:
    access = load_kubeconfig(kubeconfig, environment={})
    async with Client(access, qps=0) as client:
        await install_definitions(client)
        for name in ("kyverno", *sorted({each["metadata"]["namespace"] for each in changed})):
            await client.create(_NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for document in inputs.policy_documents():
            await client.create(_POLICIES, document.value)
        settings = ReportsSettings(scan=ScanSettings(shown=ReportFilter(statuses=frozenset({"fail"}))))
        controller, stop = ReportsController(access, settings), asyncio.Event()
        running = asyncio.create_task(controller.run(stop))
        try:
            async with asyncio.timeout(_SECONDS):
                while not controller.is_idle and not running.done():
                    await asyncio.sleep(0.2)
                assert not await client.has_any(POLICY_REPORTS.namespaced), "a pod fails before it is changed"
                return max([await _change(client, each) for each in changed])
        finally:
            stop.set()
            await running


async def _change(client: Client, pod: JSONObject) -> float:
    """Have a pod violate a policy; return how many seconds later its report is there."""
    namespace, name, uid = (pod["metadata"][key] for key in ("namespace", "name", "uid"))
    container = {"name": "debug", "image": "busybox", "securityContext": {"privileged": True}}
    began = time.monotonic()
    await client.patch(
        _PODS, name, {"spec": {"ephemeralContainers": [container]}}, namespace, subresource="ephemeralcontainers"
    )
    while True:
        try:
            await client.get(POLICY_REPORTS.namespaced, uid, namespace)
        except StatusError as error:
            if error.status != 404:
                raise
            await asyncio.sleep(0.02)
        else:
            return time.monotonic() - began
