"""The steps of `pyverno migrate --plan`, rehearsed in a cluster: each of them refuses the same objects."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cli.migrate.run import MigrateOptions, run_migrate
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import load_documents
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owners}
spec:
  background: false
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      failureAction: Enforce
      allowExistingViolations: false
      message: an owner is required
      pattern: {metadata: {labels: {owner: "?*"}}}
"""
PLACES = {
    "ClusterPolicy": GVR("kyverno.io", "v1", "clusterpolicies"),
    "ValidatingPolicy": GVR("policies.kyverno.io", "v1", "validatingpolicies"),
}
CONFIG_MAPS = GVR("", "v1", "configmaps")


def _config_map(name: str, **labels: str) -> JSONObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


def _steps(plan: str) -> list[list[JSONObject]]:
    """Return the manifests of each step; a step without any removes the old policy."""
    parts = plan.split("# step ")[1:]
    return [[each.value for each in load_documents(part.partition("\n")[2]) if each.value] for part in parts]


async def _apply(client: Client, document: JSONObject) -> None:
    place, name = PLACES[document["kind"]], document["metadata"]["name"]
    try:
        stored = await client.get(place, name)
    except StatusError:
        await client.create(place, document)
        return
    metadata = {**document["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}
    await client.update(place, {**document, "metadata": metadata})


def test_a_plan_refuses_the_same_objects_at_each_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """First by the old policy, then by the new one, at last with the old one gone."""
    source = tmp_path / "policy.yaml"
    source.write_text(POLICY)
    assert 0 == run_migrate(MigrateOptions(policies=(str(source),), plan=True, objects=100))
    steps = _steps(capsys.readouterr().out)
    assert [["ValidatingPolicy"], ["ValidatingPolicy", "ClusterPolicy"], []] == [
        [each["kind"] for each in step] for step in steps
    ]
    refusals: list[str] = []

    async def play() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(kubelet=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig)) as client,
        ):
            await client.create(PLACES["ClusterPolicy"], load_documents(POLICY)[0].value)
            for number, step in enumerate(steps):
                for document in step:
                    await _apply(client, document)
                if not step:
                    await client.delete(PLACES["ClusterPolicy"], "owners")
                await cluster.settle()
                with pytest.raises(StatusError, match="an owner is required") as refused:
                    await client.create(CONFIG_MAPS, _config_map("bare"), "default")
                refusals.append(str(refused.value))
                await client.create(CONFIG_MAPS, _config_map(f"good-{number}", owner="ann"), "default")

    asyncio.run(play())
    by_new = ["ValidatingPolicy" in each or "vpol" in each for each in refusals]
    assert [False, True, True] == by_new, refusals
