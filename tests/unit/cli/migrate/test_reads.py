"""Rules that read a cluster are converted, and judged on the same generated objects of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.compiler import compile_documents
from pyverno.compiler.migration.policy import convert_policy
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.engine.engine import Engine
from pyverno.engine.phases import VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.offline.host import OfflineHost
from pyverno.policy.clusterpolicy import ClusterPolicy
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
    "a list of the whole cluster": (
        "{name: found, apiCall: {urlPath: '/api/v1/secrets', "
        "jmesPath: \"items[?metadata.namespace == '{{request.namespace}}']\"}}",
        '{key: "{{ length(found) }}", operator: GreaterThan, value: 1}',
        "resource.List('v1', 'secrets', '')",
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


def test_a_rule_that_reads_a_global_entry_decides_as_before() -> None:
    """The entry is that of the cluster; without it both sides are errors."""
    entry = "{name: teams, globalReference: {name: teams, jmesPath: 'data.names'}}"
    condition = f'{{key: "{TEAM}", operator: AnyNotIn, value: "{{{{ teams }}}}"}}'
    (old,) = load_documents((POLICY % (entry, condition)).replace("Audit", "Enforce"))
    written = compile_documents([old]).items[0].written
    assert isinstance(written, ClusterPolicy)
    (new,) = convert_policy(written, SchemaBook()).documents
    assert "globalContext.Get('teams', '')" in str(new["spec"]["variables"])
    verdicts = []
    for names in (["red", "blue"], ["blue"], [], None):
        host = OfflineHost(global_entries={} if names is None else {"teams": {"data": {"names": names}}})
        for team in ("red", "green", "none"):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"team": team}}}
            request = Request.from_manifest({**body, "metadata": {**body["metadata"], "namespace": "default"}})
            sides = [judge(side, request, host) for side in (old.value, new)]
            assert sides[0] == sides[1], (names, team)
            verdicts.append(sides[0])
    assert {Status.PASS, Status.FAIL, Status.ERROR} == set(verdicts)


def judge(policy: JSONObject, request: Request, host: OfflineHost) -> Status:
    """Return the status of the one result of a policy."""
    compilation = compile_documents([Document(policy, "-", 0)])
    assert not compilation.errors
    (result,) = Engine(PolicySet(compilation.policies), host).review(request, VALIDATING).results
    return result.status
