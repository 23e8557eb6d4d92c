"""The charts' objects by server-side apply, as Argo CD and Flux write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubesandbox import Sandbox
from tests.deploy.charts import RENDERS, render
from tests.e2e.deploy.test_lifecycle import APPS, until
from tests.e2e.sandbox.client import Client

pytest.importorskip("helm_python", reason="helm-python-sdk has no build for this platform")
NOT_SERVED = ("monitoring.coreos.com/", "cert-manager.io/", "gateway.networking.k8s.io/")


def path_of(client: Client, document: dict[str, Any]) -> str:
    """Return the path of an object, from what the server serves."""
    version, metadata = document["apiVersion"], document["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    [served] = [
        each
        for each in client.get(root).body["resources"]
        if each["kind"] == document["kind"] and "/" not in each["name"]
    ]
    place = f"/namespaces/{metadata['namespace']}" if served["namespaced"] else ""
    return f"{root}{place}/{served['name']}/{metadata['name']}"


def wanted(document: dict[str, Any]) -> str:
    """Return an object without the fields that the server and its controllers set."""
    metadata = {
        key: value for key, value in document["metadata"].items() if key not in ("resourceVersion", "managedFields")
    }
    return json.dumps({**document, "metadata": metadata, "status": None}, sort_keys=True)


@pytest.mark.parametrize("name", ["no-hooks", "ha"])
def test_a_render_applied_twice_changes_nothing_without_conflicts(name: str) -> None:
    """The second apply finds what the first one and the cluster's controllers left, without being forced."""
    documents = [
        each
        for each in render(RENDERS[name])
        if not each["apiVersion"].startswith(NOT_SERVED)
        and "helm.sh/hook" not in each["metadata"].get("annotations", {})
    ]
    with Sandbox(namespaces=("kyverno",)) as sandbox:
        client = Client(sandbox.kubeconfig)
        paths = [path_of(client, each) for each in documents]
        kind = "application/apply-patch+yaml"
        sent = [(f"{path}?fieldManager=argocd-controller", each) for path, each in zip(paths, documents, strict=True)]
        assert {201} == {client.send("PATCH", path, each, kind).status for path, each in sent}
        until("replicas are ready", lambda: client.get(APPS).body["items"][-1]["status"].get("readyReplicas"))
        first = {path: wanted(client.get(path).body) for path in paths}
        again = {path: client.send("PATCH", path, each, kind) for path, each in sent}
        assert dict.fromkeys(again, 200) == {path: answer.status for path, answer in again.items()}
        assert first == {path: wanted(client.get(path).body) for path in paths}
        client.close()
    assert len(documents) >= 60
