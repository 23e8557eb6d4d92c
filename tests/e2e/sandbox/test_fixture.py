"""`Sandbox` as people's own tests use it, and the command."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubesandbox import Sandbox, Settings
from pyverno.errors import UsageError
from tests.e2e.sandbox.client import Client


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `pyverno sandbox`."""
    return subprocess.run(
        [sys.executable, "-m", "pyverno", "sandbox", *words], capture_output=True, text=True, timeout=300, check=False
    )


def test_a_sandbox_runs_in_a_thread_of_its_own(tmp_path: Path) -> None:
    """With objects from files, namespaces of its own, controllers, and a log of requests."""
    manifests = tmp_path / "objects.yaml"
    manifests.write_text(
        "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, namespace: mine}\n---\n"
        "kind: List\napiVersion: v1\nitems:\n- {kind: Secret, apiVersion: v1, metadata: {name: s}}\n"
    )
    lines: list[str] = []
    with Sandbox(kube_version="1.33", namespaces=("mine",), load=(manifests,), log_request=lines.append) as sandbox:
        assert sandbox.url.startswith("https://127.0.0.1:")
        client = Client(sandbox.kubeconfig)
        assert "v1.33.0" == client.get("/version").body["gitVersion"]
        assert 200 == client.get("/api/v1/namespaces/mine/configmaps/a").status
        assert 200 == client.get("/api/v1/namespaces/default/secrets/s").status
        found = client.get("/api/v1/namespaces").body["items"]
        expected = {"default", "kube-node-lease", "kube-public", "kube-system", "mine"}
        assert expected == {item["metadata"]["name"] for item in found}
        assert "10.96.0.1" == client.get("/api/v1/namespaces/default/services/kubernetes").body["spec"]["clusterIP"]
        assert 200 == client.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin").status
        client.close()
        path = Path(sandbox.kubeconfig)
    assert not path.exists()
    assert lines[0].startswith("GET /version 200 ")
    assert lines[0].endswith("ms kubernetes-admin")


def test_a_sandbox_runs_in_the_loop_that_is_there() -> None:
    """Its client writes without HTTP."""

    async def work() -> list[str]:
        async with Sandbox(Settings(controllers=False)) as sandbox:
            client = sandbox.client()
            await client.create("configmaps", {"metadata": {"name": "a", "namespace": "default"}})
            return [body["metadata"]["name"] for body in client.list("configmaps", "default")]

    assert ["a"] == asyncio.run(work())


def test_pods_become_ready_where_there_is_a_kubelet() -> None:
    """Workloads do what they do in a cluster."""

    async def work() -> str:
        async with Sandbox() as sandbox:
            client = sandbox.client()
            labels = {"app": "x"}
            spec = {"containers": [{"name": "a", "image": "nginx"}]}
            template = {"metadata": {"labels": labels}, "spec": spec}
            body = {
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
            }
            await client.create("deployments.apps", body)
            async with asyncio.timeout(60):
                async for change in client.changes("deployments.apps"):
                    if change.state.body.get("status", {}).get("readyReplicas"):
                        return change.state.key.name
        return ""

    assert "web" == asyncio.run(work())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Nope\napiVersion: example.com/v1\n", "no kind `Nope` is served in `example.com/v1`"),
        ("kind: ConfigMap\napiVersion: v1\nmetadata: {name: B_}\n", 'ConfigMap "B_" is invalid'),
        ("a: [", "expected"),
        ("- 1", "is no Kubernetes object"),
    ],
)
def test_files_that_can_not_be_loaded_end_the_start(tmp_path: Path, text: str, message: str) -> None:
    """With the place in the file."""
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(Exception, match=str(path)) as caught, Sandbox(load=(path,), controllers=False):
        pass
    assert message in str(caught.value)


def test_a_port_that_is_taken_is_an_error() -> None:
    """And leaves nothing behind."""
    with Sandbox(controllers=False) as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"), Sandbox(port=port):
            pass


def test_settings_are_given_whole_or_one_by_one() -> None:
    """Not both."""
    with pytest.raises(UsageError):
        Sandbox(Settings(), port=1)


def test_beyond_this_machine_no_user_is_anonymous() -> None:
    """Health is the only exception a cluster makes, and only with RBAC."""
    with Sandbox(address="0.0.0.0", controllers=False) as sandbox:  # noqa: S104  # that is what is tested
        stranger = Client(sandbox.kubeconfig, is_anonymous=True)
        assert 401 == stranger.get("/api/v1/namespaces").status
        stranger.close()
    with Sandbox(authorization=False, controllers=False) as sandbox:
        stranger = Client(sandbox.kubeconfig, is_anonymous=True)
        assert 401 == stranger.get("/api/v1/namespaces").status
        stranger.close()


def test_the_command_runs_another_with_a_kubeconfig(tmp_path: Path) -> None:
    """And ends with its exit code."""
    script = "import os, sys; print(open(os.environ['KUBECONFIG']).read()[:20]); sys.exit(7)"
    done = command("--no-kubelet", "--exec", sys.executable, "-c", script)
    assert (7, '{\n  "apiVersion": "v') == (done.returncode, done.stdout.rstrip())
    path = tmp_path / "kubeconfig"
    done = command("--kubeconfig", str(path), "--exec", "true")
    assert (0, 0o600) == (done.returncode, path.stat().st_mode & 0o777)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--exec"], "Error: --exec needs a command to run\n"),
        (["kubectl"], 'Error: unknown command "kubectl" for "pyverno sandbox"\n'),
        (["--kube-version", "1.20"], "Error: unknown Kubernetes version `1.20`, must be 1.32 to 1.37\n"),
        (
            ["--map-service", "a=b"],
            "Error: invalid argument `a=b` for `--map-service`: expected NAMESPACE/NAME=HOST:PORT\n",
        ),
        (["--exec", "/does/not/exist"], "Error: `/does/not/exist` cannot be run: no such file or directory\n"),
        (["--load", "/does/not/exist"], "Error: `/does/not/exist` cannot be read: no such file or directory\n"),
    ],
)
def test_wrong_arguments_are_reported_in_one_line(words: list[str], message: str) -> None:
    """Exit code 1."""
    done = command(*words)
    assert (1, "", message) == (done.returncode, done.stdout, done.stderr)


def test_requests_are_logged_to_stderr() -> None:
    """One line each."""
    script = (
        "import json, os, ssl, urllib.request as u; d = json.load(open(os.environ['KUBECONFIG'])); "
        "u.urlopen(d['clusters'][0]['cluster']['server'] + '/healthz', context=ssl._create_unverified_context()).read()"
    )
    done = command("--no-kubelet", "--log-requests", "--exec", sys.executable, "-c", script)
    assert 0 == done.returncode, done.stderr
    assert [True] == [line.startswith("GET /healthz 200 ") for line in done.stderr.splitlines()]
    assert "KUBECONFIG" not in os.environ or done.stdout == ""


def test_what_policies_note_is_there_to_be_read() -> None:
    """In `audit` and in the lines of the log."""
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "has(object.data)", "message": "no data"}],
        "auditAnnotations": [{"key": "name", "valueExpression": "string(object.metadata.name)"}],
    }
    binding = {"policyName": "data.example.com", "validationActions": ["Audit"]}
    lines: list[str] = []
    with Sandbox(controllers=False, log_request=lines.append) as sandbox:
        client = Client(sandbox.kubeconfig)
        kind = "validatingadmissionpolic"
        policy = {"metadata": {"name": "data.example.com"}, "spec": spec}
        assert 201 == client.post(f"{group}/{kind}ies", policy).status
        assert 201 == client.post(f"{group}/{kind}ybindings", {"metadata": {"name": "b"}, "spec": binding}).status
        answer = client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "empty"}})
        client.close()
        (record,) = sandbox.audit
    assert (201, ()) == (answer.status, answer.warnings)
    assert ("POST", "/api/v1/namespaces/default/configmaps", 201) == (record.method, record.path, record.code)
    failure = (
        '[{"message":"no data","policy":"data.example.com","binding":"b","expressionIndex":0,'
        '"validationActions":["Audit"]}]'
    )
    expected = {
        "data.example.com/name": "empty",
        "validation.policy.admission.k8s.io/validation_failure": failure,
    }
    assert expected == record.annotations
    assert lines[-1].endswith(record.to_line())


def test_coroutines_run_in_the_thread_of_the_sandbox() -> None:
    """The client is for the event loop of the server, tests are not in it."""
    with Sandbox(controllers=False) as sandbox:
        client = sandbox.client()
        made = sandbox.run(client.create("configmaps", {"metadata": {"name": "a", "namespace": "default"}}))
        assert "a" == made["metadata"]["name"]
    with pytest.raises(UsageError, match="does not run in a thread"):
        work = Sandbox().run(client.delete("configmaps", "a", "default"))
        assert work is None
