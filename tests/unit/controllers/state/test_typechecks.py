"""Type errors of `validate.cel` rules, in the words of the API server."""

from __future__ import annotations

import asyncio

import pytest

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.discovery import find_served
from pyverno.compiler.compile import compile_document
from pyverno.controllers.state.typechecks import cel_type_warnings
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.yaml.documents import Document
from pyverno.policy.clusterpolicy import ClusterPolicy

CRD: JSONObject = {
    "metadata": {"name": "shops.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Shop", "plural": "shops", "singular": "shop"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                    }
                },
            }
        ],
    },
}


def policy(kind: str, expression: str) -> ClusterPolicy:
    """Return a policy with one expression."""
    rule = {
        "name": "check",
        "match": {"any": [{"resources": {"kinds": [kind]}}]},
        "validate": {"cel": {"expressions": [{"expression": expression}]}},
    }
    body = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "check"}}
    found = compile_document(Document({**body, "spec": {"rules": [rule]}}))
    assert isinstance(found.written, ClusterPolicy)
    return found.written


@pytest.mark.parametrize(
    ("kind", "expression", "warned"),
    [
        ("Deployment", "object.spec.replicas < 3", ""),
        ("Deployment", "object.spec.replicass < 3", "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field"),
        ("Shop", "object.spec.size > 3", ""),
        ("Shop", "object.spec.sise > 3", "example.com/v1, Kind=Shop: ERROR: <input>:1:12: undefined field 'sise'"),
    ],
)
def test_expressions_are_checked_against_the_schemas_of_the_kinds(kind: str, expression: str, warned: str) -> None:
    """Schemas come from Kubernetes and from CRDs; each error is one line that starts with the field."""

    async def ask() -> tuple[str, ...]:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig, environment={})) as client,
        ):
            await client.create(GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions"), CRD)
            kinds = (await find_served(client)).completed(KindTable())
            return await cel_type_warnings(client, policy(kind, expression), kinds)

    found = asyncio.run(ask())
    field = "spec.rules[0].validate.cel.expressions[0].expression:"
    assert [True] * bool(warned) == [each.startswith(field + warned) and "\n" not in each for each in found]
