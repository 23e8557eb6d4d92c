"""Branches that the requests of a comparison took."""

from __future__ import annotations

from pyverno.compiler.equivalence.case import Case
from pyverno.compiler.equivalence.coverage import branch_coverage
from pyverno.engine.request import Operation
from pyverno.kube.json import JSONObject
from tests.support.migration import engine_of

POLICY: JSONObject = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "ValidatingPolicy",
    "metadata": {"name": "p"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
            ]
        },
        "validations": [{"expression": "object.metadata.name == 'a' || object.metadata.name == 'b'"}],
    },
}


def case(name: str) -> Case:
    """Return the creation of a ConfigMap."""
    return Case({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}, Operation.CREATE)


def test_branches_that_no_request_took_are_named() -> None:
    """Each operand of an expression counts."""
    engine = engine_of(POLICY)
    found = branch_coverage(engine, [POLICY], [case("a")])
    assert (8, 3) == (found.total, found.taken)
    assert "expression `object.metadata.name == 'b'`: true" in found.missed
    assert (8, 8) == (found.total, branch_coverage(engine, [POLICY], [case("a"), case("b"), case("c")]).taken)
