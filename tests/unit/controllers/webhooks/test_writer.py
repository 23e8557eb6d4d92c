"""Writing webhook configurations: only differences are written, and all configurations can be removed."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable

import pytest

from kubesandbox.sandbox import Sandbox
from kubesandbox.sandbox import Settings as SandboxSettings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.webhooks.configurations import configurations
from pyverno.controllers.webhooks.sources import Endpoint, Settings, Sources
from pyverno.controllers.webhooks.writer import ConfigurationWriter
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.webhook.configuration import Configuration
from tests.support.webhookserver import make_certificate
from tests.unit.controllers.webhooks.test_configurations import cel, legacy, rule

VALIDATING = GVR("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
NAME = "kyverno-resource-validating-webhook-cfg"
AUTHORITY, OTHER = make_certificate().certificate, make_certificate().certificate
ANNOTATED = Configuration.read({"webhookAnnotations": '{"a": "b"}', "webhookLabels": '{"c": "d"}'})


def wanted(*, authority: bytes = AUTHORITY, general: Configuration | None = None, updates: bool = True) -> JSONObject:
    """Return the validating configuration of two policies."""
    sources = Sources(
        legacy=(legacy("a", rule(["Pod"])),),
        cel=(cel("b"),),
        kinds=BUILTIN_KINDS,
        configuration=general or Configuration(),
        endpoint=Endpoint(ca_bundle=authority),
        settings=Settings(updates=updates),
    )
    return configurations(sources)[0]


def play(scene: Callable[[Client, ConfigurationWriter], Awaitable[None]], *, controllers: bool = False) -> None:
    """Run a scene in a fresh cluster."""

    async def run() -> None:
        async with (
            Sandbox(SandboxSettings(controllers=controllers, kubelet=False)) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            await scene(client, ConfigurationWriter(client))

    asyncio.run(run())


def test_an_unchanged_configuration_is_not_written() -> None:
    """Fields that the API server defaults are no difference."""

    async def scene(client: Client, controller: ConfigurationWriter) -> None:
        assert [True, False] == [await controller.apply(wanted()) for _ in range(2)]
        assert [True, False] == [await controller.apply(wanted(general=ANNOTATED)) for _ in range(2)]
        metadata = (await client.get(VALIDATING, NAME))["metadata"]
        assert ({"a": "b"}, "d") == (metadata["annotations"], metadata["labels"]["c"])

    play(scene)


def test_annotations_are_replaced_and_foreign_ones_are_removed() -> None:
    """A foreign annotation could disable something, so it is removed as well."""

    async def scene(client: Client, controller: ConfigurationWriter) -> None:
        await controller.apply(wanted(general=ANNOTATED))
        found = await client.get(VALIDATING, NAME)
        found["metadata"]["annotations"]["x"] = "y"
        found["webhooks"] = found["webhooks"][:1]
        await client.update(VALIDATING, found)
        assert await controller.apply(wanted())
        found = await client.get(VALIDATING, NAME)
        assert (None, 2) == (found["metadata"].get("annotations"), len(found["webhooks"]))

    play(scene)


def test_a_fixed_configuration_follows_the_authority_only() -> None:
    """Other changes by users stay."""

    async def scene(client: Client, controller: ConfigurationWriter) -> None:
        await controller.apply(wanted(updates=False), is_fixed=True)
        found = await client.get(VALIDATING, NAME)
        found["webhooks"][0]["timeoutSeconds"] = 3
        await client.update(VALIDATING, found)
        assert not await controller.apply(wanted(updates=False), is_fixed=True)
        assert await controller.apply(wanted(updates=False, authority=OTHER), is_fixed=True)
        hooks = (await client.get(VALIDATING, NAME))["webhooks"]
        assert 3 == hooks[0]["timeoutSeconds"]
        assert 1 == len({hook["clientConfig"]["caBundle"] for hook in hooks})
        assert OTHER == base64.b64decode(hooks[0]["clientConfig"]["caBundle"])

    play(scene)


def test_trust_changes_the_authority_of_our_webhooks_and_nothing_else() -> None:
    """Policies that are not known yet keep their webhooks, and so do other services; a second time writes nothing."""

    async def scene(client: Client, controller: ConfigurationWriter) -> None:
        await controller.apply(wanted())
        found = await client.get(VALIDATING, NAME)
        elsewhere = Endpoint("elsewhere", ca_bundle=AUTHORITY).client_config("/a")
        found["webhooks"].append({**found["webhooks"][0], "name": "other.example.com", "clientConfig": elsewhere})
        before = await client.update(VALIDATING, found)
        ours = Endpoint(ca_bundle=OTHER)
        assert [AUTHORITY] == await controller.bundles(ours)
        await controller.trust(ours)
        after = await client.get(VALIDATING, NAME)
        assert [OTHER] == await controller.bundles(ours)
        assert after["webhooks"] == ours.trusted_by(before)["webhooks"]
        assert after["webhooks"][-1] == before["webhooks"][-1]
        await controller.trust(ours)
        assert after == await client.get(VALIDATING, NAME)

    play(scene)


def test_a_bundle_that_is_none_counts_as_one_that_trusts_nothing() -> None:
    """A replica must not be ready because the API server holds junk."""
    ours = Endpoint(ca_bundle=AUTHORITY)

    async def scene(client: Client, controller: ConfigurationWriter) -> None:
        assert [] == await controller.bundles(ours)
        body = wanted()
        body["webhooks"][0]["clientConfig"].pop("caBundle")
        await controller.apply(body)
        assert [b"", AUTHORITY] == await controller.bundles(ours)

    play(scene)


@pytest.mark.parametrize(
    ("endpoint", "calls"),
    [
        (Endpoint(), True),
        (Endpoint(port=8443), True),
        (Endpoint(namespace="b"), False),
        (Endpoint(server="192.0.2.1:9443"), True),
        (Endpoint(server="192.0.2.1:944"), False),
    ],
)
def test_a_webhook_calls_the_server_of_its_service_or_address(endpoint: Endpoint, calls: bool) -> None:
    """The port of the service, the path and the authority do not matter."""
    caller = Endpoint(server="192.0.2.1:9443" if endpoint.server else "", ca_bundle=b"a")
    assert calls == endpoint.is_called_by({"clientConfig": caller.client_config("/validate/fail")})


def test_all_configurations_of_the_controllers_are_deleted() -> None:
    """A label identifies them, whatever their number."""

    async def scene(client: Client, controller: ConfigurationWriter) -> None:
        await controller.apply(wanted())
        await controller.remove_all()
        await controller.remove_all()
        assert [] == (await client.list(VALIDATING))["items"]

    play(scene)


def test_configurations_go_with_the_binding_of_an_installation() -> None:
    """The garbage collector deletes them; with a new binding they are written with its uid."""
    bindings = GVR("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
    role = {"apiGroup": bindings.group, "kind": "ClusterRole", "name": "view"}
    binding = {"apiVersion": f"{bindings.group}/v1", "kind": "ClusterRoleBinding", "roleRef": role}
    binding["metadata"] = {"name": "kyverno:admission-controller"}

    async def scene(client: Client, writer: ConfigurationWriter) -> None:
        await writer.find_owner()
        assert [True, False] == [await writer.apply(wanted()) for _ in range(2)]
        uids = []
        for _ in range(2):
            uids.append((await client.create(bindings, binding))["metadata"]["uid"])
            await writer.find_owner()
            assert [True, False] == [await writer.apply(wanted()) for _ in range(2)]
            assert not await writer.apply(wanted(), is_fixed=True)
            found = await writer.find(wanted())
            assert found is not None
            assert [uids[-1]] == [owner["uid"] for owner in found["metadata"]["ownerReferences"]]
            await client.delete(bindings, "kyverno:admission-controller")
            async with asyncio.timeout(60):
                while await writer.find(wanted()) is not None:
                    await asyncio.sleep(0.02)
        assert 2 == len({*uids})

    play(scene, controllers=True)
