"""Webhooks that the API server refuses, and their effect on other policies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.webhooks.registration import WebhookRegistration
from pyverno.controllers.webhooks.sources import Endpoint, Sources
from pyverno.controllers.webhooks.writer import ConfigurationWriter
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.policy.cel.policies import CelPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.value import replace
from pyverno.webhook.configuration import Configuration
from tests.unit.controllers.webhooks.test_configurations import cel, legacy, rule

VALIDATING = GVR("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
SOURCES = Sources(kinds=BUILTIN_KINDS, endpoint=Endpoint(ca_bundle=b""))
Scene = Callable[[Client, WebhookRegistration], Awaitable[None]]


def play(scene: Scene, *, kube_version: str = "1.35") -> None:
    """Run a scene in a fresh cluster."""

    async def run() -> None:
        async with (
            Sandbox(Settings(controllers=False, kube_version=kube_version)) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            await scene(client, WebhookRegistration(ConfigurationWriter(client)))

    asyncio.run(run())


def conditioned(name: str, *expressions: str, is_valid: bool = True) -> ClusterPolicy:
    """Return a policy with match conditions for its webhook."""
    written = [{"name": f"c{index}", "expression": text} for index, text in enumerate(expressions)]
    return legacy(name, rule(["Secret"]), is_valid=is_valid, webhookConfiguration={"matchConditions": written})


def ruled(name: str, *resources: str) -> CelPolicy:
    """Return a policy with rules for these resources."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": list(resources)}]
    return cel(name, matchConstraints={"resourceRules": rules})


async def registered(client: Client) -> dict[str, JSONObject]:
    """Return the webhooks that are in the cluster, by name."""
    found = await client.get(VALIDATING, "kyverno-resource-validating-webhook-cfg")
    return {hook["name"]: hook for hook in found.get("webhooks") or ()}


def test_a_policy_that_is_refused_stops_no_other() -> None:
    """Examples are a policy with more than 64 conditions and one with rules that Kubernetes does not accept."""

    async def scene(client: Client, registration: WebhookRegistration) -> None:
        sources = replace(
            SOURCES,
            legacy=(legacy("good", rule(["Pod"])), conditioned("many", *["true"] * 65)),
            cel=(ruled("fine", "services"), ruled("odd", "*", "pods")),
        )
        refused = await registration.register(sources)
        assert {("ClusterPolicy", "", "many"), ("ValidatingPolicy", "", "odd")} == set(refused)
        assert "must have at most 64 items" in refused["ClusterPolicy", "", "many"]
        assert {"validate.kyverno.svc-fail", "vpol.validate.kyverno.svc-fail"} == set(await registered(client))

    play(scene)


def test_a_refused_webhook_is_not_tried_in_every_round() -> None:
    """Rounds run every few seconds."""

    class Counting(ConfigurationWriter):
        trials = 0

        async def trial(self, wanted: JSONObject, hooks: Sequence[JSONObject]) -> str:
            self.trials += 1
            return await super().trial(wanted, hooks)

    async def scene(client: Client, _: WebhookRegistration) -> None:
        controller = Counting(client)
        registration = WebhookRegistration(controller)
        sources = replace(SOURCES, legacy=(legacy("good", rule(["Pod"])), conditioned("many", *["true"] * 65)))
        refused = await registration.register(sources)
        before = controller.trials
        assert before > 0
        assert refused == await registration.register(sources)
        assert before == controller.trials

    play(scene)


def test_an_updated_policy_is_tried_again() -> None:
    """A deleted policy is forgotten."""

    async def scene(client: Client, registration: WebhookRegistration) -> None:
        await registration.register(replace(SOURCES, legacy=(conditioned("own", *["true"] * 65),)))
        assert {} == await registered(client)
        assert {} == await registration.register(replace(SOURCES, legacy=(conditioned("own", "true"),)))
        assert {"validate.kyverno.svc-fail-finegrained-own"} == set(await registered(client))

    play(scene)


def test_an_invalid_update_keeps_the_webhook_that_was_accepted_before() -> None:
    """Only its address and its CA bundle are updated."""

    async def scene(client: Client, registration: WebhookRegistration) -> None:
        name = "validate.kyverno.svc-fail-finegrained-own"
        await registration.register(replace(SOURCES, legacy=(conditioned("own", "true"),)))
        broken = replace(
            SOURCES,
            legacy=(conditioned("own", "nothing == 1", is_valid=False),),
            endpoint=Endpoint(server="127.0.0.1:9443"),
        )
        refused = await registration.register(broken)
        assert "undeclared reference" in refused["ClusterPolicy", "", "own"]
        hook = (await registered(client))[name]
        assert ["true"] == [each["expression"] for each in hook["matchConditions"]]
        assert "https://127.0.0.1:9443/validate/fail/finegrained/own" == hook["clientConfig"]["url"]
        await registration.register(SOURCES)
        assert {} == await registered(client)

    play(scene)


def test_conditions_of_the_config_map_that_are_refused_are_left_out() -> None:
    """No policy is at fault, so all of them stay in force."""

    async def scene(client: Client, registration: WebhookRegistration) -> None:
        general = Configuration.read({"matchConditions": '[{"name": "odd", "expression": "nothing == 1"}]'})
        sources = replace(SOURCES, legacy=(legacy("good", rule(["Pod"])),), configuration=general)
        assert {} == await registration.register(sources)
        [hook] = (await registered(client)).values()
        assert "matchConditions" not in hook
        fixed = Configuration.read({"matchConditions": '[{"name": "fine", "expression": "true"}]'})
        await registration.register(replace(sources, configuration=fixed))
        [hook] = (await registered(client)).values()
        assert ["fine"] == [each["name"] for each in hook["matchConditions"]]

    play(scene)


def test_conditions_of_a_cel_policy_that_are_refused_are_left_to_the_engine() -> None:
    """An older API server may lack CEL functions that this version supports."""

    async def scene(client: Client, registration: WebhookRegistration) -> None:
        policy = cel("a", matchConditions=[{"name": "new", "expression": "isSemver('1.0.0')"}])
        assert {} == await registration.register(replace(SOURCES, cel=(policy,)))
        assert {"vpol.validate.kyverno.svc-fail"} == set(await registered(client))

    play(scene, kube_version="1.32")
