"""The life of a cluster: policies that deny, mutate and allow, and a restart after everything was deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.cluster.client import Client
from pyverno.kube.status import StatusError
from tests.e2e.admission.deployment import CONFIG_MAPS, POLICIES, Deployment, until
from tests.e2e.admission.load import config_map
from tests.e2e.admission.scene import ADD, EVERYTHING, REQUIRE, apply, play, refusal


def test_policies_refuse_change_and_let_pass(tmp_path: Path) -> None:
    """A user of the API server sees the policy's words, the added label, and nothing at all."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply(client, REQUIRE)
        await apply(client, ADD)
        assert "the label team is required" in await refusal(client, config_map("a"))
        stored = await client.create(CONFIG_MAPS, config_map("b", team="blue"), "default")
        assert {"team": "blue", "tier": "bronze"} == stored["metadata"]["labels"]
        with pytest.raises(StatusError, match="unknown field"):
            await client.create(POLICIES, {**REQUIRE, "metadata": {"name": "c"}, "spec": {"rulez": []}})
        await client.delete(POLICIES, "require-team")

        async def is_allowed() -> bool:
            return not await refusal(client, config_map("a"))

        await until("a deleted policy is no longer asked", is_allowed)

    play(scene, tmp_path)


def test_a_cluster_without_replicas_starts_again_by_itself(tmp_path: Path) -> None:
    """A policy about every kind with failurePolicy Fail refuses everything then; a new replica needs no help."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply(client, EVERYTHING)
        assert "no object may be called forbidden" in await refusal(client, config_map("forbidden"))
        await deployment.kill_all()
        assert "failed calling webhook" in await refusal(client, config_map("a"))
        await deployment.ready(*await deployment.start())

        async def is_allowed() -> bool:
            return not await refusal(client, config_map("a"))

        await until("harmless objects are let in again", is_allowed)
        assert "no object may be called forbidden" in await refusal(client, config_map("forbidden"))
        await apply(client, REQUIRE)

    play(scene, tmp_path, replicas=2)
