"""`2be74f07`: conditions see the namespace of the request, and never null in its place, through the webhook too."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from pyverno.connector import Connector
from pyverno.errors import HostUnavailableError, PyvernoError
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


RULE: JSONObject = {"name": "check", "validate": {"failureAction": "Enforce", "message": "no", "deny": {}}}
PRODUCTION: JSONObject = {"matchLabels": {"stage": "production"}}
UNLABELLED: JSONObject = {"matchExpressions": [{"key": "stage", "operator": "DoesNotExist"}]}
AUDITED: JSONObject = {**RULE["validate"], "failureAction": "Audit"}
SELECTING: dict[str, JSONObject] = {
    "match": {**RULE, "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "namespaceSelector": PRODUCTION}}]}},
    "exclude": {
        **RULE,
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
        "exclude": {"any": [{"resources": {"namespaceSelector": UNLABELLED}}]},
    },
    "action": {
        **RULE,
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
        "validate": {
            **AUDITED,
            "failureActionOverrides": [{"action": "Enforce", "namespaceSelector": PRODUCTION}],
        },
    },
}


class _World(MemoryWorld):
    """A cluster whose namespaces cannot be read, or are not there yet."""

    problem: PyvernoError | None = None

    def namespace(self, name: str) -> JSONObject | None:
        """Raise, or know nothing."""
        if self.problem is not None:
            raise self.problem
        return None


def _policy_that_selects(how: str) -> JSONObject:
    if how == "CEL":
        constraints = {"resourceRules": RULES, "namespaceSelector": PRODUCTION}
        return {**POLICY, "spec": {"matchConstraints": constraints, "validations": [{"expression": "false"}]}}
    metadata = {"name": "guard"}
    spec = {"rules": [SELECTING[how]]}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("how", [*SELECTING, "CEL"])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_namespace_that_cannot_be_read_admits_nothing(how: str, is_known: bool) -> None:
    """CVE-2025-46342: without its labels no rule with a selector would apply, so the API server has to decide.

    The reply is no review: the failurePolicy of the webhook counts.
    """

    async def run(cluster: MemoryWorld) -> tuple[int, bool | None]:
        certificate = make_certificate()
        server = make_server(certificate, _policy_that_selects(how), cluster=cluster)
        await server.start("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession(connector=Connector(), trust_env=False) as session:
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "production"}}
                url = f"https://localhost:{server.port}{'/vpol/guard' if how == 'CEL' else '/validate/fail'}"
                async with session.post(url, json=review_body(body), ssl=certificate.client_context()) as reply:
                    said = json.loads(await reply.read())
                    return reply.status, (said.get("response") or {}).get("allowed")
        finally:
            await server.stop()

    world = _World()
    world.problem = None if is_known else HostUnavailableError("the namespaces of the cluster are not known yet")
    assert (503, None) == asyncio.run(run(world))
    assert (200, False) == asyncio.run(run(MemoryWorld(namespaces=NAMESPACES)))
