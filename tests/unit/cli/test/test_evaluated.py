"""Objects that a policy does not judge: excluded where Kyverno's command evaluates the policy, not found elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyverno.cli.test.evaluated import is_evaluated
from pyverno.compiler.compile import compile_documents
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml

if TYPE_CHECKING:
    from tests.support.commandline import Run

RULE: JSONObject = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["deployments"],
}
ONE: JSONObject = {"resourceRules": [RULE]}
OBJECT = "Object{metadata: Object.metadata{labels: Object.metadata.labels{a: 'b'}}}"
MUTATIONS = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": OBJECT}}]
MATCH = {"any": [{"resources": {"kinds": ["Deployment"]}}]}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "default", "data": {"data": {}}}
PATCH = {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: b}]}\n"


def cel(kind: str, **spec: object) -> JSONObject:
    """Return a policy in CEL that matches Deployments, unless its constraints are given."""
    return _policy("policies.kyverno.io/v1", kind, {"matchConstraints": ONE, **spec})


def rules(*actions: JSONObject) -> JSONObject:
    """Return a ClusterPolicy for Deployments."""
    written = [{"name": f"r{number}", "match": MATCH, **action} for number, action in enumerate(actions)]
    return _policy("kyverno.io/v1", "ClusterPolicy", {"rules": written})


def _policy(api_version: str, kind: str, spec: JSONObject) -> JSONObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def validating(**spec: object) -> JSONObject:
    """Return a ValidatingPolicy that every object passes."""
    return cel("ValidatingPolicy", validations=[{"expression": "true"}], **spec)


DELETING = cel("DeletingPolicy", schedule="* * * * *", conditions=[{"name": "all", "expression": "true"}])
GENERATING = cel("GeneratingPolicy", generate=[{"expression": "generator.Apply('a', [])"}])
NATIVE = "admissionregistration.k8s.io/v1"
POLICIES: dict[str, tuple[JSONObject, bool, bool]] = {
    "validating": (validating(), False, False),
    "two-rules": (validating(matchConstraints={"resourceRules": [RULE, RULE]}), True, False),
    "names": (validating(matchConstraints={"resourceRules": [{**RULE, "resourceNames": ["a"]}]}), True, False),
    "excluded": (validating(matchConstraints={**ONE, "excludeResourceRules": [RULE]}), True, False),
    "selector": (validating(matchConstraints={**ONE, "objectSelector": {"matchLabels": {"a": "b"}}}), True, False),
    "empty-selector": (validating(matchConstraints={**ONE, "objectSelector": {}}), False, False),
    "json": (validating(evaluation={"mode": "JSON"}), False, True),
    "mutating": (cel("MutatingPolicy", mutations=MUTATIONS), False, False),
    "generating": (GENERATING, False, False),
    "deleting": (DELETING, False, False),
    "admission": (
        _policy(
            NATIVE, "ValidatingAdmissionPolicy", {"matchConstraints": ONE, "validations": [{"expression": "true"}]}
        ),
        True,
        True,
    ),
    "validate-rule": (rules({"validate": {"message": "m", "deny": {}}}), True, True),
    "generate-rule": (rules({"generate": CONFIG_MAP}), False, False),
    "mutate-and-generate": (rules({"mutate": PATCH}, {"generate": CONFIG_MAP}), True, True),
}


@pytest.mark.parametrize(("policy", "for_resources", "for_payloads"), POLICIES.values(), ids=POLICIES)
def test_a_policy_without_a_result_is_evaluated_as_by_the_command_of_kyverno(
    policy: JSONObject, *, for_resources: bool, for_payloads: bool
) -> None:
    """Measured with that command, for a Pod and policies for Deployments."""
    compilation = compile_documents(load_documents(dump_yaml(policy).encode()))
    assert () == compilation.errors
    (compiled,) = compilation.items
    assert for_resources is is_evaluated(compiled, is_payload=False)
    assert for_payloads is is_evaluated(compiled, is_payload=True)


@pytest.mark.parametrize(
    ("policy", "result", "expected"),
    [
        (validating(), "fail", (1, "│ Fail   │ Not found │")),
        (validating(), "skip", (0, "│ Pass   │ Excluded │")),
        (rules({"mutate": PATCH}), "fail", (0, "│ Pass   │ Excluded │")),
    ],
    ids=["not-found", "expected", "excluded"],
)
def test_a_row_for_an_object_that_the_policy_is_not_evaluated_for_fails(
    cli: Run, tmp_path: Path, policy: JSONObject, result: str, expected: tuple[int, str]
) -> None:
    """A suite was green whose rows named objects that the policy never saw; a row that expects a skip means it."""
    (tmp_path / "policy.yaml").write_text(dump_yaml(policy))
    (tmp_path / "pod.yaml").write_text(POD)
    suite = {
        "apiVersion": "cli.kyverno.io/v1alpha1",
        "kind": "Test",
        "metadata": {"name": "t"},
        "policies": ["policy.yaml"],
        "resources": ["pod.yaml"],
        "results": [{"policy": "x", "kind": "Pod", "resources": ["p"], "result": result}],
    }
    (tmp_path / "kyverno-test.yaml").write_text(dump_yaml(suite))
    ran = cli("test", str(tmp_path))
    assert (expected[0], True) == (ran.code, expected[1] in ran.out)


def test_a_row_of_an_unknown_policy_fails_for_each_of_its_objects(cli: Run, tmp_path: Path) -> None:
    """The table names the objects, not only the words of the row."""
    (tmp_path / "policy.yaml").write_text(dump_yaml(validating()))
    (tmp_path / "pod.yaml").write_text(POD)
    head = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\npolicies: [policy.yaml]\n"
    row = "resources: [pod.yaml]\nresults: [{policy: other, resources: [p], result: pass}]\n"
    (tmp_path / "kyverno-test.yaml").write_text(head + row)
    ran = cli("test", str(tmp_path))
    assert (1, True) == (ran.code, "│ v1/Pod/default/p │ Fail   │ Not found │" in ran.out)
