"""Predictions of `pyverno impact` from recorded requests agree with a cluster under the new policies.

Random changes are sent as dry runs to a sandbox, first under the old policies and with a recorder, then under the new
ones. Thousands of them in the nightly run.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from random import Random
from typing import Any

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.apipath import resource_path
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.telemetry.observer import Observers
from pyverno.telemetry.recording import Recorder, RecordingFiles
from pyverno.telemetry.redaction import Redaction
from pyverno.testing import PolicySandbox
from tests.support.commandline import Run

CHANGES = 10_000 if os.environ.get("PYVERNO_NIGHTLY") else 40
POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
CONFIG_MAPS = GVR("", "v1", "configmaps")
NAMESPACES = GVR("", "v1", "namespaces")
CHOICES: JSONObject = {"team": ("red", "blue", ""), "tier": ("gold", "silver"), "size": ("1", "5", "20")}

Observed = dict[str, JSONObject | None]
"""By the name of a change the object that came of it, None for one that was refused."""


def rule(name: str, *, resources: JSONObject | None = None, **action: Any) -> JSONObject:
    """Return a rule for ConfigMaps."""
    return {"name": name, "match": {"any": [{"resources": {"kinds": ["ConfigMap"], **(resources or {})}}]}, **action}


def check(action: str, **body: Any) -> JSONObject:
    """Return a check with an action."""
    return {"failureAction": action, "message": "refused", **body}


def policy(name: str, *rules: JSONObject) -> JSONObject:
    """Return a policy."""
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {"background": False, "rules": [*rules]},
    }


TEAM = {"pattern": {"metadata": {"labels": {"team": "?*"}}}}
LARGE = {"deny": {"conditions": {"all": [{"key": "{{ request.object.data.size || '0' }}", "operator": "GreaterThan",
                                          "value": 10}]}}}  # fmt: skip
GOLD = {"deny": {"conditions": {"all": [{"key": "{{ request.oldObject.metadata.labels.tier || '' }}",
                                         "operator": "Equals", "value": "gold"}]}}}  # fmt: skip
OLD = [
    policy("teams", rule("team", validate=check("Audit", **TEAM))),
    policy("sizes", rule("size", validate=check("Enforce", **LARGE))),
    policy("labels", rule("add", mutate={"patchStrategicMerge": {"metadata": {"labels": {"+(seen)": "old"}}}})),
]
NEW = [
    policy(
        "teams",
        rule("team", validate=check("Enforce", **TEAM)),
        rule("gold", resources={"operations": ["UPDATE", "DELETE"]}, validate=check("Enforce", **GOLD)),
    ),
    policy(
        "sizes",
        rule(
            "size",
            resources={"namespaceSelector": {"matchLabels": {"env": "prod"}}},
            validate=check("Enforce", **LARGE),
        ),
    ),
    policy(
        "labels",
        rule(
            "add",
            preconditions={"all": [{"key": "{{ request.object.metadata.labels.team || '' }}", "operator": "Equals",
                                    "value": "red"}]},
            mutate={"patchStrategicMerge": {"metadata": {"labels": {"+(seen)": "new"}}}},
        ),
    ),
]  # fmt: skip


def config_map(name: str, random: Random) -> JSONObject:
    """Return a random object."""
    team, tier, size = (random.choice(CHOICES[key]) for key in ("team", "tier", "size"))
    labels = {"tier": tier, **({"team": team} if team else {})}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": random.choice(("live", "test")), "labels": labels},
        "data": {"size": size},
    }


def changes_of(random: Random, count: int) -> list[tuple[str, JSONObject | None, JSONObject]]:
    """Return changes: the verb, the object that must exist before, and the object that is sent."""
    found = []
    for number in range(count):
        name, verb = f"c-{number}", random.choice(("POST", "PUT", "DELETE"))
        body = config_map(name, random)
        before = None if verb == "POST" else config_map(name, random)
        if before is not None:
            before["metadata"]["namespace"] = body["metadata"]["namespace"]
        found.append((verb, before, body))
    return found


async def observe(client: Client, changes: list[tuple[str, JSONObject | None, JSONObject]]) -> Observed:
    """Send all changes as dry runs, and return what came of each."""
    found: Observed = {}
    for verb, _, body in changes:
        name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
        path = resource_path(CONFIG_MAPS, namespace, "" if verb == "POST" else name)
        try:
            made = await client.request(verb, path, query=(("dryRun", "All"),), body=None if verb == "DELETE" else body)
        except StatusError as error:
            assert "refused" in error.message
            found[name] = None
            continue
        metadata = made.get("metadata") or {}
        found[name] = {} if verb == "DELETE" else {"labels": metadata.get("labels"), "data": made.get("data")}
    return found


async def play(folder: Path, random: Random) -> tuple[Observed, Observed]:
    """Observe the same changes under both sets of policies, and record those under the old one."""
    changes = changes_of(random, CHANGES)
    recorder = Recorder(RecordingFiles(folder, size=256 << 20, files=4), Redaction())
    observers = Observers(recorder)
    async with (
        PolicySandbox(Sandbox(Settings(controllers=False)), observers) as cluster,
        Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
    ):
        for name, env in (("live", "prod"), ("test", "none")):
            await client.create(NAMESPACES, {"kind": "Namespace", "metadata": {"name": name, "labels": {"env": env}}})
        for _, before, _ in changes:
            if before is not None:
                await client.create(CONFIG_MAPS, before, before["metadata"]["namespace"])
        for body in OLD:
            await client.create(POLICIES, body)
        await cluster.settle()
        first = await observe(client, changes)
        recorder.close()
        for body in NEW:
            name = body["metadata"]["name"]
            await client.delete(POLICIES, name)
            await client.create(POLICIES, body)
        await cluster.settle()
        return first, await observe(client, changes)


def test_predicted_changes_are_those_that_a_cluster_shows(cli: Run, folder: Path) -> None:
    """Requests that are newly refused or allowed, and objects that are changed in another way."""
    first, second = asyncio.run(play(folder / "recorded", Random(20)))  # noqa: S311 - the same changes in every run
    (folder / "old.json").write_text("\n---\n".join(map(json.dumps, OLD)))
    (folder / "new.json").write_text("\n---\n".join(map(json.dumps, NEW)))
    words = ("--from", "old.json", "--to", "new.json", "--recorded", "recorded", "-o", "json")
    ran = cli("impact", *words)
    assert 0 == ran.code
    listing = json.loads(ran.out)
    observed = {
        "refused": {name for name in first if first[name] is not None and second[name] is None},
        "allowed": {name for name in first if first[name] is None and second[name] is not None},
        "changed": {
            name
            for name in first
            if first[name] is not None and second[name] is not None and first[name] != second[name]
        },
    }
    predicted = {word: {each["name"] for each in listing["changes"] if each["change"] == word} for word in observed}
    assert all(observed.values())
    assert CHANGES == listing["summary"]["judged"]
    assert observed == predicted
