"""Values that a comparison collects from the policies of both sides."""

from __future__ import annotations

from pyverno.compiler.equivalence.vocabulary import vocabulary_of
from pyverno.kube.yaml.documents import load_documents

LEGACY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: a}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod, "apps/v1/*Set"]}}]}
    exclude: {any: [{resources: {kinds: [Secret]}}]}
    validate:
      deny: {conditions: {any: [{key: "{{ request.object.spec.replicas }}", operator: GreaterThan, value: 5}]}}
      pattern: {spec: {"=(volumes)": [{"X(hostPath)": "null"}], containers: [{image: "ghcr.io/* | !*:latest"}]}}
"""
CEL = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: a}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [networking.k8s.io], apiVersions: ["*"], resources: [ingresses, "deployments/scale"]}]
  validations:
  - expression: "object.spec.rules.all(r, r.host.endsWith('.example.com') && size(r.host) < 40)"
"""


def values(text: str) -> list[dict[str, object]]:
    """Return the documents of a text."""
    return [document.value for document in load_documents(text)]


def test_kinds_are_those_that_are_matched() -> None:
    """Selectors with wildcards and plural names; Pods bring their controllers along."""
    legacy = {info.kind for info in vocabulary_of(values(LEGACY)).kinds}
    cel = {info.kind for info in vocabulary_of(values(CEL)).kinds}
    assert {"Pod", "StatefulSet", "DaemonSet", "ReplicaSet", "Secret", "Deployment", "CronJob"} <= legacy
    assert {"Ingress"} == cel


def test_constants_are_values_that_satisfy_and_break() -> None:
    """Of patterns, conditions and expressions; the text of a pattern with operators is no value."""
    legacy, cel = vocabulary_of(values(LEGACY)), vocabulary_of(values(CEL))
    assert {5, "ghcr.io/x"} <= {*legacy.constants}
    assert "ghcr.io/* | !*:latest" not in legacy.constants
    assert {".example.com", 40} <= {*cel.constants}


def test_names_are_those_of_fields() -> None:
    """Without anchors, and out of expressions."""
    assert {"volumes", "hostPath", "replicas"} <= vocabulary_of(values(LEGACY)).names
    assert {"rules", "host"} <= vocabulary_of(values(CEL)).names


def test_documents_of_any_form_are_read() -> None:
    """A spec that is no map, and lists of numbers where names belong."""
    odd = [{"spec": []}, {"spec": {"match": {"kinds": [1, None, "No/Such/Kind/At/All"]}}}, {}]
    assert () == vocabulary_of(odd).kinds
