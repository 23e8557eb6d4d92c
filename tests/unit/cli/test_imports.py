"""The modules that one pod and one policy load: the figure B12 of the benchmarks, without a clock."""

from __future__ import annotations

import subprocess
import sys

import pytest

MOST_OWN_MODULES = 178
"""About as many as are needed now; eight of them are `__init__` modules of rooms, which hold only a docstring.
Thirteen are lints, which `--no-lint` does without.

Raise it for what every run needs, and look for a later import first."""

UNUSED = (
    *("click", "rich", "yaml", "orjson", "re2", "aiohttp", "cryptography", "asyncio", "subprocess"),
    *("inspect", "dataclasses", "decimal", "fractions", "hashlib", "json.decoder", "socket", "uuid"),
    *("pyverno.lang.cel", "pyverno.podsecurity", "pyverno.images", "pyverno.policy.cel.policies"),
    *("pyverno.lang.jmespath.functions.times", "pyverno.lang.jmespath.functions.regex", "pyverno.kube.yaml.events"),
    *("pyverno.compiler.rules.mutating", "pyverno.compiler.rules.generating", "pyverno.compiler.cel.policy"),
    *("pyverno.lang.pattern.validate", "pyverno.kube.schemas", "pyverno.kube.patch.jsonpatch", "pyverno.cli.root"),
    "pyverno.offline.git.clone",
)
"""Modules that such a run has no use for; whoever makes it load one of them slows down every run."""

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: no-root
spec:
  rules:
  - name: no-root
    match:
      any:
      - resources:
          kinds:
          - Pod
    validate:
      message: >-
        Containers must
        not run as root.
      foreach:
      - list: request.object.spec.containers
        deny:
          conditions:
            any:
            - key: "{{ element.securityContext.runAsUser || `0` }}"
              operator: AnyIn
              value:
              - 0
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: good
spec:
  containers:
  - name: app
    image: nginx:1.2
    securityContext:
      runAsUser: 1000
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The names of the modules that such a run loads."""
    folder = tmp_path_factory.mktemp("imports")
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "pod.yaml").write_text(POD)
    code = (
        "import sys; sys.argv = ['pyverno', 'apply', 'policy.yaml', '-r', 'pod.yaml']\n"
        "from pyverno.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        "print('loaded:', *sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    shown, _, names = ran.stdout.partition("loaded:")
    assert "pass: 1, fail: 0" in shown
    return frozenset(names.split())


@pytest.mark.parametrize("name", UNUSED)
def test_it_loads_nothing_that_it_does_not_use(loaded: frozenset[str], name: str) -> None:
    """Neither at once nor on the way."""
    assert name not in loaded


def test_it_loads_few_modules_of_ours(loaded: frozenset[str]) -> None:
    """Each of them costs as much as judging several pods."""
    own = {name for name in loaded if name.partition(".")[0] == "pyverno"}
    assert len(own) <= MOST_OWN_MODULES, sorted(own)
