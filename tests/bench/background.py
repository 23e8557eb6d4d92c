"""B16: the cost of the background controller relative to writing the objects that it generates.

A cluster, the controller and a plain client are processes of their own. The controller generates five objects in each
of many namespaces, two of them copies; the client writes the same objects and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import time
from functools import cache
from typing import Any, Final

from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.value import dataclass
from tests.bench.backgrounding import ACCOUNT, RESOURCES, made
from tests.bench.child import Child

__all__ = ["processor_ratio", "request_ratio", "writes_of_another_apply"]

_COUNT: Final = 1000
_MODULE: Final = "tests.bench.backgrounding"
_NAMESPACES: Final = GVR("", "v1", "namespaces")
_POLICIES: Final = GVR("kyverno.io", "v1", "clusterpolicies")
_REQUESTS: Final = GVR("kyverno.io", "v2", "updaterequests")
_BINDINGS: Final = GVR("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
_SECONDS: Final = 300.0
_CREATORS: Final = 4
_COPIED: Final = ("pull", "authority")


@dataclass(frozen=True, slots=True)
class _Measured:
    """Processor seconds of the controller and of the client, requests of the controller, and writes of a re-apply."""

    controller: float
    client: float
    requests: int
    objects: int
    again: int


def processor_ratio() -> float:
    """B16: processor time of the controller, by that of the client."""
    found = _measured()
    return found.controller / found.client


def request_ratio() -> float:
    """B16: requests of the controller to the API server, by the objects that it wrote; leases and events left out."""
    found = _measured()
    return found.requests / found.objects


def writes_of_another_apply() -> float:
    """B16: objects that change when the policy is applied again with another description."""
    return _measured().again


@cache
def _measured() -> _Measured:
    with Child(_MODULE, "cluster") as cluster:
        kubeconfig = cluster.first["kubeconfig"]
        asyncio.run(_prepare(kubeconfig))
        cluster.ask()
        with Child(_MODULE, "controller", kubeconfig) as controller, Child(_MODULE, "writer", kubeconfig) as writer:
            before = controller.ask()
            asyncio.run(_generate(kubeconfig))
            after = controller.ask()
            versions = asyncio.run(_versions(kubeconfig))
            asyncio.run(_apply_again(kubeconfig))
            cluster.ask()
            _rest(controller)
            again = asyncio.run(_versions(kubeconfig))
            others = [f"plain-{number}" for number in range(_COUNT)]
            asyncio.run(_create(kubeconfig, others, {}))
            plain = writer.ask(json.dumps(others))
    sent = sum(after["sent"].values()) - sum(before["sent"].values())
    return _Measured(
        after["seconds"] - before["seconds"],
        plain["seconds"],
        sent,
        _COUNT * len(made("")),
        sum(1 for key, version in again.items() if versions.get(key) != version),
    )


def _rest(controller: Child) -> None:
    """Wait until the controller has finished the work that a change causes."""
    time.sleep(1)
    until = time.monotonic() + _SECONDS
    while not controller.ask()["idle"]:
        if time.monotonic() > until:
            raise TimeoutError("the controller does not come to rest")
        time.sleep(0.2)


async def _prepare(kubeconfig: str) -> None:
    """Write the sources, the policy, and the permissions that the controller needs."""
    async with Client(load_kubeconfig(kubeconfig), qps=0) as client:
        group = "rbac.authorization.k8s.io"
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "background"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "User", "name": ACCOUNT, "apiGroup": group}],
        }
        await client.create(_BINDINGS, binding)
        for body in made("default"):
            if body["metadata"]["name"] in _COPIED:
                await client.create(RESOURCES[body["kind"]], body, "default")
        await client.create(_POLICIES, _policy())


def _policy() -> dict[str, Any]:
    match = {"any": [{"resources": {"kinds": ["Namespace"], "selector": {"matchLabels": {"team": "yes"}}}}]}
    rules = []
    for body in made("{{request.object.metadata.name}}"):
        name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
        target = {"apiVersion": body["apiVersion"], "kind": body["kind"], "name": name, "namespace": namespace}
        data = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")}
        source = {"clone": {"namespace": "default", "name": name}} if name in _COPIED else {"data": data}
        rules.append({"name": name, "match": match, "generate": {**target, "synchronize": True, **source}})
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "new-namespace", "annotations": {}},
        "spec": {"rules": rules},
    }


async def _create(kubeconfig: str, names: list[str], labels: dict[str, str]) -> None:
    waiting = list(names)
    async with Client(load_kubeconfig(kubeconfig), qps=0) as client:

        async def work() -> None:
            while waiting:
                metadata = {"name": waiting.pop(), "labels": labels}
                await client.create(_NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

        await asyncio.gather(*(work() for _ in range(_CREATORS)))


async def _generate(kubeconfig: str) -> None:
    """Create the namespaces and wait until everything is generated."""
    await _create(kubeconfig, [f"team-{number}" for number in range(_COUNT)], {"team": "yes"})
    async with Client(load_kubeconfig(kubeconfig), qps=0) as client, asyncio.timeout(_SECONDS):
        while await client.has_any(_REQUESTS, "kyverno"):
            await asyncio.sleep(0.5)
    found = len(await _versions(kubeconfig))
    if found != _COUNT * len(made("")):
        raise RuntimeError(f"{found} objects were generated")


async def _versions(kubeconfig: str) -> dict[tuple[str, str, str], str]:
    """Return the versions of all generated objects."""
    found = {}
    async with Client(load_kubeconfig(kubeconfig), qps=0) as client:
        for kind, gvr in RESOURCES.items():
            listed = await client.list(gvr, query={"labelSelector": "app.kubernetes.io/managed-by=kyverno"})
            for each in listed["items"]:
                metadata = each["metadata"]
                found[kind, metadata["namespace"], metadata["name"]] = metadata["resourceVersion"]
    return found


async def _apply_again(kubeconfig: str) -> None:
    """Write the policy again with something that no rule depends on."""
    async with Client(load_kubeconfig(kubeconfig), qps=0) as client:
        patch = {"metadata": {"annotations": {"policies.kyverno.io/description": "again"}}}
        await client.patch(_POLICIES, "new-namespace", patch)
