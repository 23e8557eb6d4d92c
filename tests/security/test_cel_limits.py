"""I9, R4: one model of cost for all policies in CEL; what costs too much is an error, at every position."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.phases import ADMISSION
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document
from tests.security.asking import CONFIG_MAP
from tests.security.test_cel_confinement import RULES

COSTLY = "object.items.all(a, object.items.all(b, object.items.all(c, a + b + c != 'x')))"
HARMLESS = "object.items.all(a, a != 'x')"
POSITIONS = ("ValidatingPolicy/validations", "ValidatingPolicy/variables", "ValidatingPolicy/matchConditions",
             "MutatingPolicy/mutations", "ClusterPolicy/cel", "ValidatingAdmissionPolicy/validations")  # fmt: skip


def _documents(position: str, expression: str) -> list[JSONObject]:
    kind, _, place = position.partition("/")
    name = {"name": "guard"}
    spec: dict[str, Any] = {"matchConstraints": {"resourceRules": RULES}}
    if kind == "ClusterPolicy":
        match = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
        cel = {"expressions": [{"expression": expression}]}
        rule = {"name": "check", "match": match, "validate": {"failureAction": "Enforce", "cel": cel}}
        return [{"apiVersion": "kyverno.io/v1", "kind": kind, "metadata": name, "spec": {"rules": [rule]}}]
    if place == "mutations":
        patch = f"Object{{metadata: Object.metadata{{labels: {{'a': string({expression})}}}}}}"
        spec["mutations"] = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": patch}}]
    else:
        spec["validations"] = [{"expression": expression if place == "validations" else "true"}]
    if place == "variables":
        spec["variables"] = [{"name": "a", "expression": expression}]
        spec["validations"] = [{"expression": "variables.a"}]
    if place == "matchConditions":
        spec["matchConditions"] = [{"name": "a", "expression": expression}]
    group = "policies.kyverno.io/v1"
    if kind == "ValidatingAdmissionPolicy":
        group = "admissionregistration.k8s.io/v1"
        binding = {"policyName": "guard", "validationActions": ["Deny"]}
        return [
            {"apiVersion": group, "kind": kind, "metadata": name, "spec": spec},
            {"apiVersion": group, "kind": f"{kind}Binding", "metadata": name, "spec": binding},
        ]
    return [{"apiVersion": group, "kind": kind, "metadata": name, "spec": spec}]


@pytest.mark.parametrize("position", POSITIONS)
def test_an_expression_costs_so_much_and_no_more(position: str) -> None:
    """A million for an expression, two and a half for conditions; the same loop over fewer items passes."""
    costly = {**CONFIG_MAP, "items": [f"{number:03}" for number in range(90)]}
    for expression, is_good in ((COSTLY, False), (HARMLESS, True)):
        compilation = compile_documents([Document(each, "policy.yaml") for each in _documents(position, expression)])
        assert () == compilation.errors
        request = Request.from_manifest(costly, gvr=GVR("", "v1", "configmaps"))
        review = Engine(compilation.policy_set()).review(request, ADMISSION)
        [result] = review.results
        # Kyverno: in a rule of a ClusterPolicy an expression that errs is one that fails
        assert result.status in ((Status.PASS,) if is_good else (Status.ERROR, Status.FAIL))
        assert (is_good, not is_good) == (review.decision.allowed, "cost limit exceeded" in result.message)
