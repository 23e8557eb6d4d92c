"""`pyverno migrate` over what goes with policies: mutations, generations, cleanup policies and exceptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.compiler.migration.outcome import Converted
from pyverno.compiler.migration.related.cleanups import convert_cleanup
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.value import replace
from tests.support.commandline import Run

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: hosts}
spec:
  rules:
  - name: no-host-network
    match: {any: [{resources: {kinds: [Pod], operations: [CREATE, UPDATE]}}]}
    validate:
      failureAction: Enforce
      allowExistingViolations: false
      message: no host network
      pattern: {spec: {=(hostNetwork): false}}
"""
EXCEPTION = """\
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: system, namespace: kyverno}
spec:
  exceptions: [{policyName: hosts, ruleNames: ["*"]}]
  match: {any: [{resources: {kinds: [Pod], namespaces: [kube-system]}}]}
"""
CLEANUP = """\
apiVersion: kyverno.io/v2
kind: ClusterCleanupPolicy
metadata: {name: few}
spec:
  schedule: "0 0 * * *"
  match: {any: [{resources: {kinds: [Deployment]}}]}
  conditions: {any: [{key: "{{ target.spec.replicas }}", operator: LessThan, value: 2}]}
"""
MUTATE = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labels}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(team): none}}}}
"""
GENERATE = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: quotas}
spec:
  rules:
  - name: quota
    match: {any: [{resources: {kinds: [Namespace], operations: [CREATE]}}]}
    generate:
      apiVersion: v1
      kind: ResourceQuota
      name: default
      namespace: "{{ request.object.metadata.name }}"
      data: {spec: {hard: {pods: "5"}}}
"""


@pytest.mark.parametrize(
    ("text", "kind"),
    [(CLEANUP, "DeletingPolicy"), (MUTATE, "MutatingPolicy"), (GENERATE, "GeneratingPolicy")],
    ids=["cleanup", "mutate", "generate"],
)
def test_other_kinds_of_rules_are_converted_and_tested(cli: Run, folder: Path, text: str, kind: str) -> None:
    """The new policy has a certificate, and the report names it."""
    (folder / "policy.yaml").write_text(text)
    ran = cli("migrate", "policy.yaml", "--objects", "200")
    (document,) = load_documents(ran.out)
    assert (0, kind) == (ran.code, document.value["kind"])
    assert "converted (tested)" in ran.err
    assert any("certificate" in name for name in document.value["metadata"]["annotations"])


def test_an_exception_is_converted_with_its_policy(cli: Run, folder: Path) -> None:
    """Both are judged together: the reference is to the new policy."""
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "exception.yaml").write_text(EXCEPTION)
    ran = cli("migrate", "policy.yaml", "exception.yaml", "--objects", "200")
    policy, exception = (each.value for each in load_documents(ran.out))
    assert 0 == ran.code
    assert [{"name": "hosts", "kind": policy["kind"]}] == exception["spec"]["policyRefs"]


def test_an_exception_without_its_policy_is_left(cli: Run, folder: Path) -> None:
    """The report recommends converting its policies along with it."""
    (folder / "exception.yaml").write_text(EXCEPTION)
    ran = cli("migrate", "exception.yaml")
    assert (1, "") == (ran.code, ran.out)
    assert "convert its policies along with it" in ran.err


@pytest.mark.parametrize(
    ("text", "target", "kind"),
    [(POLICY, "vap", "ValidatingAdmissionPolicy"), (MUTATE, "map", "MutatingAdmissionPolicy")],
    ids=["vap", "map"],
)
def test_kinds_of_kubernetes_come_with_a_binding(cli: Run, folder: Path, text: str, target: str, kind: str) -> None:
    """Both are judged together against the old rule."""
    (folder / "policy.yaml").write_text(text)
    ran = cli("migrate", "policy.yaml", "--to", target, "--objects", "200")
    assert 0 == ran.code
    assert [kind, f"{kind}Binding"] == [each.value["kind"] for each in load_documents(ran.out)]
    assert "converted (tested)" in ran.err


@pytest.mark.parametrize("text", [GENERATE, MUTATE], ids=["generate", "mutate"])
def test_what_kubernetes_cannot_express_stays(cli: Run, folder: Path, text: str) -> None:
    """The report names the kind that there is none for."""
    (folder / "policy.yaml").write_text(text)
    ran = cli("migrate", "policy.yaml", "--to", "vap", "--objects", "200")
    assert (1, "") == (ran.code, ran.out)
    assert "use --to cel" in ran.err


def test_a_cleanup_policy_whose_cel_is_not_valid_stays(cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report names the reason; the exit code is not that of unusable input."""

    def broken(document: Document, book: SchemaBook) -> Converted:
        made = convert_cleanup(document, book)
        conditions = [{"name": "a", "expression": "1 + 'a' == 2"}]
        bad = [{**each, "spec": {**each["spec"], "conditions": conditions}} for each in made.documents]
        return replace(made, documents=tuple(bad))

    monkeypatch.setattr("pyverno.compiler.migration.related.convert.convert_cleanup", broken)
    (folder / "old.yaml").write_text(CLEANUP)
    ran = cli("migrate", "old.yaml")
    assert (1, "") == (ran.code, ran.out)
    assert "not convertible: its form in CEL is not valid" in ran.err
