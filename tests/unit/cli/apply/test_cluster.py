"""`pyverno apply --cluster` on a live API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesandbox import Sandbox, Settings
from pyverno.cli.root import run
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.testing import install_definitions

CONFIG_MAPS = GVR("", "v1", "configmaps")
NAMESPACES = GVR("", "v1", "namespaces")
EXCEPTIONS = GVR("kyverno.io", "v2", "policyexceptions")
BINDINGS = GVR("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings")
ENTRIES = GVR("kyverno.io", "v2", "globalcontextentries")


def policy(name: str, kind: str = "ConfigMap", **rule: Any) -> dict[str, Any]:
    """Return a ClusterPolicy with one validate rule."""
    match = {"any": [{"resources": {"kinds": [kind], **rule.pop("resources", {})}}]}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {"rules": [{"name": "rule", "match": match, **rule}]},
    }


def config_map(name: str, namespace: str, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


OWNED = policy(
    "owned", validate={"message": "an owner is required", "pattern": {"metadata": {"labels": {"owner": "?*"}}}}
)


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[str]:
    """A cluster with two namespaces, objects, an exception and an entry of the global context."""
    with Sandbox(Settings(controllers=False)) as sandbox:

        async def fill() -> None:
            async with Client(load_kubeconfig(sandbox.kubeconfig, environment={}), qps=0) as client:
                await install_definitions(client)
                for name, team in (("one", "red"), ("two", "blue")):
                    labels = {"team": team}
                    await client.create(NAMESPACES, {"kind": "Namespace", "metadata": {"name": name, "labels": labels}})
                    await client.create(CONFIG_MAPS, config_map("bare", name), name)
                    await client.create(CONFIG_MAPS, config_map("fine", name, {"owner": "me"}), name)
                excused = config_map("excused", "one")
                await client.create(CONFIG_MAPS, excused, "one")
                exception = {
                    "apiVersion": "kyverno.io/v2",
                    "kind": "PolicyException",
                    "metadata": {"name": "let", "namespace": "one"},
                    "spec": {
                        "exceptions": [{"policyName": "owned", "ruleNames": ["rule"]}],
                        "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["excused"]}}]},
                    },
                }
                await client.create(EXCEPTIONS, exception, "one")
                settings = config_map("settings", "two", {"owner": "me"}, allowed="bare")
                await client.create(CONFIG_MAPS, settings, "two")
                entry = {
                    "apiVersion": "kyverno.io/v2",
                    "kind": "GlobalContextEntry",
                    "metadata": {"name": "maps"},
                    "spec": {"kubernetesResource": {"version": "v1", "resource": "configmaps", "namespace": "two"}},
                }
                await client.create(ENTRIES, entry)

        sandbox.run(fill())
        yield sandbox.kubeconfig


def _apply(
    folder: Path, capsys: pytest.CaptureFixture[str], kubeconfig: str, *words: str, document: Any = OWNED
) -> tuple[int, dict[str, str]]:
    """Return the exit code, and the status of each object (`namespace/name`)."""
    return _apply_all(folder, capsys, kubeconfig, [document], *words)


def _apply_all(
    folder: Path, capsys: pytest.CaptureFixture[str], kubeconfig: str, documents: list[Any], *words: str
) -> tuple[int, dict[str, str]]:
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    code = run(["apply", str(path), "--cluster", "--kubeconfig", kubeconfig, "--format", "json", *words])
    found = json.loads(capsys.readouterr().out)["results"]
    places = [(each["resource"].get("namespace", ""), each["resource"]["name"]) for each in found]
    return code, {"/".join(place): each["status"] for place, each in zip(places, found, strict=True)}


@contextmanager
def _stored(kubeconfig: str, binding: dict[str, Any]) -> Iterator[None]:
    """Have a binding in the cluster for a while."""

    async def write(*, creates: bool) -> None:
        async with Client(load_kubeconfig(kubeconfig, environment={}), qps=0) as client:
            if creates:
                await client.create(BINDINGS, binding)
            else:
                await client.delete(BINDINGS, binding["metadata"]["name"])

    asyncio.run(write(creates=True))
    try:
        yield
    finally:
        asyncio.run(write(creates=False))


def test_objects_of_the_cluster_are_reviewed(
    kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All namespaces, with the exceptions of the cluster."""
    code, found = _apply(tmp_path, capsys, kubeconfig)
    assert (1, "fail", "pass", "skip") == (code, found["two/bare"], found["two/fine"], found["one/excused"])


def test_a_namespace_can_be_chosen(kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only its objects are reviewed."""
    _, found = _apply(tmp_path, capsys, kubeconfig, "-n", "two")
    assert {"two"} == {place.partition("/")[0] for place in found}


def test_a_namespace_that_the_cluster_does_not_have_is_a_warning(
    kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cluster-scoped objects alone would be a green run."""
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(policy("teams", "Namespace", validate={"pattern": {"metadata": {"name": "?*"}}})))
    for namespace, is_said in (("tow", True), ("two", False)):
        words = ["-n", namespace, "--cluster-wide-resources"]
        assert 0 == run(["apply", str(path), "--cluster", "--kubeconfig", kubeconfig, *words])
        assert is_said == (
            "warning: the cluster has no namespace `tow`: did you mean `two`?" in capsys.readouterr().err
        )


def test_a_namespace_leaves_out_cluster_scoped_objects_unless_requested(
    kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a namespace everything is reviewed."""
    labelled = policy("teams", "Namespace", validate={"pattern": {"metadata": {"labels": {"team": "red | blue"}}}})
    counts = []
    for words in ((), ("-n", "two"), ("-n", "two", "--cluster-wide-resources")):
        _, found = _apply(tmp_path, capsys, kubeconfig, *words, document=labelled)
        counts.append(bool(found.get("/one")))
    assert [True, False, True] == counts


def test_rules_read_the_cluster(kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ConfigMaps, API calls, labels of namespaces and the global context."""
    expected = {"blue": "two", "red": "one"}
    asking = policy(
        "asking",
        resources={"names": ["bare"], "namespaceSelector": {"matchLabels": {"team": "blue"}}},
        context=[
            {"name": "settings", "configMap": {"name": "settings", "namespace": "two"}},
            {"name": "count", "apiCall": {"urlPath": "/api/v1/namespaces/two/configmaps", "jmesPath": "length(items)"}},
            {"name": "maps", "globalReference": {"name": "maps", "jmesPath": "length(@)"}},
        ],
        validate={
            "message": "{{ settings.data.allowed }} {{ count }} {{ maps }}",
            "deny": {
                "conditions": {
                    "any": [
                        {"key": "{{ settings.data.allowed }}", "operator": "NotEquals", "value": "bare"},
                        {"key": "{{ count }}", "operator": "NotEquals", "value": "{{ maps }}"},
                    ]
                }
            },
        },
    )
    code, found = _apply(tmp_path, capsys, kubeconfig, document=asking)
    assert (0, {f"{expected['blue']}/bare": "pass"}) == (code, found)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "a=b"], "--values-file and --set cannot be used with --cluster"),
        (["--workers", "2"], "--workers cannot be used with --cluster"),
        (["--concurrent", "99"], "--concurrent must be 1 to 32, got 99"),
    ],
)
def test_flags_that_do_not_fit_are_one_error(
    words: list[str], message: str, kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is read."""
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(OWNED))
    assert 0 != run(["apply", str(path), "--cluster", "--kubeconfig", kubeconfig, *words])
    assert message in capsys.readouterr().err


def test_a_cluster_that_is_away_is_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback, and no empty result."""
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(OWNED))
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
        "users": [{"name": "u", "user": {}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    words = ["apply", str(tmp_path / "policy.yaml"), "--cluster", "--kubeconfig", str(tmp_path / "config")]
    assert 0 != run(words)
    assert "127.0.0.1:9" in capsys.readouterr().err


def admission_policy(name: str, **spec: Any) -> dict[str, Any]:
    """Return a ValidatingAdmissionPolicy about ConfigMaps."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, **spec},
    }


def admission_binding(name: str, **spec: Any) -> dict[str, Any]:
    """Return a binding of the policy of that name."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], **spec},
    }


WITH_PARAMS = admission_policy(
    "with-params",
    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    validations=[{"expression": "object.metadata.name == params.data.allowed"}],
)
TO_BLUE = {"matchResources": {"namespaceSelector": {"matchLabels": {"team": "blue"}}}}
SETTINGS_REF = {"paramRef": {"name": "settings", "namespace": "two", "parameterNotFoundAction": "Deny"}}


@pytest.mark.parametrize("where", ["file", "cluster"])
def test_a_binding_and_its_parameters_count(
    where: str, kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A binding in the file or in the cluster selects namespaces and names the parameter."""
    bound = admission_binding("with-params", **TO_BLUE, **SETTINGS_REF)
    documents: list[Any] = [WITH_PARAMS]
    if where == "file":
        documents.append(bound)
        code, found = _apply_all(tmp_path, capsys, kubeconfig, documents)
    else:
        with _stored(kubeconfig, bound):
            code, found = _apply_all(tmp_path, capsys, kubeconfig, documents)
    assert (1, "pass", "fail", None) == (code, found.get("two/bare"), found.get("two/fine"), found.get("one/bare"))
