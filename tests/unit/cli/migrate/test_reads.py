"""Rules that read a cluster are converted, and judged on the same generated objects of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.kube.yaml.documents import load_documents
from tests.support.commandline import Run

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: reads}
spec:
  background: false
  rules:
  - name: read
    match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
    context: [%s]
    validate:
      failureAction: Audit
      message: m
      deny: {conditions: {all: [%s]}}
"""
TEAM = "{{ request.object.metadata.labels.team || 'none' }}"
CASES = {
    "a ConfigMap": (
        "{name: c, configMap: {name: settings, namespace: default}}",
        f'{{key: "{{{{ c.data.team || \'none\' }}}}", operator: Equals, value: "{TEAM}"}}',
        "resource.Get('v1', 'configmaps', 'default', 'settings')",
    ),
    "a list of a namespace": (
        "{name: found, apiCall: {urlPath: '/api/v1/namespaces/{{request.namespace}}/secrets', jmesPath: 'items[]'}}",
        '{key: "{{ length(found) }}", operator: GreaterThan, value: 1}',
        "resource.List('v1', 'secrets', request.?namespace.orValue(''))",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_rule_that_reads_a_cluster_decides_as_before(cli: Run, folder: Path, case: str) -> None:
    """Both sides get the same answers, of which some refuse and some allow."""
    entry, condition, read = CASES[case]
    (folder / "policy.yaml").write_text(POLICY % (entry, condition))
    ran = cli("migrate", "policy.yaml", "--objects", "300")
    assert (0, "reads/read: converted (tested) -> reads") == (ran.code, ran.err.splitlines()[0])
    (document,) = load_documents(ran.out)
    assert read in str(document.value["spec"]["variables"])
