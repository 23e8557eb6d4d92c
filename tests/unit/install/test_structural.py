"""CRD schemas of policies: typed, described, and never stricter than the decoder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.install.definitions import definitions
from pyverno.install.structural import structural_schema
from pyverno.kube.gvk import GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import load_documents
from pyverno.policy.clusterpolicy import FailurePolicy
from pyverno.policy.decode import decode
from pyverno.policy.kinds import POLICY_KINDS
from pyverno.policy.schema import Field, Record, choice, free, list_of, map_of, text
from pyverno.testing import install_definitions

ROOT = Path(__file__).parents[3]
PLURALS = {(each.group, each.kind): each for each in POLICY_KINDS}


def test_a_table_becomes_a_schema() -> None:
    """Names are those of documents; free fields stay free, and unknown fields reach the webhook, which reports them."""
    record = Record(
        dict,
        Field("failure_policy", choice(FailurePolicy, aliases={"ignore": "Ignore"}), deprecated="say it elsewhere"),
        Field("labels", map_of(text)),
        Field("names", list_of(text), required=True),
        Field("anything", free),
    )
    preserve = "x-kubernetes-preserve-unknown-fields"
    assert {
        "type": "object",
        preserve: True,
        "properties": {
            "failurePolicy": {
                "type": "string",
                "enum": ["Ignore", "Fail", "ignore"],
                "description": "Deprecated: say it elsewhere.",
            },
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "names": {"type": "array", "items": {"type": "string"}},
            "anything": {preserve: True},
        },
        "required": ["names"],
    } == structural_schema(record)


def test_every_definition_describes_its_fields() -> None:
    """Each served version has descriptions and stays below a tenth of a megabyte."""
    for definition in definitions():
        assert len(str(definition)) < 100_000
        for version in (each for each in definition["spec"]["versions"] if each["served"]):
            fields = version["schema"]["openAPIV3Schema"]["properties"]
            body = fields["results"] if "results" in fields else fields["spec"]
            assert body["description"]
            assert body.get("properties") or body["items"]["properties"]


def policies() -> Iterator[JSONObject]:
    """Yield the valid policies of this repository."""
    for folder in ("policies", "docs/guide/demo", "tests/cases"):
        for file in sorted((ROOT / folder).rglob("*.yaml")):
            for document in load_documents(file.read_bytes(), file=str(file)):
                decoded = decode(document) if isinstance(document.value, dict) else None
                if decoded is not None and decoded.policy is not None and not decoded.errors:
                    yield document.value


def test_the_schema_accepts_every_policy_that_decodes() -> None:
    """The schema rejects no valid policy of this repository."""

    async def play() -> tuple[int, list[str]]:
        refused: list[str] = []
        count = 0
        async with (
            Sandbox(Settings(kubelet=False, controllers=False)) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            await install_definitions(client)
            for body in policies():
                group, version = parse_api_version(body["apiVersion"])
                kind = PLURALS[group, body["kind"]]
                if kind.group == "admissionregistration.k8s.io":
                    continue
                count += 1
                namespace = "default" if kind.namespaced else ""
                metadata = {key: body["metadata"][key] for key in ("labels", "annotations") if key in body["metadata"]}
                written = {**body, "metadata": {**metadata, "name": f"p{count}"}}
                try:
                    await client.create(GVR(group, version, kind.plural), written, namespace)
                except StatusError as error:
                    refused.append(error.message)
        return count, refused

    count, refused = asyncio.run(play())
    assert [] == refused
    assert count > 100
