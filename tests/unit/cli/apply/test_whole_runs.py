"""Whole runs over a repository like kubernetes/examples: mixed and broken files, a chart, a kustomization.

The expected texts are what a reader sees; a change of them is a change for every reader.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commandline import Run

POLICIES = {
    "policies/images.yaml": """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: images
spec:
  rules:
  - name: no-latest
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: write a version
      foreach:
      - list: request.object.spec.containers
        deny: {conditions: {any: [{key: "{{ element.image }}", operator: Equals, value: "*:latest"}]}}
""",
    "policies/replicas.yaml": """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata:
  name: replicas
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  validations:
  - expression: has(object.spec.replicas) && object.spec.replicas <= 3
    message: at most 3 replicas
""",
    "policies/README.md": "# Policies\n",
    "policies/values.yaml": "replicas: 3\n",
}
TREE = {
    "examples/guestbook/frontend.yaml": """\
apiVersion: v1
kind: Service
metadata: {name: frontend}
spec: {ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: frontend
spec:
  replicas: 5
  template:
    spec:
      containers:
      - name: php
        image: example/php:5.6
      - name: proxy
        image: example/proxy:latest
""",
    "examples/guestbook/redis.JSON": json.dumps(
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "redis"},
                    "spec": {"containers": [{"name": "redis", "image": "redis:latest"}]},
                }
            ],
        },
        indent=2,
    ),
    "examples/guestbook/README.md": "# Guestbook\n",
    "examples/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
    "examples/web/values.yaml": "image: nginx\n",
    "examples/web/templates/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: {{ .Release.Name }}}\n",
    "examples/web/crds/crd.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    "examples/overlay/kustomization.yaml": "resources: [../guestbook]\n",
    "examples/broken/indented.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n\tname: a\n",
    "examples/broken/unrendered.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}-x\n",
    "examples/broken/twice.yaml": "apiVersion: v1\nkind: Pod\nkind: Service\n",
    "examples/broken/half.yaml": "kind: Pod\nmetadata: {name: a}\n",
    "examples/tools/package.json": '{"name": "tools"}\n',
}
FINDINGS = """\
examples/guestbook/frontend.yaml:18:16 images/autogen-no-latest validation failure: write a version
    default/Deployment/frontend, rule at policies/images.yaml:7:5
examples/guestbook/frontend.yaml:11:13 replicas at most 3 replicas
    default/Deployment/frontend, rule at policies/replicas.yaml:9:5

examples/guestbook/redis.JSON:15:22 images/no-latest validation failure: write a version
    default/Pod/redis, rule at policies/images.yaml:7:5
"""
SKIPPED = (
    "note: skipped 6 files: policies/values.yaml (no manifest: apiVersion and kind are missing),"
    " examples/overlay/kustomization.yaml (a kustomization),"
    " examples/tools/package.json (no manifest: apiVersion and kind are missing),"
    " examples/web/Chart.yaml (a Helm chart), examples/web/templates (Helm templates), and 1 more"
)
CHARTS = "note: templates of charts are judged when they are rendered: --helm examples/web"
BROKEN = (
    "examples/broken/indented.yaml:4:1: ",
    "examples/broken/twice.yaml:3:1: ",
    "examples/broken/unrendered.yaml:4:10: ",
    "examples/broken/half.yaml:1:1: ",
)
SUMMARY = "pass: 0, fail: 3, warn: 0, error: 4, skip: 0\n"


@pytest.fixture
def repository(folder: Path) -> Path:
    """The working folder with policies and the tree."""
    for name, text in {**POLICIES, **TREE}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.usefixtures("repository")
def test_a_reader_sees_each_finding_and_each_error_once(cli: Run) -> None:
    """Findings on stdout, errors and what was skipped on stderr."""
    ran = cli("apply", "policies", "-r", "examples")
    assert f"\nApplying 4 policy rule(s) to 4 resource(s)...\n{FINDINGS}\n{SUMMARY}" == ran.out
    skipped, charts, *errors = ran.err.splitlines()
    assert (1, SKIPPED, CHARTS, len(BROKEN)) == (ran.code, skipped, charts, len(errors))
    assert [True] * len(BROKEN) == [
        line.startswith(f"Error: {start}") for line, start in zip(errors, BROKEN, strict=True)
    ]
    assert "the document is not a resource: apiVersion is missing" in errors[-1]


@pytest.mark.usefixtures("repository")
def test_annotations_are_the_same_findings_and_errors(cli: Run) -> None:
    """For the pull request: one for each, at its place."""
    ran = cli("apply", "policies", "-r", "examples", "--format", "github")
    places = [line.partition(",title=")[0] for line in ran.out.splitlines()]
    expected = [
        "::error file=examples/broken/indented.yaml,line=4,col=1",
        "::error file=examples/broken/twice.yaml,line=3,col=1",
        "::error file=examples/broken/unrendered.yaml,line=4,col=10",
        "::error file=examples/broken/half.yaml,line=1,col=1",
        "::error file=examples/guestbook/frontend.yaml,line=18,col=16",
        "::error file=examples/guestbook/frontend.yaml,line=11,col=13",
        "::error file=examples/guestbook/redis.JSON,line=15,col=22",
    ]
    assert (1, expected) == (ran.code, places)


@pytest.mark.usefixtures("repository")
def test_a_clean_part_of_the_tree_is_green(cli: Run) -> None:
    """The note still counts the files that are left out."""
    ran = cli("apply", "policies", "-r", "examples", "--include", "web/**", "-q")
    assert (0, "", True) == (ran.code, ran.out, "examples/web/templates (Helm templates)" in ran.err)
    assert 1 == cli("apply", "policies", "-r", "examples/overlay", "-q").code


@pytest.mark.usefixtures("repository")
def test_several_processes_show_the_same(cli: Run) -> None:
    """Places are found after the reviews, in the process that prints."""
    assert FINDINGS == cli("apply", "policies", "-r", "examples/guestbook", "--workers", "2", "-q").out
