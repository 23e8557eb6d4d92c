"""The Helm SDK: a chart is installed, upgraded, listed, rolled back and uninstalled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubesandbox import Sandbox
from tests.e2e.sandbox.client import Client

helm = pytest.importorskip("helm_python", reason="helm-python-sdk has no build for this platform")

FILES = {
    "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 0.1.0\nappVersion: '1.0'\n",
    "values.yaml": "replicas: 1\nmode: fast\n",
    "crds/orders.yaml": """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: orders.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: orders, singular: order, kind: Order}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
""",
    "templates/order.yaml": """\
apiVersion: shop.example.com/v1
kind: Order
metadata: {name: "{{ .Release.Name }}-first"}
spec: {mode: "{{ .Values.mode }}"}
""",
    "templates/settings.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-settings"}
data: {mode: "{{ .Values.mode }}", kube: "{{ .Capabilities.KubeVersion.Version }}"}
""",
    "templates/deployment.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}", labels: {app: shop}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: shop
        image: example.com/shop:1.0
        ports: [{containerPort: 8080}]
""",
    "templates/service.yaml": """\
apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}"}
spec: {selector: {app: shop}, ports: [{port: 80, targetPort: 8080}]}
""",
}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """Write a small chart with a definition of its own."""
    for name, text in FILES.items():
        path = tmp_path / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "shop"


@pytest.fixture
def releases(sandbox: Sandbox, namespace: str) -> Iterator[Any]:
    """Connect Helm to the sandbox."""
    with helm.Config(kubeconfig_path=sandbox.kubeconfig, namespace=namespace) as made:
        yield made


@pytest.fixture
def client(sandbox: Sandbox) -> Iterator[Client]:
    """Look at the sandbox without Helm."""
    made = Client(sandbox.kubeconfig)
    yield made
    made.close()


def test_a_release_lives_and_dies(releases: Any, client: Client, chart: Path, namespace: str) -> None:
    """Helm waits until pods are ready, keeps its history in Secrets, and leaves nothing but the definition."""
    core, apps = f"/api/v1/namespaces/{namespace}", f"/apis/apps/v1/namespaces/{namespace}"
    installed = releases.install(str(chart), "shop", {"replicas": 2}, wait="watcher", timeout=300)
    assert "deployed" == installed["status"]
    assert 2 == client.get(f"{apps}/deployments/shop").body["status"]["readyReplicas"]
    settings = client.get(f"{core}/configmaps/shop-settings").body
    assert {"mode": "fast", "kube": "v1.35.0"} == settings["data"]
    assert "Helm" == settings["metadata"]["labels"]["app.kubernetes.io/managed-by"]
    orders = f"/apis/shop.example.com/v1/namespaces/{namespace}/orders"
    assert {"mode": "fast"} == client.get(f"{orders}/shop-first").body["spec"]

    upgraded = releases.upgrade(str(chart), "shop", {"mode": "slow"}, wait="watcher", timeout=300)
    assert ("deployed", 2) == (upgraded["status"], upgraded["revision"])
    assert "slow" == client.get(f"{core}/configmaps/shop-settings").body["data"]["mode"]
    assert 1 == client.get(f"{apps}/deployments/shop").body["spec"]["replicas"]
    assert [("shop", 2)] == [(release["name"], release["revision"]) for release in releases.list()]
    stored = client.get(f"{core}/secrets?labelSelector=owner=helm").body["items"]
    assert ["helm.sh/release.v1"] * 2 == [secret["type"] for secret in stored]

    releases.rollback("shop", version=1, wait="watcher", timeout=300)
    assert "fast" == client.get(f"{core}/configmaps/shop-settings").body["data"]["mode"]

    releases.uninstall("shop", wait="watcher", timeout=300)
    assert [] == releases.list()
    assert [404] * 4 == [
        client.get(path).status
        for path in (
            f"{apps}/deployments/shop",
            f"{core}/services/shop",
            f"{core}/configmaps/shop-settings",
            f"{orders}/shop-first",
        )
    ]
    assert [] == client.get(f"{core}/secrets?labelSelector=owner=helm").body["items"]


def test_what_the_server_refuses_fails_the_release(releases: Any, chart: Path) -> None:
    """The text of the API server reaches the user of Helm."""
    path = chart / "templates" / "service.yaml"
    path.write_text(path.read_text().replace("port: 80,", "port: 800000,"))
    with pytest.raises(helm.HelmError, match=r"spec\.ports\[0\]\.port: Invalid value: 800000"):
        releases.install(str(chart), "broken", timeout=300)
