"""Lost watches of policies and data: errors within the bound on every replica, and conditions by the leader."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.leases import LEASES
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from tests.e2e.admission.deployment import Deployment, until
from tests.e2e.admission.load import config_map
from tests.e2e.admission.scene import apply, play, refusal

DEFINITIONS: Final = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
ENTRIES: Final = GVR("kyverno.io", "v2", "globalcontextentries")
TEAMS: Final = GVR("example.com", "v1", "teams")
DEFINITION: Final[JSONObject] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "teams.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Team", "listKind": "TeamList", "plural": "teams", "singular": "team"},
        "scope": "Cluster",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
TEAM: Final[JSONObject] = {"apiVersion": "example.com/v1", "kind": "Team", "metadata": {"name": "blue"}}
ENTRY: Final[JSONObject] = {
    "apiVersion": "kyverno.io/v2",
    "kind": "GlobalContextEntry",
    "metadata": {"name": "teams"},
    "spec": {
        "kubernetesResource": {"group": "example.com", "version": "v1", "resource": "teams"},
        "projections": [{"name": "names", "jmesPath": "[].metadata.name"}],
    },
}
POLICY: Final[JSONObject] = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "team-exists"},
    "spec": {
        "background": False,
        "rules": [
            {
                "name": "rule",
                "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "namespaces": ["default"]}}]},
                "context": [{"name": "teams", "globalReference": {"name": "teams.names"}}],
                "validate": {
                    "failureAction": "Enforce",
                    "message": "there is no team blue",
                    "deny": {"conditions": {"all": [{"key": "blue", "operator": "AnyNotIn", "value": "{{ teams }}"}]}},
                },
            }
        ],
    },
}


async def _ready(client: Client) -> tuple[str, str]:
    """Return status and message of the entry's condition."""
    status = (await client.get(ENTRIES, "teams")).get("status") or {}
    found = [(each["status"], each["message"]) for each in status.get("conditions") or ()]
    return found[0] if found else ("", "")


async def _is_allowed(client: Client) -> bool:
    # each request may go to another replica
    return not any([await refusal(client, config_map("map")) for _ in range(6)])


async def _is_too_old(client: Client) -> bool:
    said = [await refusal(client, config_map("map")) for _ in range(6)]
    return all("are too old to rely on" in each for each in said)


def test_an_entry_whose_definition_is_gone_is_an_error_until_it_is_back(tmp_path: Path) -> None:
    """No replica admits a request that names a team of the outdated list, and the next leader marks the entry too."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await client.create(DEFINITIONS, DEFINITION)

        async def has_team() -> bool:
            return bool(await _created(client))

        await until("the team is stored", has_team)
        await client.create(ENTRIES, ENTRY)
        await apply(client, POLICY)
        await until("the team is known at every replica", lambda: _is_allowed(client), seconds=30)

        await client.delete(DEFINITIONS, "teams.example.com")
        await until("every replica says that its data are too old", lambda: _is_too_old(client), seconds=90)

        async def is_told() -> bool:
            return (await _ready(client))[0] == "False"

        await until("the leader says so", is_told, seconds=60)

        lease = await client.get(LEASES, "kyverno", "kyverno")
        number = int(lease["spec"]["holderIdentity"].split("-")[1].split("_")[0])
        leader = next(each for each in deployment.replicas if each.log.stem == f"replica-{number}")
        leader.terminate()
        await deployment.forget(leader)
        await client.patch(ENTRIES, "teams", {"status": {"conditions": []}}, subresource="status")
        await until("the next leader says so", is_told, seconds=60)

        await client.create(DEFINITIONS, DEFINITION)
        await until("the team is stored", has_team)
        await until("the entry is followed at once", lambda: _is_allowed(client), seconds=60)

        async def is_ready() -> bool:
            return (await _ready(client))[0] == "True"

        await until("the leader says that it is", is_ready, seconds=60)

    play(scene, tmp_path, replicas=2)


async def _created(client: Client) -> JSONObject | None:
    try:
        return await client.create(TEAMS, TEAM)
    except StatusError as error:
        if error.reason == "AlreadyExists":
            return TEAM
        return None
