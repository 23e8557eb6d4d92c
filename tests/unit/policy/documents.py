"""Documents for the tests of this package, written as YAML."""

from __future__ import annotations

from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.decode import decode

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: check
spec:
  rules:
    - name: pods
      match:
        any:
          - resources:
              kinds: [Pod]
      validate:
        message: host network is not allowed
        pattern:
          spec:
            hostNetwork: false
"""


def document(text: str) -> Document:
    """Return the only document of a YAML text."""
    (only,) = load_documents(text, file="policy.yaml")
    return only


def problems(text: str) -> list[tuple[str, str, str]]:
    """Return code, path and message of every decoding error."""
    return [(error.code, error.path, error.message) for error in decode(document(text)).errors]


def cluster_policy(text: str) -> ClusterPolicy:
    """Return the policy that a document decodes to; any other result fails the test."""
    decoded = decode(document(text))
    assert decoded.errors == ()
    assert isinstance(decoded.policy, ClusterPolicy)
    return decoded.policy
