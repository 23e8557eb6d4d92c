"""`2be74f07`: conditions see the namespace of the request, and never null in its place, through the webhook too."""

from __future__ import annotations

import asyncio
import json

import aiohttp

from pyverno.connector import Connector
from pyverno.kube.json import JSONObject
from tests.security.test_cel_confinement import RULES
from tests.support.webhookserver import MemoryWorld, make_certificate, make_server, review_body

POLICY: JSONObject = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "ValidatingPolicy",
    "metadata": {"name": "guard"},
    "spec": {
        "validationActions": ["Deny"],
        "matchConstraints": {"resourceRules": RULES},
        "matchConditions": [
            {"name": "production", "expression": "namespaceObject.metadata.labels['stage'] == 'production'"}
        ],
        "validations": [{"expression": "false", "message": "nothing in production"}],
    },
}
NAMESPACES: dict[str, JSONObject] = {
    stage: {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stage, "labels": {"stage": stage}}}
    for stage in ("production", "test")
}


def test_conditions_see_the_namespace_of_the_request() -> None:
    """An object in production is denied with the policy's message; its twin in another namespace is allowed.

    Register: 2be74f07.
    """

    async def run() -> dict[str, JSONObject]:
        certificate = make_certificate()
        server = make_server(certificate, POLICY, cluster=MemoryWorld(namespaces=NAMESPACES))
        await server.start("127.0.0.1", 0)
        said: dict[str, JSONObject] = {}
        try:
            async with aiohttp.ClientSession(connector=Connector(), trust_env=False) as session:
                for stage in NAMESPACES:
                    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": stage}}
                    url = f"https://localhost:{server.port}/vpol/guard"
                    async with session.post(url, json=review_body(body), ssl=certificate.client_context()) as reply:
                        said[stage] = json.loads(await reply.read())["response"]
        finally:
            await server.stop()
        return said

    said = asyncio.run(run())
    assert (False, True) == (said["production"]["allowed"], said["test"]["allowed"])
    assert "nothing in production" in said["production"]["status"]["message"]
