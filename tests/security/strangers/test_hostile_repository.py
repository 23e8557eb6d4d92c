"""The owner of a hostile repository: every file that a command may pick up, programs that must not run, and files
outside that must not be touched.

Each command runs offline, as a user would run it in a clone. An audit hook records what it opens, starts and resolves.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from pyverno.cli.root import COMMANDS

ROOT = Path(__file__).parents[3]
_SECRET = "canary-of-the-user"  # noqa: S105 - what must come out nowhere
_HOST = "canary.invalid"
_LAUNCHER = """\
import os, sys
log = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_APPEND) if __name__ == "__main__" else -1
def record(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        wrote = bool((arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        line = ("write" if wrote else "read", os.path.abspath(os.fsdecode(arguments[0])))
    elif event in ("os.rename", "os.remove", "os.mkdir", "os.symlink") and -1 in arguments[1:]:
        line = ("write", os.path.abspath(os.fsdecode(arguments[0])))
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        line = ("resolve", str(arguments[0]))
    elif event == "socket.connect":
        line = ("connect", str(arguments[1]))
    elif event in ("subprocess.Popen", "os.exec", "os.posix_spawn"):
        line = ("run", os.fsdecode(arguments[0] or arguments[1][0]))
    else:
        return
    os.write(log, ("\\t".join(line) + "\\n").encode("utf-8", "replace"))
if __name__ == "__main__":  # processes of a pool load this file as well
    sys.addaudithook(record)
    from pyverno.__main__ import main
    main()
"""
_OWN = "apiVersion: cli.kyverno.io/v1alpha1\nkind: {}\n{}\n"
_POLICY = f"""\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: labels}}
spec:
  rules:
  - name: team
    match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}
    validate: {{failureAction: Enforce, message: team, pattern: {{metadata: {{labels: {{team: "?*"}}}}}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: calls}}
spec:
  rules:
  - name: service
    match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}
    context:
    - {{name: answer, apiCall: {{method: GET, service: {{url: "https://{_HOST}/"}}, default: none}}}}
    - {{name: list, apiCall: {{urlPath: /api/v1/namespaces, default: none}}}}
    - {{name: entry, globalReference: {{name: hostile}}}}
    validate:
      message: "{{{{ answer }}}}"
      deny:
        conditions:
          all:
          - key: "{{{{ is_external_url(join('', ['https://', request.object.metadata.name, '.{_HOST}'])) }}}}"
            operator: Equals
            value: true
  - name: image
    match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}
    verifyImages:
    - imageReferences: ["*"]
      mutateDigest: false
      attestors: [{{entries: [{{keyless: {{subject: "*", issuer: "https://{_HOST}", rekor: {{url: "https://{_HOST}"}}}}}}]}}]
"""
_POD = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: stolen, annotations: {{pyverno.io/ignore: "[none/none] mine"}}}}
spec: {{containers: [{{name: a, image: "{_HOST}/a:1"}}]}}
"""
_OTHERS = f"""\
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {{name: mine, namespace: default}}
spec:
  exceptions: [{{policyName: labels, ruleNames: [team]}}]
  match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}
---
apiVersion: kyverno.io/v2alpha1
kind: GlobalContextEntry
metadata: {{name: hostile}}
spec: {{apiCall: {{urlPath: "https://{_HOST}/", refreshInterval: 1s}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: kyverno, namespace: kyverno}}
data: {{defaultRegistry: "{_HOST}"}}
"""
_SUITE: dict[str, Any] = {
    "apiVersion": "cli.kyverno.io/v1alpha1",
    "kind": "Test",
    "metadata": {"name": "hostile"},
    "policies": ["../policies/policy.yaml"],
    "resources": ["../manifests/pod.yaml"],
    "results": [{"policy": "labels", "rule": "team", "kind": "Pod", "resources": ["stolen"], "result": "fail"}],
}
_REPORT = {
    "apiVersion": "wgpolicyk8s.io/v1alpha2",
    "kind": "PolicyReport",
    "metadata": {"name": "a", "namespace": "default"},
    "results": [{"policy": "labels", "rule": "team", "result": "fail", "properties": {"a": f"https://{_HOST}"}}],
    "summary": {"fail": 1},
}


@dataclass(frozen=True)
class Stranger:
    """A repository, what is around it, and what its commands did."""

    top: Path
    events: list[tuple[str, str]] = field(default_factory=list)

    @property
    def repository(self) -> Path:
        """The working folder of every command."""
        return self.top / "repository"

    def run(self, *words: str, home: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command in the repository; check what it did outside."""
        log = self.top / "log"
        log.write_text("")
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "SYSTEMROOT", "PYTHONPATH") if name in os.environ}
        path = os.pathsep.join(("", ".", "bin", str(self.top / "tools"), os.environ["PATH"]))
        ran = subprocess.run(
            [sys.executable, str(self.top / "tools/pyverno"), str(log), *words],
            cwd=self.repository,
            env={
                **kept,
                "PATH": path,
                "HOME": str(self.top / "home") if home is None else home,
                "TMPDIR": str(self.top / "tmp"),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.events[:] = [
            (kind, text) for kind, _, text in (each.partition("\t") for each in log.read_text().splitlines())
        ]
        return ran

    @property
    def outside(self) -> list[tuple[str, str]]:
        """What a command did that none may do offline."""
        return [each for each in self.events if self._is_wrong(*each)]

    def _is_wrong(self, kind: str, text: str) -> bool:
        path = Path(text)
        match kind:
            case "resolve" | "connect":
                return True
            case "run":
                return not path.is_absolute() or path.is_relative_to(self.top)
            case "write":
                return not path.is_relative_to(self.top / "tmp") and text != os.devnull
            case _:
                allowed = (self.repository, self.top / "tmp", self.top / "tools")
                return path.is_relative_to(self.top) and not any(path.is_relative_to(each) for each in allowed)

    @property
    def canaries(self) -> list[str]:
        """The programs of the repository that ran."""
        return sorted(each.name for each in (self.top / "ran").iterdir())

    def state(self) -> dict[str, bytes]:
        """The content of every file of the repository, and of the user around it."""
        files = (each for name in ("repository", "home") for each in (self.top / name).rglob("*") if each.is_file())
        return {str(each): each.read_bytes() for each in files}


def _program(place: Path, ran: Path, name: str = "") -> None:
    """Write a program that leaves a file when it runs."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\n: > '{ran}/{name or place.name}'\necho '{{}}'\n")
    place.chmod(place.stat().st_mode | stat.S_IXUSR)


def _kubeconfig(server: str) -> str:
    body = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": server, "certificate-authority": "../../home/secret.yaml"}}],
        "users": [
            {
                "name": "a",
                "user": {"exec": {"command": "./bin/exec-plugin", "apiVersion": "client.authentication.k8s.io/v1"}},
            }
        ],
    }
    return json.dumps(body)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with every such file, and the files of a user around it."""
    top = tmp_path_factory.mktemp("stranger")
    ran, repository, home = top / "ran", top / "repository", top / "home"
    for each in (ran, repository, home, top / "tmp", top / "tools"):
        each.mkdir()
    (top / "tools/pyverno").write_text(_LAUNCHER)
    (home / "secret.yaml").write_text(f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {_SECRET}}}\n")
    (home / ".kube").mkdir()
    files = {
        "policies/policy.yaml": _POLICY,
        "policies/values.yaml": _OWN.format("Values", "globalValues: {request.operation: DELETE}"),
        "policies/user-info.yaml": _OWN.format("UserInfo", "clusterRoles: [cluster-admin]"),
        "policies/exception.yaml": _OTHERS,
        "manifests/pod.yaml": _POD,
        "manifests/others.yaml": _OTHERS,
        "manifests/.pyvernoignore": "nothing.yaml\n",
        "suite/kyverno-test.yaml": yaml.safe_dump(_SUITE),
        "outside/kyverno-test.yaml": yaml.safe_dump({**_SUITE, "resources": ["../../home/secret.yaml"]}),
        "reports/report.yaml": yaml.safe_dump(_REPORT),
        "chart/Chart.yaml": "apiVersion: v2\nname: a\nversion: 0.1.0\n",
        "chart/values.yaml": "a: 1\n",
        "kustomization.yaml": f"resources: [https://{_HOST}/a]\ngenerators: [generator.yaml]\n",
        ".kube/config": _kubeconfig(f"https://{_HOST}"),
        "kubeconfig": _kubeconfig(f"https://{_HOST}"),
        ".docker/config.json": json.dumps({"credsStore": "canary"}),
        ".env": f"KUBECONFIG=./kubeconfig\nPYTHONSTARTUP=evil.py\nHTTPS_PROXY=http://{_HOST}\n",
        ".netrc": f"machine {_HOST} login a password b\n",
        "pytest.ini": "[pytest]\npyverno_policies = ../home/secret.yaml\n",
        "pyverno.yaml": "apply: {cluster: true}\n",
        ".gitattributes": "*.yaml filter=evil diff=evil\n",
        ".gitmodules": f'[submodule "a"]\n  path = a\n  url = https://{_HOST}/a\n',
    }
    for name, text in files.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    for name in ("policies", "manifests", "reports", "chart"):
        (repository / name / "link.yaml").symlink_to("../../home/secret.yaml")
    for name in ("git", "helm", "kustomize", "kubectl", "docker-credential-canary", "exec-plugin", "less", "sh"):
        _program(repository / name, ran)
        _program(repository / "bin" / name, ran)
    for name in ("sitecustomize", "usercustomize", "multiprocessing", "yaml", "click", "conftest", "pyverno"):
        (repository / f"{name}.py").write_text(f"open({str(ran / name)!r}, 'w').close()\n")
    _repository(repository, ran)
    return top


def _repository(folder: Path, ran: Path) -> None:
    """Make a repository of git whose configuration and hooks run programs."""
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", "init", "--quiet", "."], cwd=folder, env=clean, check=True)
    (folder / ".gitattributes").rename(folder / "attributes")  # no filter while we commit
    subprocess.run([*git, "add", "-A"], cwd=folder, env=clean, check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "a"], cwd=folder, env=clean, check=True)
    (folder / "attributes").rename(folder / ".gitattributes")
    _program(folder / ".git/canary", ran, "git-program")
    program = str(folder / ".git/canary")
    with (folder / ".git/config").open("a") as file:
        file.write(
            f"[core]\n fsmonitor = {program}\n sshCommand = {program}\n pager = {program}\n hooksPath = .git/hooks\n"
        )
        file.write(
            f'[filter "evil"]\n clean = {program}\n smudge = {program}\n process = {program}\n required = true\n'
        )
        file.write(f'[diff "evil"]\n textconv = {program}\n command = {program}\n[credential]\n helper = {program}\n')
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "fsmonitor-watchman"):
        _program(folder / ".git/hooks" / hook, ran, f"hook-{hook}")


@pytest.fixture
def stranger(made: Path) -> Iterator[Stranger]:
    """The stranger, whose repository has no configuration file yet."""
    found = Stranger(made)
    before = found.state()
    yield found
    for name in (".pyverno.yaml", "pyproject.toml"):
        (found.repository / name).unlink(missing_ok=True)
    assert before == found.state()


_RUNS: dict[str, list[tuple[str, ...]]] = {
    "apply": [
        ("apply", "policies/policy.yaml", "--resource", "manifests"),
        ("apply", ".", "--resource", ".", "--quiet"),
        ("apply", "policies/policy.yaml", "--resource", "manifests", "--changed-since", "HEAD", "--format", "json"),
        ("apply", "policies/policy.yaml", "--resource", "manifests", "--config-revision", "HEAD"),
        ("apply", "policies/policy.yaml", "--resource", "manifests", "--workers", "2", "--exceptions-with-resources"),
        ("apply", "policies/policy.yaml", "--resource", "manifests", "--kustomize", "."),
        ("apply", "policies/policy.yaml", "--resource", "manifests", "--helm", "chart"),
    ],
    "lint": [("lint", "."), ("lint", "policies", "--format", "sarif")],
    "test": [("test", "."), ("test", "suite", "--coverage", "--workers", "2")],
    "explain": [("explain", "policies/policy.yaml", "--resource", "manifests/pod.yaml")],
    "equivalent": [("equivalent", "policies/policy.yaml", "policies/policy.yaml", "-n", "3")],
    "analyze": [("analyze", "policies/policy.yaml", "-n", "3")],
    "impact": [("impact", "--to", "policies/policy.yaml", "--resource", "manifests")],
    "report": [("report", "reports")],
    "jp": [("jp", "query", "-i", "manifests/pod.yaml", "metadata.name")],
    "cel": [("cel", "eval", "-i", "manifests/pod.yaml", "object.metadata.name")],
    "policies": [("policies", "list")],
    "create": [("create", "test", "-p", "policies/policy.yaml")],
    "install": [("install",)],
    "config": [("config", "show", "--all")],
    "version": [("version",)],
    "completion": [("completion", "bash")],
    "docs": [("docs", "--schema", "apply")],
    "fix": [("fix", "policy", "policies"), ("fix", "test", ".")],
    "migrate": [("migrate", "policies/policy.yaml", "suite", "--verify", "-n", "3")],
    "oci": [("oci", "push", "--help")],
    "verify": [("verify", "--help")],
    "trust": [("trust", "--help")],
    "sandbox": [("sandbox", "--help")],
    "ui": [("ui", "--help")],
    "controller": [("controller", "admission", "--help")],
}
"""Runs of every command; those that need a network or a server show their help, which imports them."""


def test_every_command_is_run_in_a_hostile_repository() -> None:
    """A new command has a run here."""
    assert {*COMMANDS} == {*_RUNS}


@pytest.mark.parametrize("words", [run for runs in _RUNS.values() for run in runs], ids=" ".join)
def test_no_file_of_a_hostile_repository_commands_anything(stranger: Stranger, words: tuple[str, ...]) -> None:
    """No program of it runs, nothing outside is read or written, no name is resolved, and the command ends."""
    ran = stranger.run(*words)
    assert ran.returncode in (0, 1, 2), ran.stderr
    assert [] == stranger.canaries
    assert [] == stranger.outside
    assert ("Traceback" in ran.stderr, _SECRET in ran.stdout + ran.stderr) == (False, False)


_CLUSTER_RUNS = (
    ("apply", "policies/policy.yaml", "--cluster"),
    ("report",),
    ("impact", "--to", "policies/policy.yaml", "--cluster"),
    ("analyze", "policies/policy.yaml", "--cluster"),
    ("migrate", "--resource", "widgets.example.com"),
    ("ui", "--port", "0"),
    ("controller", "release"),
)


@pytest.mark.parametrize("home", ["", ".", "./"])
@pytest.mark.parametrize("words", _CLUSTER_RUNS, ids=" ".join)
def test_no_kubeconfig_of_a_hostile_repository_is_used(stranger: Stranger, words: tuple[str, ...], home: str) -> None:
    """A command that wants a cluster finds none, in the working folder neither."""
    ran = stranger.run(*words, home=home)
    read = [text for kind, text in stranger.events if kind == "read" and text.endswith(("kubeconfig", ".kube/config"))]
    assert (True, []) == (
        ran.returncode in (1, 2),
        [each for each in read if each.startswith(str(stranger.repository))],
    ), ran.stderr
    assert ([], []) == (stranger.canaries, [each for each in stranger.outside if each[0] != "read"])


_HOSTILE: dict[str, dict[str, Any]] = {
    "cluster": {"apply": {"cluster": True, "kubeconfig": "kubeconfig"}},
    "output": {"apply": {"output": "../home/output.yaml"}},
    "baseline": {"apply": {"baseline": "../home/baseline.yaml", "update-baseline": True}},
    "facts": {"apply": {"set": ["request.operation=DELETE"], "userinfo": "policies/user-info.yaml"}},
    "values": {"apply": {"values-file": "policies/values.yaml"}},
    "exceptions": {"apply": {"exceptions-with-resources": True}},
    "accepted": {"apply": {"fail-on": "critical", "audit-warn": True, "allow-empty": True, "exclude": ["*"]}},
    "network": {"apply": {"registry": True, "resources": [f"https://{_HOST}/pod.yaml"], "dns": True}},
    "repository": {"apply": {"policies": [f"https://{_HOST}/owner/name"]}},
    "outside": {"apply": {"resources": ["../home/secret.yaml"]}},
    "programs": {"apply": {"helm": ["chart"], "kustomize": ["."], "changed-since": "HEAD", "workers": 9}},
    "lint": {"lint": {"fix": True, "crd": ["../home/secret.yaml"]}},
    "test": {"test": {"write": True, "report": "../home/report.md", "coverage": True, "allow-empty": True}},
}
_HOOKS = {
    each["id"]: each["entry"].split()[1:] for each in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
}
_ARGUMENTS = {
    "pyverno-apply": ("policies/policy.yaml", "--resource", "manifests"),
    "pyverno-lint": ("policies",),
    "pyverno-test": ("suite",),
}


@pytest.mark.parametrize("hook", _HOOKS)
@pytest.mark.parametrize("name", _HOSTILE)
@pytest.mark.parametrize("file", [".pyverno.yaml", "pyproject.toml"])
def test_a_hook_refuses_a_hostile_configuration(stranger: Stranger, hook: str, name: str, file: str) -> None:
    """In one error with its place, before anything is read, written or run; the check is not switched off."""
    if file == ".pyverno.yaml":
        text = json.dumps(_HOSTILE[name])
    else:
        tables = ((section, keys) for section, keys in _HOSTILE[name].items())
        text = "".join(
            f"[tool.pyverno.{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
            for section, keys in tables
        )
    (stranger.repository / file).write_text(text)
    ran = stranger.run(*_HOOKS[hook], *_ARGUMENTS[hook])
    assert 1 == ran.returncode
    assert ran.stderr.startswith(f"Error: {file}:"), ran.stderr
    assert (1, "selects and formats only" in ran.stderr) == (ran.stderr.count("Error: "), True)
    assert ([], []) == (stranger.canaries, stranger.outside)


@pytest.mark.parametrize("hook", _HOOKS)
def test_a_hook_works_in_a_repository_with_settings(stranger: Stranger, hook: str) -> None:
    """The twin: what selects and formats is taken."""
    (stranger.repository / ".pyverno.yaml").write_text(
        "apply: {max-results: 1}\nlint: {quiet: true}\ntest: {strict: true}\n"
    )
    ran = stranger.run(*_HOOKS[hook], *_ARGUMENTS[hook])
    expected = {
        "pyverno-apply": (1, "and 3 more (--max-results 1)"),
        "pyverno-lint": (0, ""),
        "pyverno-test": (0, "1 tests passed"),
    }
    code, text = expected[hook]
    assert (code, True) == (ran.returncode, text in ran.stdout), ran.stdout + ran.stderr
    assert ([], []) == (stranger.canaries, stranger.outside)


@pytest.mark.parametrize("files", [{".pyverno.yaml": "apply: {exclude: ['*']}\n"}, {"manifests/.pyvernoignore": "*\n"}])
def test_a_check_is_not_switched_off_in_silence(stranger: Stranger, files: dict[str, str]) -> None:
    """Excluding everything is an error with a count, also with `--quiet`."""
    kept = {name: (stranger.repository / name).read_text() for name in files if (stranger.repository / name).exists()}
    try:
        for name, text in files.items():
            (stranger.repository / name).write_text(text)
        ran = stranger.run("apply", "policies/policy.yaml", "--resource", "manifests", "--quiet")
        assert (1, True) == (ran.returncode, "note: left out 3 files: 3 by " in ran.stderr), ran.stderr
    finally:
        for name, text in kept.items():
            (stranger.repository / name).write_text(text)


def test_the_audit_sees_what_a_command_does(stranger: Stranger) -> None:
    """The twin of the harness: a run that is allowed to do something is seen to do it."""
    (stranger.top / "home/.kube").joinpath("config").write_text(_kubeconfig("https://127.0.0.1:1"))
    (stranger.top / "home/.kube/bin").mkdir()
    _program(stranger.top / "home/.kube/bin/exec-plugin", stranger.top / "ran")
    try:
        stranger.run("report")
        assert ("read", str(stranger.top / "home/.kube/config")) in stranger.outside
        assert ["exec-plugin"] == stranger.canaries
    finally:
        shutil.rmtree(stranger.top / "home/.kube")
        (stranger.top / "ran/exec-plugin").unlink(missing_ok=True)
