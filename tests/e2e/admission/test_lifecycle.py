"""Start, work, rolling restarts, certificates that change, an API server that goes away, and all replicas gone."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.sandbox import Sandbox
from tests.e2e.admission.deployment import (
    CONFIG_MAPS,
    POLICIES,
    SECRETS,
    Deployment,
    install,
    trusted,
    until,
)
from tests.e2e.admission.load import Load, config_map

_RESTARTS = int(os.environ.get("PYVERNO_E2E_RESTARTS", "20"))
_ROTATIONS = int(os.environ.get("PYVERNO_E2E_ROTATIONS", "20"))
_AWAY_SECONDS = float(os.environ.get("PYVERNO_E2E_AWAY_SECONDS", "4"))
_CA, _LEAF = "kyverno-svc.kyverno.svc.kyverno-tls-ca", "kyverno-svc.kyverno.svc.kyverno-tls-pair"

needs_quiet = pytest.mark.skipif(
    not os.environ.get("PYVERNO_E2E"),
    reason="replaces processes under load and measures what fails meanwhile: `make e2e`, where nothing else runs",
)
Scene = Callable[[Client, Deployment], Awaitable[None]]


def _policy(name: str, rule: JSONObject, *kinds: str) -> JSONObject:
    match = {"any": [{"resources": {"kinds": list(kinds), "namespaces": ["default"]}}]}
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
ADD = _policy(
    "add-tier", {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"+(tier)": "bronze"}}}}}, "ConfigMap"
)
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
async def _cluster(sandbox: Sandbox, folder: Path, replicas: int) -> AsyncIterator[tuple[Client, Deployment]]:
    async with (
        Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        Deployment(sandbox.kubeconfig, folder) as deployment,
    ):
        await install(client)
        await deployment.ready(*await deployment.start(replicas))
        try:
            yield client, deployment
        finally:
            for policy in (await client.list(POLICIES))["items"]:
                await client.delete(POLICIES, policy["metadata"]["name"])


def play(scene: Scene, folder: Path, *, replicas: int = 1) -> None:
    """Play a scene in a fresh sandbox with so many replicas."""

    async def run() -> None:
        async with _cluster(sandbox, folder, replicas) as (client, deployment):
            await scene(client, deployment)

    with Sandbox(controllers=False) as sandbox:
        asyncio.run(run())


async def _apply(client: Client, policy: JSONObject) -> None:
    """Create a policy and wait until the API server asks for it."""

    async def is_created() -> bool:
        try:
            await client.create(POLICIES, policy)
        except StatusError as error:
            assert error.status == 500, error  # the webhook that checks policies is in place, its replica is not yet
            return False
        return True

    await until("the policy is created", is_created)
    name = policy["metadata"]["name"]

    async def is_ready() -> bool:
        found = await client.get(POLICIES, name)
        return any(each["status"] == "True" for each in (found.get("status") or {}).get("conditions") or ())

    await until(f"policy {name} is ready", is_ready)


async def _refusal(client: Client, body: JSONObject) -> str:
    """Return why an object is refused, or the empty text; nothing is stored."""
    try:
        await client.create(CONFIG_MAPS, body, "default", query={"dryRun": "All"})
    except StatusError as error:
        return error.message
    return ""


def test_policies_refuse_change_and_let_pass(tmp_path: Path) -> None:
    """A user of the API server sees the policy's words, the added label, and nothing at all."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await _apply(client, REQUIRE)
        await _apply(client, ADD)
        assert "the label team is required" in await _refusal(client, config_map("a"))
        stored = await client.create(CONFIG_MAPS, config_map("b", team="blue"), "default")
        assert {"team": "blue", "tier": "bronze"} == stored["metadata"]["labels"]
        with pytest.raises(StatusError, match="unknown field"):
            await client.create(POLICIES, {**REQUIRE, "metadata": {"name": "c"}, "spec": {"rulez": []}})
        await client.delete(POLICIES, "require-team")

        async def is_allowed() -> bool:
            return not await _refusal(client, config_map("a"))

        await until("a deleted policy is no longer asked", is_allowed)

    play(scene, tmp_path)


@needs_quiet
def test_no_request_fails_while_replicas_are_replaced(tmp_path: Path) -> None:
    """SIGTERM under load, two of four at a time: each ends with code 0, and every verdict is right."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await _apply(client, REQUIRE)
        async with Load(deployment.balancer.port, await trusted(client)) as load:
            for _ in range(-(-_RESTARTS // 2)):
                old = deployment.replicas[:2]
                for replica in old:
                    replica.terminate()
                fresh = await deployment.start(2)
                assert [0, 0] == [await deployment.forget(replica) for replica in old]
                await deployment.ready(*fresh)
        assert [] == load.wrong, f"{len(load.wrong)} of {load.asked}"
        assert load.asked > 10 * _RESTARTS

    play(scene, tmp_path, replicas=4)


@needs_quiet
def test_no_handshake_fails_while_certificates_are_rotated(tmp_path: Path) -> None:
    """The leaf is made anew whenever its Secret is gone, now and then the authority too; clients trust what is said."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await _apply(client, REQUIRE)
        port = deployment.balancer.port
        async with Load(port, await trusted(client), staying=0, fresh=4) as load:
            for number in range(_ROTATIONS):
                served = {await _serial(replica.port) for replica in deployment.replicas}
                if number % 8 == 4:
                    await client.delete(SECRETS, _CA, "kyverno")
                await client.delete(SECRETS, _LEAF, "kyverno")

                async def is_rotated(before: set[bytes] = served) -> bool:
                    load.context = await trusted(client)  # an API server watches its configurations
                    now = [await _serial(replica.port) for replica in deployment.replicas]
                    return not before & {*now} and len({*now}) == 1

                await until("all replicas serve the new certificate", is_rotated)
        assert [] == load.wrong, f"{len(load.wrong)} of {load.asked}"
        assert load.asked > 5 * _ROTATIONS

    play(scene, tmp_path, replicas=2)


async def _serial(port: int) -> bytes:
    """Return the certificate that a replica serves now."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return found


@needs_quiet
def test_reviews_go_on_while_the_api_server_is_away(tmp_path: Path) -> None:
    """Longer than the lease lasts: the replica stays, answers, and follows the cluster again when it is back."""
    data = tmp_path / "data"

    async def run() -> None:
        async with AsyncExitStack() as stack:
            async with Sandbox(controllers=False, data_dir=data) as sandbox:
                port = int(sandbox.url.rpartition(":")[2])
                client = await stack.enter_async_context(Client(load_kubeconfig(sandbox.kubeconfig), qps=0))
                deployment = await stack.enter_async_context(Deployment(sandbox.kubeconfig, tmp_path))
                await install(client)
                [replica] = await deployment.start()
                await deployment.ready(replica)
                await _apply(client, REQUIRE)
                context = await trusted(client)
            async with Load(deployment.balancer.port, context) as load:
                await asyncio.sleep(_AWAY_SECONDS)
                assert load.asked > 20
                async with Sandbox(controllers=False, data_dir=data, port=port):
                    await _apply(client, ADD)
                    stored = await client.create(CONFIG_MAPS, config_map("b", team="blue"), "default")
                    assert {"team": "blue", "tier": "bronze"} == stored["metadata"]["labels"]
            assert [] == load.wrong, f"{len(load.wrong)} of {load.asked}"
            assert replica.process.returncode is None

    asyncio.run(run())


@needs_quiet
def test_a_cluster_without_replicas_starts_again_by_itself(tmp_path: Path) -> None:
    """A policy about every kind with failurePolicy Fail refuses everything then; a new replica needs no help."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await _apply(client, EVERYTHING)
        assert "no object may be called forbidden" in await _refusal(client, config_map("forbidden"))
        await deployment.kill_all()
        assert "failed calling webhook" in await _refusal(client, config_map("a"))
        await deployment.ready(*await deployment.start())

        async def is_allowed() -> bool:
            return not await _refusal(client, config_map("a"))

        await until("harmless objects are let in again", is_allowed)
        assert "no object may be called forbidden" in await _refusal(client, config_map("forbidden"))
        await _apply(client, REQUIRE)

    play(scene, tmp_path, replicas=2)
