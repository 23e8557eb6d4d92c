"""Offline commands ask no other machine: names of hosts, services, registries and clusters need a flag.

What an object holds must not reach a resolver by the name that a policy makes of it.
"""

from __future__ import annotations

import ast
import io
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import pyverno
from pyverno.cli.root import COMMANDS, run
from pyverno.compiler import compile_documents
from pyverno.engine.host import NO_HOST, Host, HttpCall, Read
from pyverno.engine.imagesource import ImageAccess
from pyverno.engine.rule import Family, PolicyInfo
from pyverno.errors import HostError, HostUnavailableError
from pyverno.kube.apipath import parse_api_path
from pyverno.lang.runtime import ExpressionHost
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from pyverno.offline.session import Session
from tests.support.sockets import recorded_sockets

_ROOT = Path(pyverno.__file__).parent

_POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: asks}
spec:
  rules:
  - name: looks-up
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      message: m
      deny:
        conditions:
          any:
          - key: "{{ is_external_url(join('', ['http://', request.object.metadata.name, '.example.org'])) }}"
            operator: Equals
            value: true
  - name: calls-a-service
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context:
    - name: a
      apiCall: {method: GET, service: {url: "http://{{ request.object.metadata.name }}.example.org/"}}
    validate: {message: m, deny: {conditions: {any: [{key: "{{ a }}", operator: Equals, value: b}]}}}
  - name: calls-a-cluster
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context:
    - name: a
      apiCall: {urlPath: "/api/v1/namespaces/{{ request.object.metadata.name }}"}
    - name: b
      configMap: {name: "{{ request.object.metadata.name }}", namespace: default}
    validate: {message: m, deny: {conditions: {any: [{key: "{{ a }}", operator: Equals, value: b}]}}}
  - name: reads-an-image
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context:
    - name: a
      imageRegistry: {reference: "host.example/{{ request.object.metadata.name }}"}
    validate: {message: m, deny: {conditions: {any: [{key: "{{ a }}", operator: Equals, value: b}]}}}
"""
_CEL = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: gets}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations:
  - expression: http.Get('http://' + object.metadata.name + '.example.org').a == ''
  - expression: image.GetMetadata('host.example/' + object.metadata.name).digest == ''
  - expression: resource.Get('v1', 'configmaps', 'default', object.metadata.name).metadata.name == ''
"""
_OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canary, namespace: default}\n"
_SUITE = """\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: t}
policies: [policies.yaml]
resources: [object.yaml]
results:
- {policy: asks, rule: looks-up, resources: [canary], kind: ConfigMap, result: error}
"""

_LINES = {
    "apply": "apply policies.yaml -r object.yaml",
    "lint": "lint policies.yaml",
    "test": "test .",
    "explain": "explain policies.yaml -r object.yaml",
    "impact": "impact --to policies.yaml -r object.yaml",
    "analyze": "analyze policies.yaml -r object.yaml --objects 20",
    "equivalent": "equivalent policies.yaml policies.yaml --objects 20",
    "migrate": "migrate policies.yaml --objects 20",
    "fix": "fix policy .",
    "jp": "jp query is_external_url('http://canary.example.org') -i object.yaml",
    "cel": "cel eval object.metadata.name --object object.yaml",
    "report": "report object.yaml",
    "create": "create test --name a -p policies.yaml -r object.yaml",
    "policies": "policies list",
    "install": "install --dry-run --namespace a",
    "config": "config show",
    "version": "version",
    "completion": "completion bash",
    "docs": "docs --help",
}
_TALKING = {
    "ui": "a server",
    "sandbox": "a server",
    "controller": "a server",
    "verify": "reads the registry of the image that the command line names",
    "trust": "reads the repository that the command line names",
    "oci": "reads the registry that the command line names",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: policies that ask for everything, an object, and a suite."""
    for name, text in {
        "policies.yaml": f"{_POLICY}---\n{_CEL}",
        "object.yaml": _OBJECT,
        "kyverno-test.yaml": _SUITE,
    }.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", _LINES)
def test_no_offline_command_asks_another_machine(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a look-up nor a connection, nor a program that could do it."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with recorded_sockets() as seen, suppress(SystemExit):
        run(_LINES[name].split())
    assert "internal error" not in capsys.readouterr().err
    assert [] == seen


def test_every_command_is_silent_or_has_a_reason() -> None:
    """A new command belongs to one of the tables."""
    assert set(COMMANDS) == _LINES.keys() | _TALKING.keys()


def test_a_look_up_is_an_error_that_names_its_flag(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is never "not external"; with the flag this machine is asked."""
    words = ("apply", "policies.yaml", "-r", "object.yaml", "--format", "json")
    assert 1 == run(words)
    printed = capsys.readouterr().out
    assert "no host name is looked up here, only by `--dns` of `apply`, `test` and `jp query`" in printed
    query = (
        "jp",
        "query",
        "is_external_url(join('', ['http://', metadata.name, '.example.org']))",
        "-i",
        "object.yaml",
    )
    for each in (words, ("test", "."), query):
        with recorded_sockets() as seen:
            run((*each, "--dns"))
        assert any("canary.example.org" in each for each in seen)


_READER = PolicyInfo("Policy", "kyverno.io/v1", "b", Family.RULES, namespace="a")
_ASKED: dict[str, Callable[[Any], object]] = {
    "now": lambda host: host.now(),
    "random_bits": lambda host: host.random_bits(8),
    "lookup_host": lambda host: host.lookup_host("canary.example.org"),
    "api_call": lambda host: host.api_call(parse_api_path("/api/v1/namespaces/a"), method="GET", body=None),
    "http_call": lambda host: host.http_call(HttpCall("GET", "http://canary.example.org/")),
    "http_exchange": lambda host: host.http_exchange(HttpCall("GET", "http://canary.example.org/")),
    "kinds": lambda host: host.kinds,
    "record_keys": lambda host: host.record_keys,
    "require_read": lambda host: host.require_read(_READER, Read("get", "", "secrets", name="a")),
    "config_map": lambda host: host.config_map("a", "b"),
    "image_source": lambda host: host.image_source.resolve([("canary.example/a", ImageAccess())]),
    "image_data": lambda host: host.image_data("canary.example/a", credentials=None),
    "global_entry": lambda host: host.global_entry("a"),
    "get_object": lambda host: host.get_object("v1", "ConfigMap", "a", "b"),
    "list_objects": lambda host: host.list_objects("v1", "ConfigMap", "a", None),
    "supplies_variables": lambda host: host.supplies_variables,
    "recorded_variables": lambda host: host.recorded_variables("a", "b", "c"),
}
_DOORS: dict[str, Callable[[], Host]] = {
    "no host": lambda: NO_HOST,
    "the library": OfflineHost,
    "with objects": lambda: OfflineHost(objects=ObjectStore([{"apiVersion": "v1", "kind": "Pod"}])),
    "a session": lambda: Session.open(compile_documents([])).host,
}


@pytest.mark.parametrize("door", _DOORS, ids=lambda door: door.replace(" ", "-"))
@pytest.mark.parametrize("name", _ASKED)
def test_no_question_to_an_offline_host_leaves_the_machine(door: str, name: str) -> None:
    """Each method of each host: it answers from what it has, or with an error."""
    host = _DOORS[door]()
    with recorded_sockets() as seen, suppress(HostError):
        _ASKED[name](host)
    assert [] == seen


def test_every_question_is_in_the_table() -> None:
    """A new method of the Host belongs to it."""
    assert {name for name in (*vars(Host), *vars(ExpressionHost)) if not name.startswith("_")} == _ASKED.keys()


def test_the_recorder_hears_a_look_up() -> None:
    """The other tests would pass without it."""
    with recorded_sockets() as seen, suppress(OSError):
        socket.getaddrinfo("canary.invalid", 80)
    assert 1 == len(seen)
    with pytest.raises(HostUnavailableError):
        OfflineHost().lookup_host("canary.invalid")


_ASKING = {
    "cli/apply/load.py": "`--dns`",
    "cli/test/suite.py": "`--dns`",
    "cli/jp.py": "`--dns`",
    "cli/cel/run.py": "for clock and randomness; its own look-up raises",
    "controllers/state/hosts.py": "a controller, whose policies are the administrator's",
}
"""The modules that make a `System` that looks names up."""


def test_few_modules_make_a_system_that_looks_names_up() -> None:
    """All others have the one that does not."""
    found = {
        path.relative_to(_ROOT).as_posix()
        for path in _ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "System"
    }
    assert _ASKING.keys() == found
