"""The last scene of `make demo`: images in a registry, unsigned and signed, and policies that look at them.

A key signs as cosign does: a signature and an attestation lie beside the image, under tags made of its digest.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

from aiohttp import TCPConnector
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kubesandbox.imageregistry import Layer, Registry
from kubesandbox.sandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.controllers.state.hosts import HostSettings
from pyverno.kube.gvk import GVR
from pyverno.kube.status import StatusError
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox

__all__ = ["play"]

SCAN = "https://example.com/scan/v1"
_SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"
_ENVELOPE = "application/vnd.dsse.envelope.v1+json"
_STATEMENT = "application/vnd.in-toto+json"
_PODS = GVR("", "v1", "pods")
_POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")


def play(heading: Callable[[str], None]) -> list[str]:
    """Start a cluster with a registry, play the scene and stop it; return what was not as expected."""
    return asyncio.run(_play(heading))


async def _play(heading: Callable[[str], None]) -> list[str]:
    heading("Images must be signed, and must have passed a scan")
    key = ec.generate_private_key(ec.SECP256R1())
    settings = AdmissionSettings(hosts=HostSettings(registry_connector=TCPConnector))
    async with Registry() as registry, PolicySandbox(Sandbox(), Observers(), settings) as cluster:
        for tag, severity in (("unsigned", ""), ("scanned", "low"), ("vulnerable", "critical")):
            _push(registry, key, tag, severity)
        async with Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client:
            await client.create(_POLICIES, _policy(key))
            await cluster.settle()
            found = {
                tag: await _run(client, f"{registry.host}/app:{tag}") for tag in ("unsigned", "scanned", "vulnerable")
            }
    digest = registry.push("app", "scanned", {"tag": "scanned"})
    expected = {"unsigned": "no signatures found", "scanned": f"@{digest}", "vulnerable": "severity"}
    return [f"the image `{tag}`: {found[tag]}" for tag, part in expected.items() if part not in found[tag]]


def _push(registry: Registry, key: ec.EllipticCurvePrivateKey, tag: str, severity: str) -> None:
    """Push an image, and unless `severity` is empty its signature and an attestation that says it."""
    digest = registry.push("app", tag, {"tag": tag})
    if not severity:
        return
    name = digest.replace(":", "-")
    payload = json.dumps(
        {
            "critical": {
                "identity": {"docker-reference": "app"},
                "image": {"docker-manifest-digest": digest},
                "type": "cosign container image signature",
            },
            "optional": None,
        }
    ).encode()
    signature = {"dev.cosignproject.cosign/signature": _sign(key, payload)}
    registry.push_layers("app", f"{name}.sig", [Layer(payload, signature)], _SIMPLE)
    statement = json.dumps(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": "app", "digest": {"sha256": digest.removeprefix("sha256:")}}],
            "predicateType": SCAN,
            "predicate": {"severity": severity},
        }
    ).encode()
    signed = b"DSSEv1 %d %b %d %b" % (len(_STATEMENT), _STATEMENT.encode(), len(statement), statement)
    body = {
        "payload": base64.b64encode(statement).decode(),
        "payloadType": _STATEMENT,
        "signatures": [{"sig": _sign(key, signed)}],
    }
    annotations = {"dev.cosignproject.cosign/signature": "", "predicateType": SCAN}
    registry.push_layers("app", f"{name}.att", [Layer(json.dumps(body).encode(), annotations)], _ENVELOPE)


def _sign(key: ec.EllipticCurvePrivateKey, data: bytes) -> str:
    return base64.b64encode(key.sign(data, ec.ECDSA(hashes.SHA256()))).decode()


def _policy(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    keys = {"publicKeys": public, "rekor": {"ignoreTlog": True}, "ctlog": {"ignoreSCT": True}}
    attestors = [{"entries": [{"keys": keys}]}]
    conditions = [
        {"all": [{"key": "{{ severity }}", "operator": "Equals", "value": "low", "message": "severity is high"}]}
    ]
    entry = {
        "imageReferences": ["*"],
        "failureAction": "Enforce",
        "attestors": attestors,
        "attestations": [{"type": SCAN, "attestors": attestors, "conditions": conditions}],
    }
    rule = {"name": "signed", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "verifyImages": [entry]}
    metadata = {"name": "signed-and-scanned"}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": {"rules": [rule]}}


async def _run(client: Client, image: str) -> str:
    """Create a Pod with an image; print and return the image that was stored, or the refusal."""
    metadata = {"name": image.rpartition(":")[2], "namespace": "default"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "app", "image": image}]},
    }
    try:
        stored = await client.create(_PODS, body, "default")
        said = f"admitted as {stored['spec']['containers'][0]['image']}"
    except StatusError as error:
        said = f"refused: {error.message}"
    print(f"$ kubectl run {metadata['name']} --image={image}\n{said}\n")
    return said
