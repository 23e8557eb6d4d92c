"""Shapes of the chart on versions of Kubernetes, from `helm install` to `helm uninstall`.

With PYVERNO_NIGHTLY every shape meets every version, with all definitions and a policy that refuses. Otherwise two of
them do, without definitions: tests/e2e/deploy/test_lifecycle.py and test_apply.py have others in full.
"""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kubesandbox import Sandbox
from tests.deploy.charts import CHARTS, RENDERS, render
from tests.e2e.deploy.test_apply import NOT_SERVED
from tests.e2e.deploy.test_lifecycle import (
    HOOKS,
    LEFT,
    PATHS,
    account_kubeconfig,
    controller,
    names,
    until,
    verdicts,
)
from tests.e2e.sandbox.client import Client
from tests.support.ports import free_port

helm = pytest.importorskip("helm_python", reason="helm-python-sdk has no build for this platform")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SHAPES = ("default", "ha", "split", "minimal-rbac", "cert-manager", "openshift", "argocd", "no-hooks")
VERSIONS = tuple(f"1.{minor}" for minor in range(32, 38))
NIGHTLY = bool(os.environ.get("PYVERNO_NIGHTLY"))
PAIRS = list(product(SHAPES, VERSIONS)) if NIGHTLY else [("openshift", VERSIONS[0]), ("ha", VERSIONS[-1])]
WITHOUT_CERTIFICATES = "cert-manager"  # those of this shape come from a controller that is not here


def definitions_of_others(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return definitions for the kinds of other projects that a render has, as those projects install them."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    found = {}
    for each in render(values):
        if each["apiVersion"].startswith(NOT_SERVED):
            group, version = each["apiVersion"].split("/")
            kind, plural = each["kind"], each["kind"].lower() + "s"
            spec = {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural},
                "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
            }
            found[plural] = {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}
    return list(found.values())


def enforce(sandbox: Sandbox, client: Client, releases: Any, values: dict[str, Any], port: int, folder: Path) -> None:
    """Run the controller with the arguments and permissions of a shape until a policy of the library refuses."""
    access = account_kubeconfig(sandbox, client, "kyverno-admission-controller", folder / "admission")
    process = controller(access, port, values=values)
    try:
        webhook = "kyverno-policy-validating-webhook-cfg"
        until("the webhook of policies is in place", lambda: webhook in names(client, HOOKS[0]))
        policies = {"policyType": "ClusterPolicy", "validationFailureAction": "Enforce"}
        releases.install(str(CHARTS / "pyverno-policies"), "baseline", policies, timeout=300)
        until("the policy refuses", lambda: verdicts(client) == (201, 400))
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(("shape", "version"), PAIRS)
def test_a_shape_is_installed_upgraded_and_leaves_nothing_but_definitions(
    shape: str, version: str, tmp_path: Path
) -> None:
    """The API server accepts every object, upgrades rename none, and uninstalling keeps only what is marked `keep`."""
    values, port = {**RENDERS[shape], "crds": {"install": NIGHTLY}}, free_port()
    services = {("kyverno", "kyverno-svc"): ("127.0.0.1", port)}
    with (
        Sandbox(kube_version=version, services=services, namespaces=("kyverno",)) as sandbox,
        helm.Config(kubeconfig_path=sandbox.kubeconfig, namespace="kyverno") as releases,
    ):
        client = Client(sandbox.kubeconfig)
        others = definitions_of_others(values)
        assert [201] * len(others) == [client.post(DEFINITIONS, each).status for each in others]
        ours = "app.kubernetes.io/instance=kyverno"
        before = names(client, DEFINITIONS)
        chart = str(CHARTS / "pyverno")
        releases.install(chart, "kyverno", values, wait="watcher", timeout=300)
        made = {path: names(client, path, ours) for path in (*PATHS.values(), *LEFT)}
        if NIGHTLY and shape != WITHOUT_CERTIFICATES:
            enforce(sandbox, client, releases, values, port, tmp_path)
        changed = {**values, "features": {**values.get("features", {}), "logging": {"verbosity": 1}}}
        releases.upgrade(chart, "kyverno", changed, wait="watcher", timeout=300)
        assert made == {path: names(client, path, ours) for path in made}
        releases.uninstall("kyverno", wait="watcher", timeout=300)
        assert {path: [] for path in made} == {path: names(client, path, ours) for path in made}
        kept = {
            each["metadata"]["name"]
            for each in render(values)
            if each["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
        }
        assert kept == set(names(client, DEFINITIONS)) - set(before)
        client.close()
