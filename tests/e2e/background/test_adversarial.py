"""Policies that trigger each other: each of thirty stops after ten writes; others continue (C7 of security.md)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.telemetry.observer import Observers
from pyverno.testing import BACKGROUND, PolicySandbox
from tests.support.history import following

POLICIES: Final = GVR("kyverno.io", "v1", "clusterpolicies")
MAPS: Final = GVR("", "v1", "configmaps")
EVENTS: Final = GVR("events.k8s.io", "v1", "events")
MAX_WRITES: Final = 10
QUIET_SECONDS: Final = 1.0
MAX_SECONDS: Final = 60.0


ALWAYS_NEW: Final = "{{ random('[a-z]{8}') }}"


def policy(name: str, on: str, **action: Any) -> JSONObject:
    """Return a policy that works for ConfigMaps with a label, whoever writes them."""
    match = {"any": [{"resources": {"kinds": ["ConfigMap"], "selector": {"matchLabels": {"loop": on}}}}]}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {"rules": [{"name": "loop", "match": match, "skipBackgroundRequests": False, **action}]},
    }


def generated(name: str, label: str, **data: str) -> JSONObject:
    """Return a generate action for a ConfigMap that carries a label."""
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": "default", "synchronize": True}
    return {"generate": {**target, "data": {"metadata": {"labels": {"loop": label}}, "data": data}}}


def changed(name: str, **data: str) -> JSONObject:
    """Return an action that changes an existing ConfigMap."""
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": "default"}
    return {"mutate": {"targets": [target], "patchStrategicMerge": {"data": data}}}


def chain(key: str) -> Iterator[JSONObject]:
    """Generates an object that triggers the rule again, each time with another name."""
    yield policy(key, key, **generated(f"{key}-{{{{ random('[a-z0-9]{{8}}') }}}}", key, a="1"))


def lengthening(key: str) -> Iterator[JSONObject]:
    """Generates an object whose name is that of the trigger and a letter more."""
    yield policy(key, key, **generated("{{ request.object.metadata.name }}x", key, a="1"))


def ping_pong(key: str) -> Iterator[JSONObject]:
    """Two policies generate each other's trigger, with something new in it each time."""
    yield policy(f"{key}-ping", key, **generated(f"{key}-pong", f"{key}-pong", at=ALWAYS_NEW))
    yield policy(f"{key}-pong", f"{key}-pong", **generated(f"{key}-ping", key, at=ALWAYS_NEW))


def counter(key: str) -> Iterator[JSONObject]:
    """Counts its own changes of its trigger."""
    number = "{{ to_string(add(to_number(request.object.data.n || '0'), `1`)) }}"
    yield policy(key, key, **changed(f"{key}-first", n=number))


def fight(key: str) -> Iterator[JSONObject]:
    """Two policies give an object different values, at each change of it."""
    for side in ("left", "right"):
        yield policy(f"{key}-{side}", key, **changed(f"{key}-first", side=side))


def normalised(key: str) -> Iterator[JSONObject]:
    """A mutation changes the generated object at admission, and its content is new each time."""
    yield policy(f"{key}-make", key, **generated(f"{key}-made", f"{key}-made", at=ALWAYS_NEW, form="ours"))
    yield policy(f"{key}-change", f"{key}-made", mutate={"patchStrategicMerge": {"data": {"form": "theirs"}}})
    yield policy(f"{key}-back", f"{key}-made", **changed(f"{key}-first", at=ALWAYS_NEW))


FORMS: Final = (chain, lengthening, ping_pong, counter, fight, normalised)
WRITERS: Final = {"ping-pong": 2, "fight": 2, "normalised": 2}
"""Number of writing policies by case, where it is not one."""

CASES: Final = tuple(f"{form.__name__.replace('_', '-')}-{number}" for form in FORMS for number in range(5))


def _case(name: str) -> str:
    """Return the case that an object belongs to."""
    return next(key for key in (*CASES, "good") if name.startswith(f"{key}-"))


async def _stopped(client: Client) -> set[str]:
    """Return the cases for which an event reports the stop."""
    events = await client.list(EVENTS, "default", query={"fieldSelector": "reason=PolicyError"})
    names = [each["regarding"]["name"] for each in events["items"] if "without a pause" in each["note"]]
    return {key for key in CASES if any(name.startswith(key) for name in names)}


def test_thirty_policies_that_feed_each_other_write_ten_times_each() -> None:
    """After ten writes each loop stops with an event, and a policy without a loop still works."""

    async def run() -> None:
        sandbox = PolicySandbox(Sandbox(Settings(controllers=False)), Observers(), further=(BACKGROUND,))
        async with sandbox, Client(load_kubeconfig(sandbox.sandbox.kubeconfig), qps=0) as client:
            for form in FORMS:
                for number in range(5):
                    for body in form(f"{form.__name__.replace('_', '-')}-{number}"):
                        await client.create(POLICIES, body)
            await client.create(POLICIES, policy("good", "good", **generated("good-made", "nothing", a="1")))
            await sandbox.settle()
            async with following(client, MAPS, "loop") as history:
                for key in (*CASES, "good"):
                    metadata = {"name": f"{key}-first", "labels": {"loop": key}}
                    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
                    await client.create(MAPS, body, "default")
                async with asyncio.timeout(MAX_SECONDS):
                    while {*CASES} != await _stopped(client):
                        await asyncio.sleep(0.5)
                await asyncio.sleep(QUIET_SECONDS)
            writes = Counter(_case(name) for _, _, name in history.events)
            # the first one is the user's; policies of a pair have ten writes each
            limits = {key: MAX_WRITES * WRITERS.get(key.rpartition("-")[0], 1) for key in writes}
            assert {} == {key: count - 1 for key, count in writes.items() if count - 1 > limits[key]}
            assert {*CASES, "good"} == set(writes)
            assert 2 == writes["good"]

    asyncio.run(run())
