"""A cluster for one test: a sandbox, replicas of the admission controller, and the steps that tests have in common.

This module must never hold a claim of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.resource import Resource
from pyverno.kube.status import StatusError
from pyverno.policy.kinds import KNOWN_KINDS
from tests.e2e.admission.deployment import CONFIG_MAPS, POLICIES, Deployment, install, until
from tests.e2e.admission.mixture import Asked, Mixture

__all__ = [
    "ADD",
    "ADD_TO_LATECOMER",
    "EVERYTHING",
    "IS_FULL",
    "REQUIRE",
    "Scene",
    "apply",
    "apply_all",
    "cluster",
    "note",
    "play",
    "pool",
    "refusal",
]

IS_FULL: Final = bool(os.environ.get("PYVERNO_E2E"))
"""Set for figures at their full size: `make e2e`, with no other load."""

_FIGURES: Final = Path("build") / "e2e.json"
_VALIDATING: Final = GVR("policies.kyverno.io", "v1", "validatingpolicies")
_NAMESPACED: Final = GVR("kyverno.io", "v1", "policies")
_RESOURCES: Final = {"ClusterPolicy": POLICIES, "Policy": _NAMESPACED, "ValidatingPolicy": _VALIDATING}
Scene = Callable[[Client, Deployment], Awaitable[None]]


def _policy(name: str, rule: JSONObject, *kinds: str, **selection: list[str]) -> JSONObject:
    match = {"any": [{"resources": {"kinds": list(kinds), "namespaces": ["default"], **selection}}]}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {"rules": [{"name": "rule", "match": match, **rule}]},
    }


REQUIRE = _policy(
    "require-team",
    {
        "validate": {
            "failureAction": "Enforce",
            "message": "the label team is required",
            "pattern": {"metadata": {"labels": {"team": "?*"}}},
        }
    },
    "ConfigMap",
)
_BRONZE: Final = {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"+(tier)": "bronze"}}}}}
ADD = _policy("add-tier", _BRONZE, "ConfigMap")
ADD_TO_LATECOMER = _policy("add-tier-to-latecomer", _BRONZE, "ConfigMap", names=["latecomer"])
"""Changes only the ConfigMap `latecomer`: other reviews keep their answers when it appears."""
EVERYTHING = {
    **REQUIRE,
    "metadata": {"name": "require-team-everywhere"},
    "spec": {
        "background": False,
        "rules": [
            {
                "name": "rule",
                "match": {"any": [{"resources": {"kinds": ["*"]}}]},
                "exclude": {"any": [{"resources": {"namespaces": ["kyverno"]}}]},
                "validate": {
                    "failureAction": "Enforce",
                    "message": "no object may be called forbidden",
                    "pattern": {"metadata": {"name": "!forbidden"}},
                },
            }
        ],
    },
}


@asynccontextmanager
async def cluster(
    sandbox: Sandbox, folder: Path, replicas: int, *arguments: str
) -> AsyncIterator[tuple[Client, Deployment]]:
    async with (
        Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        Deployment(sandbox.kubeconfig, folder, *arguments) as deployment,
    ):
        await install(client)
        await deployment.ready(*await deployment.start(replicas))
        yield client, deployment


def play(scene: Scene, folder: Path, *, replicas: int = 1, arguments: Sequence[str] = ()) -> None:
    """Play a scene in a fresh sandbox with so many replicas, which have these further arguments."""

    async def run() -> None:
        async with cluster(sandbox, folder, replicas, *arguments) as (client, deployment):
            await scene(client, deployment)

    with Sandbox(controllers=False) as sandbox:
        asyncio.run(run())


async def apply(client: Client, policy: JSONObject) -> None:
    """Create a policy and wait until it is ready."""
    await _create(client, policy)
    gvr, view = _RESOURCES[policy["kind"]], Resource(policy)

    async def is_ready() -> bool:
        return _is_ready(await client.get(gvr, view.name, view.namespace))

    await until(f"policy {view.name} is ready", is_ready)


async def _create(client: Client, policy: JSONObject) -> None:
    gvr, view = _RESOURCES[policy["kind"]], Resource(policy)

    async def is_created() -> bool:
        try:
            await client.create(gvr, policy, view.namespace)
        except StatusError as error:
            # the webhook that checks policies is in place, its replica or the one that records authors is not yet
            assert error.status == 500 or "try again" in error.message, error
            return False
        return True

    await until(f"policy {view.name} is created", is_created)


def _is_ready(policy: JSONObject) -> bool:
    found = policy.get("status") or {}
    conditions = found.get("conditions") or (found.get("conditionStatus") or {}).get("conditions") or ()
    return any(each["status"] == "True" for each in conditions)


async def refusal(client: Client, body: JSONObject) -> str:
    """Return why an object is refused, or the empty text; nothing is stored."""
    try:
        await client.create(CONFIG_MAPS, body, "default", query={"dryRun": "All"})
    except StatusError as error:
        return error.message
    return ""


async def apply_all(client: Client, mixture: Mixture) -> None:
    """Create everything of a mixture and wait until every policy is ready."""
    for body in (*mixture.namespaces, *mixture.bindings, *mixture.config_maps):
        info = KNOWN_KINDS.find(Resource(body).gvk)
        assert info is not None
        if Resource(body).name != "default":
            await client.create(info.gvr, body, Resource(body).namespace)
    await asyncio.gather(*(_create(client, policy) for policy in mixture.policies))

    async def are_ready() -> bool:
        listed = [each for gvr in _RESOURCES.values() for each in (await client.list(gvr))["items"]]
        return len(listed) == len(mixture.policies) and all(_is_ready(each) for each in listed)

    await until("all policies are ready", are_ready)


def pool(reviews: Iterable[Asked], count: int) -> list[Asked]:
    """Return the first reviews with their answers, so that nothing has to be judged while the load runs."""
    return list(itertools.islice(reviews, count))


def note(name: str, **figures: float | int) -> None:
    """Print the measured figures; at full size, store them in `build/e2e.json`."""
    figures = {key: round(value, 3) for key, value in figures.items()}
    print(f"{name}: " + ", ".join(f"{key}={value:g}" for key, value in figures.items()))
    if not IS_FULL:  # several processes run the tests
        return
    _FIGURES.parent.mkdir(exist_ok=True)
    known = json.loads(_FIGURES.read_text()) if _FIGURES.exists() else {}
    _FIGURES.write_text(json.dumps({**known, name: figures}, indent=1, sort_keys=True) + "\n")
