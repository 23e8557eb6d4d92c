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


LOCAL = """\
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: few, namespace: shop}
spec:
  rules:
  - name: one
    match: {any: [{resources: {kinds: [Service]}}]}
    context: [CONTEXT]
    RULE
"""
DENY = """\
validate:
      failureAction: Enforce
      allowExistingViolations: false
      message: not allowed
      deny:
        conditions:
        - {key: "{{ request.object.metadata.labels.team || 'x' }}", operator: Equals, value: VALUE}"""
MERGE = "mutate: {patchStrategicMerge: {metadata: {labels: {+(team): VALUE}}}}"
DATA = """\
generate: {apiVersion: v1, kind: Secret, name: made, namespace: shop, data: {stringData: {a: VALUE}}}"""
CONFIG_MAP = "{name: read, configMap: {name: known, namespace: NAMESPACE}}"
ONE = '{name: read, apiCall: {urlPath: "/api/v1/namespaces/NAMESPACE/configmaps/known"}}'
MANY = '{name: read, apiCall: {urlPath: "/api/v1/namespaces/NAMESPACE/configmaps", jmesPath: "items[] | length(@)"}}'
CLONE = (
    "generate: {apiVersion: v1, kind: Secret, name: known, namespace: shop, clone: {name: known, namespace: NAMESPACE}}"
)
SCHEDULED = CLEANUP.replace("ClusterCleanupPolicy", "CleanupPolicy").replace("few}", "few, namespace: shop}")


def local_policy(rule: str, context: str = "", namespace: str = "shop", value: str = "x") -> str:
    """Return a Policy that reads a namespace."""
    text = LOCAL.replace("RULE", rule).replace("CONTEXT", context)
    return text.replace("NAMESPACE", namespace).replace("VALUE", value)


@pytest.mark.parametrize(
    "policy",
    [
        local_policy(DENY),
        local_policy(MERGE),
        local_policy(DATA),
        local_policy(DENY, CONFIG_MAP, value='"{{ read.data.type }}"'),
        local_policy(DENY, CONFIG_MAP, '"{{ request.namespace }}"', value='"{{ read.data.type }}"'),
        local_policy(MERGE, ONE, value='"{{ read.data.type }}"'),
        local_policy(DATA, ONE, "{{ request.object.metadata.namespace }}", value='"{{ read.data.type }}"'),
        local_policy(MERGE, MANY, value='"n{{ read }}"'),
        SCHEDULED,
    ],
)
def test_policies_of_a_namespace_are_tested_on_its_objects(cli: Run, folder: Path, policy: str) -> None:
    """On objects of other namespaces alone, neither side would decide anything."""
    (folder / "old.yaml").write_text(policy)
    ran = cli("migrate", "old.yaml", "-n", "150")
    assert (0, True) == (ran.code, "converted (tested)" in ran.err)
    made = [each.value for each in load_documents(ran.out)]
    assert [("Namespaced", "shop")] == [(each["kind"][:10], each["metadata"]["namespace"]) for each in made]
    moved = ran.out.replace("namespace: shop", "namespace: bank").replace(
        "generator.Apply('shop'", "generator.Apply('bank'"
    )
    (folder / "new.yaml").write_text(moved)
    found = cli("equivalent", "old.yaml", "new.yaml", "-n", "150")
    assert (1, True) == (found.code, "namespace: shop" in found.out or "namespace: bank" in found.out)


@pytest.mark.parametrize(
    "policy",
    [
        local_policy(MERGE, CONFIG_MAP, "bank", value='"{{ read.data.type }}"'),
        local_policy(DENY, ONE, "bank", value='"{{ read.data.type }}"'),
        local_policy(MERGE, MANY.replace("/namespaces/NAMESPACE", ""), value='"n{{ read }}"'),
        local_policy(DATA, ONE, "bank", value='"{{ read.data.type }}"'),
    ],
)
def test_policies_of_a_namespace_that_read_others_stay(cli: Run, folder: Path, policy: str) -> None:
    """A namespaced policy in CEL has no function that reads another namespace."""
    (folder / "old.yaml").write_text(policy)
    ran = cli("migrate", "old.yaml", "-n", "50")
    assert (1, "") == (ran.code, ran.out)
    assert "a namespaced policy in CEL reads its own namespace (other-namespace)" in ran.err
