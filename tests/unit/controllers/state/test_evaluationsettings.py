"""ConfigMap settings for all rules take effect without a restart."""

from __future__ import annotations

import asyncio

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox

CONFIG_MAPS = GVR("", "v1", "configmaps")
DEPLOYMENTS = GVR("apps", "v1", "deployments")
POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")


def rule(name: str, kind: str, conditions: list[JSONObject], **more: object) -> JSONObject:
    """Return a rule that denies objects of a kind; its message shows variables of the rule."""
    return {
        "name": name,
        "match": {"any": [{"resources": {"kinds": [kind]}}]},
        "validate": {
            "failureAction": "Enforce",
            "message": "{{ images.containers.*.registry }} {{ image_normalize('busybox') }}",
            "deny": {"conditions": {"all": conditions}},
        },
        **more,
    }


def policy(name: str, *rules: JSONObject) -> JSONObject:
    """Return a policy."""
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {"background": False, "rules": [*rules]},
    }


IMAGES = policy(
    "images",
    rule("seen", "Deployment", [{"key": "{{ request.operation }}", "operator": "Equals", "value": "CREATE"}]),
    rule(
        "mirrored",
        "Deployment",
        [{"key": "{{ images.containers.a.registry }}", "operator": "Equals", "value": "registry.example:5000"}],
    ),
    rule(
        "normalized",
        "Deployment",
        [
            {
                "key": "{{ image_normalize(request.object.spec.template.spec.containers[0].image) }}",
                "operator": "Equals",
                "value": "registry.example:5000/mirror/nginx:latest",
            }
        ],
    ),
)
LARGE = policy(
    "large",
    rule(
        "large",
        "ConfigMap",
        [{"key": "{{ length(text) }}", "operator": "LessThan", "value": 1}],
        context=[{"name": "text", "variable": {"value": "x" * 2000}}],
    ),
)
DEPLOYMENT: JSONObject = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "a", "image": "nginx"}]},
        },
    },
}
MAP: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}}


async def refusal(client: Client, gvr: GVR, body: JSONObject) -> str:
    """Return the message that denies the object, or the empty text; a dry run stores nothing."""
    try:
        await client.create(gvr, body, "default", query={"dryRun": "All"})
    except StatusError as error:
        return error.message
    return ""


async def until_refused(client: Client, gvr: GVR, body: JSONObject, text: str) -> None:
    """Wait until the message contains a text, or until the object is allowed for ""."""
    found = ""
    try:
        async with asyncio.timeout(60):
            while text not in (found := await refusal(client, gvr, body)) or (found and not text):
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"not refused with `{text}`: `{found}`") from None


def test_settings_of_the_config_map_take_effect_while_the_controller_runs() -> None:
    """The settings are the default registry, its use in image references, and the size limit of the context."""

    async def run() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(controllers=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            await client.create(POLICIES, IMAGES)
            await client.create(POLICIES, LARGE)
            await cluster.settle()
            await until_refused(client, DEPLOYMENTS, DEPLOYMENT, '["docker.io"] docker.io/busybox:latest')
            await until_refused(client, CONFIG_MAPS, MAP, "")

            async def configure(**data: str) -> None:
                await client.patch(CONFIG_MAPS, "kyverno", {"data": data}, "kyverno")

            await configure(defaultRegistry="registry.example:5000/mirror")
            await until_refused(
                client, DEPLOYMENTS, DEPLOYMENT, '["registry.example:5000"] registry.example:5000/mirror/busybox:latest'
            )
            said = await refusal(client, DEPLOYMENTS, DEPLOYMENT)
            assert [True, True] == [f"{name}: " in said for name in ("mirrored", "normalized")]
            await configure(enableDefaultRegistryMutation="false")
            await until_refused(client, DEPLOYMENTS, DEPLOYMENT, "busybox:latest")
            assert "registry.example" not in await refusal(client, DEPLOYMENTS, DEPLOYMENT)
            await configure(maxContextSize="1Ki")
            await until_refused(
                client, CONFIG_MAPS, MAP, "context size limit exceeded: 2000 bytes exceeds limit of 1024 bytes"
            )
            await configure(maxContextSize="0")
            await until_refused(client, CONFIG_MAPS, MAP, "")

    asyncio.run(run())
