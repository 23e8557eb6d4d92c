"""Work of answered requests survives the replica that answered them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from tests.e2e.admission.deployment import CONFIG_MAPS, Deployment
from tests.e2e.admission.load import config_map
from tests.e2e.admission.scene import REQUIRE, apply, play

_COUNT = 250
_UPDATE_REQUESTS = GVR("kyverno.io", "v2", "updaterequests")
_REPORTS = GVR("reports.kyverno.io", "v1", "ephemeralreports")
_GENERATE: JSONObject = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "generate"},
    "spec": {
        "rules": [
            {
                "name": "rule",
                "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "namespaces": ["default"]}}]},
                "generate": {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "name": "of-{{ request.object.metadata.name }}",
                    "namespace": "default",
                    "data": {"stringData": {"key": "value"}},
                },
            }
        ]
    },
}


def test_a_replica_that_ends_writes_what_it_still_has_to_write(tmp_path: Path) -> None:
    """A replica stopped right after the last answer has written every UpdateRequest and every report."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply(client, REQUIRE)
        await apply(client, _GENERATE)
        names = {f"trigger-{number}" for number in range(_COUNT)}
        bodies = [config_map(name, team="a") for name in sorted(names)]
        await asyncio.gather(*(client.create(CONFIG_MAPS, body, "default") for body in bodies))
        [replica] = deployment.replicas
        replica.terminate()
        assert 0 == await deployment.forget(replica), replica.log.read_text()
        requests = (await client.list(_UPDATE_REQUESTS))["items"]
        assert {"Pending"} == {each["status"]["state"] for each in requests}
        triggers = [each["spec"]["ruleContext"][0]["trigger"]["name"] for each in requests]
        assert sorted(names) == sorted(triggers)
        reports = [each["metadata"]["annotations"] for each in (await client.list(_REPORTS))["items"]]
        assert sorted(names) == sorted(each["audit.kyverno.io/resource.name"] for each in reports)

    play(scene, tmp_path)
