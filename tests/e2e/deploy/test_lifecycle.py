"""The charts from `helm install` to `helm uninstall`, with Helm's SDK and the admission controller as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from kubesandbox import Sandbox
from pyverno.loopthread import LoopThread
from tests.deploy.charts import CHARTS, render
from tests.e2e.admission.balancer import Balancer
from tests.e2e.sandbox.client import Client
from tests.support.ports import free_port

helm = pytest.importorskip("helm_python", reason="helm-python-sdk has no build for this platform")
HOOKS = [f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations" for kind in ("validating", "mutating")]
APPS = "/apis/apps/v1/namespaces/kyverno/deployments"
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/kyverno/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/kyverno/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/kyverno/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
LEFT = (
    *("/api/v1/namespaces/kyverno/secrets", "/api/v1/namespaces/kyverno/services", APPS),
    *("/apis/batch/v1/namespaces/kyverno/jobs", "/apis/coordination.k8s.io/v1/namespaces/kyverno/leases"),
    *HOOKS,
)


def until(what: str, holds: Callable[[], object]) -> None:
    """Wait until a function returns something true."""
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline, f"not within 300 seconds: {what}"
        time.sleep(0.1)


def account_kubeconfig(sandbox: Sandbox, client: Client, name: str, path: Path) -> str:
    """Write a kubeconfig with a token of a service account, and return its path."""
    answer = client.post(f"{PATHS['ServiceAccount']}/{name}/token", {"spec": {"expirationSeconds": 3600}})
    document = json.loads(Path(sandbox.kubeconfig).read_text())
    document["users"][0]["user"] = {"token": answer.body["status"]["token"]}
    path.write_text(json.dumps(document))
    return str(path)


def pod(host_port: int) -> dict[str, Any]:
    """Return a Pod; one with a port of the node breaks the baseline."""
    ports = [{"containerPort": 80, **({"hostPort": host_port} if host_port else {})}]
    container = {"name": "shop", "image": "example.org/shop:1", "ports": ports}
    return {"metadata": {"generateName": "shop-"}, "spec": {"containers": [container]}}


def verdicts(client: Client) -> tuple[int, int]:
    """Return the status codes of a dry run of a good pod and of one that breaks the baseline."""
    path = "/api/v1/namespaces/default/pods?dryRun=All"
    return client.post(path, pod(0)).status, client.post(path, pod(80)).status


def names(client: Client, path: str, label: str = "") -> list[str]:
    """Return the names of all objects, or of those with a label."""
    query = f"?labelSelector={label}" if label else ""
    return [each["metadata"]["name"] for each in client.get(path + query).body["items"]]


def controller(
    kubeconfig: str,
    port: int,
    name: str = "first",
    *,
    drained: str = "0s",
    values: Mapping[str, Any] = MappingProxyType({"mode": "split"}),
) -> subprocess.Popen[bytes]:
    """Start the admission controller with the arguments and the environment that the chart gives it."""
    [deployment] = [
        each
        for each in render(dict(values))
        if each["metadata"]["name"] == "kyverno-admission-controller" and each["kind"] == "Deployment"
    ]
    [container] = [each for each in deployment["spec"]["template"]["spec"]["containers"] if each["name"] == "kyverno"]
    given = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    here = [
        "--webhookServerHost=127.0.0.1",
        f"--webhookServerPort={port}",
        "--disableMetrics",
        f"--shutdownDelay={drained}",
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "pyverno", *container["args"], *here, f"--kubeconfig={kubeconfig}"],
        env={**os.environ, **given, "KYVERNO_NAMESPACE": "kyverno", "KYVERNO_POD_NAME": name},
    )


def test_a_release_refuses_upgrades_rolls_back_and_leaves_nothing(tmp_path: Path) -> None:
    """Accounts of the chart suffice for the controller and the hook; definitions and policies stay, nothing else."""
    port = free_port()
    services = {("kyverno", "kyverno-svc"): ("127.0.0.1", port)}
    with Sandbox(services=services, namespaces=("kyverno",)) as sandbox:
        client = Client(sandbox.kubeconfig)
        with helm.Config(kubeconfig_path=sandbox.kubeconfig, namespace="kyverno") as releases:
            chart, policies = str(CHARTS / "pyverno"), str(CHARTS / "pyverno-policies")
            releases.install(chart, "kyverno", {"mode": "split"}, wait="watcher", timeout=300)
            access = account_kubeconfig(sandbox, client, "kyverno-admission-controller", tmp_path / "admission")
            process = controller(access, port)
            try:
                until(
                    "the webhook of policies is in place",
                    lambda: "kyverno-policy-validating-webhook-cfg" in names(client, HOOKS[0]),
                )
                hooks = [each for path in HOOKS for each in client.get(path).body["items"]]
                assert {"kyverno:admission-controller"} == {
                    owner["name"] for each in hooks for owner in each["metadata"]["ownerReferences"]
                }
                values = {"policyType": "ClusterPolicy", "validationFailureAction": "Enforce"}
                releases.install(policies, "baseline", values, timeout=300)
                until("the policy refuses", lambda: verdicts(client) == (201, 400))
                releases.upgrade(
                    chart,
                    "kyverno",
                    {"mode": "split", "admissionController": {"replicas": 3}},
                    wait="watcher",
                    timeout=300,
                )
                assert (201, 400) == verdicts(client)
                assert 3 == client.get(f"{APPS}/kyverno-admission-controller").body["spec"]["replicas"]
                releases.rollback("kyverno", version=1, wait="watcher", timeout=300)
                assert (201, 400) == verdicts(client)

                run_hook(sandbox, client, tmp_path, process)
                assert [[], []] == [names(client, path) for path in HOOKS]
            finally:
                process.kill()
                process.wait()
            releases.uninstall("kyverno", wait="watcher", timeout=300)
            assert {path: [] for path in LEFT if path != LEFT[0]} == {
                path: names(client, path) for path in LEFT if path != LEFT[0]
            }
            assert [] == names(client, LEFT[0], "cert.kyverno.io/managed-by")
            ours = "app.kubernetes.io/instance=kyverno"
            assert {kind: [] for kind in PATHS} == {kind: names(client, path, ours) for kind, path in PATHS.items()}
            assert (201, 201) == verdicts(client)
            assert 12 == len(names(client, "/apis/kyverno.io/v1/clusterpolicies"))
        client.close()


class Load(threading.Thread):
    """Requests of which one is right and one breaks the baseline, until it is stopped; `wrong` are other verdicts."""

    def __init__(self, kubeconfig: str) -> None:
        super().__init__(daemon=True)
        self._kubeconfig = kubeconfig
        self._stopping = threading.Event()
        self.answered = 0
        self.wrong: list[object] = []

    def run(self) -> None:
        """Send."""
        client = Client(self._kubeconfig)
        while not self._stopping.is_set():
            try:
                found: object = verdicts(client)
            except OSError as error:
                found = error
            if found != (201, 400):
                self.wrong.append(found)
            self.answered += 1
        client.close()

    def stop(self) -> None:
        """End after the request under way."""
        self._stopping.set()
        self.join()


class Service:
    """The balancer of the webhook's Service, in an event loop of its own."""

    def __init__(self) -> None:
        self.balancer = Balancer()

    def __enter__(self) -> Service:
        self._thread = LoopThread("service")
        self._thread.run(self.balancer.start(), 300)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.run(self.balancer.stop(), 300)
        self._thread.close()

    def add(self, port: int) -> None:
        """Take a replica, and wait until it gets requests."""

        async def add() -> None:
            self.balancer.add(port)

        self._thread.run(add(), 300)
        until(f"replica {port} is ready", lambda: self.balancer.is_ready(port))

    def remove(self, port: int) -> None:
        """Forget a replica that has ended."""

        async def remove() -> None:
            self.balancer.remove(port)

        self._thread.run(remove(), 300)


def test_no_request_fails_while_a_release_is_upgraded_and_rolled_back(tmp_path: Path) -> None:
    """Each time a new replica becomes ready and the old one ends; every request has the right verdict."""
    replicas: list[subprocess.Popen[bytes]] = []
    with (
        Service() as service,
        Sandbox(
            services={("kyverno", "kyverno-svc"): ("127.0.0.1", service.balancer.port)}, namespaces=("kyverno",)
        ) as sandbox,
        helm.Config(kubeconfig_path=sandbox.kubeconfig, namespace="kyverno") as releases,
    ):
        client = Client(sandbox.kubeconfig)
        chart, policies = str(CHARTS / "pyverno"), str(CHARTS / "pyverno-policies")
        try:
            releases.install(chart, "kyverno", {"mode": "split"}, wait="watcher", timeout=300)
            access = account_kubeconfig(sandbox, client, "kyverno-admission-controller", tmp_path / "admission")

            def roll(name: str) -> None:
                port = free_port()
                replicas.append(controller(access, port, name, drained="2s"))
                service.add(port)
                if len(replicas) > 1:
                    replicas[-2].send_signal(signal.SIGTERM)
                    assert 0 == replicas[-2].wait(300)
                    service.remove(ports[-1])
                ports.append(port)

            ports: list[int] = []
            roll("first")
            values = {"policyType": "ClusterPolicy", "validationFailureAction": "Enforce"}
            releases.install(policies, "baseline", values, timeout=300)
            until("the policy refuses", lambda: verdicts(client) == (201, 400))
            load = Load(sandbox.kubeconfig)
            load.start()
            try:
                changed = {"mode": "split", "features": {"logging": {"verbosity": 1}}}
                releases.upgrade(chart, "kyverno", changed, wait="watcher", timeout=300)
                roll("second")
                releases.rollback("kyverno", version=1, wait="watcher", timeout=300)
                roll("third")
            finally:
                load.stop()
        finally:
            for replica in replicas:
                replica.kill()
                replica.wait()
            client.close()
    assert [] == load.wrong
    assert load.answered > 50


def run_hook(sandbox: Sandbox, client: Client, folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Do what Helm and the kubelet do before an uninstall: create the hook's account, run it, stop the replicas."""
    hooks = [each for each in render({}) if "helm.sh/hook" in each["metadata"].get("annotations", {})]
    for each in hooks:
        if each["kind"] in PATHS:
            assert 201 == client.post(PATHS[each["kind"]], each).status
    [job] = [each for each in hooks if each["kind"] == "Job"]
    arguments = job["spec"]["template"]["spec"]["containers"][0]["args"]
    access = account_kubeconfig(sandbox, client, "kyverno-release-hook", folder / "hook")
    until("an API server that knows the roles", lambda: client.get(HOOKS[0]).status == 200)
    hook = subprocess.Popen([sys.executable, "-m", "pyverno", *arguments, f"--kubeconfig={access}"])
    until(
        "the Deployment is scaled",
        lambda: not client.get(f"{APPS}/kyverno-admission-controller").body["spec"]["replicas"],
    )
    process.send_signal(signal.SIGTERM)
    assert (0, 0) == (hook.wait(300), process.wait(60))
