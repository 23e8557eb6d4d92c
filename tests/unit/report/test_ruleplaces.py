"""Results name the place of the rule that decided."""

from __future__ import annotations

import pytest

from pyverno.compiler import compile_documents
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.session import Session
from pyverno.report.ruleplaces import RulePlaces

VALIDATING = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations:
  - expression: "true"
  - expression: object.metadata.name == 'x'
"""
RULE = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: other
    match: {any: [{resources: {kinds: [Secret]}}]}
    validate: {pattern: {metadata: {name: x}}}
  - name: one
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      cel:
        expressions:
        - expression: "true"
        - expression: object.metadata.name == 'x'
"""
PATTERN = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: one
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: m, pattern: {metadata: {name: x}}}
"""


@pytest.mark.parametrize(
    ("policy", "line"), [(VALIDATING, 9), (RULE, 15), (PATTERN, 6)], ids=["policy in CEL", "rule in CEL", "pattern"]
)
def test_a_result_names_the_part_of_the_rule_that_decided(policy: str, line: int) -> None:
    """The place is that of the validation that decided, or of the rule."""
    session = Session.open(compile_documents(load_documents(policy, file="p.yaml")))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}
    (result,) = session.review(pod).results
    assert ("p.yaml", line) == (
        (place := RulePlaces(session.compilation).of_result(result)).file,
        place.line,
    )
    assert result.rule.location == RulePlaces(Session.open(compile_documents(())).compilation).of_result(result)
