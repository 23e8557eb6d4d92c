"""Generated verdicts of conditions: they equal those of the closures for keys of every type and length."""

from __future__ import annotations

import pytest

from pyverno.compiler.compile import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.host import NoHost
from pyverno.engine.phases import VALIDATING
from pyverno.engine.request import Request
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document

KEYS: tuple[JSON, ...] = (
    "windows", "Windows", "win*", "", "1Gi", "1024Mi", "1h", "60m", "0", 0, 1, 1.0, True, False, None, [], ["windows"],
    {}, {"windows": 1}, "windows" * 100, "w" * 5000, "true", "false",
)  # fmt: skip
VALUES: tuple[JSON, ...] = ("windows", "win*", "", "1Gi", "1h", "0", "true", "w" * 300, True, False)


class SupplyingHost(NoHost):
    """Makes the engine ask the closures, as where a person supplied variables."""

    supplies_variables = True


def policy(operator: str, value: JSON) -> JSONObject:
    """Return a policy that denies by one condition on `data.key`."""
    condition = {"key": "{{ request.object.data.key }}", "operator": operator, "value": value}
    match = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
    rule = {"name": "rule", "match": match, "validate": {"deny": {"conditions": {"all": [condition]}}}}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "check"},
        "spec": {"rules": [rule]},
    }


@pytest.mark.parametrize("operator", ["Equals", "Equal", "NotEquals", "NotEqual", "equals", "notEquals"])
def test_a_comparison_with_a_fixed_value_agrees_with_the_closures(operator: str) -> None:
    """Texts, quantities, durations, wildcards and booleans, against keys of every type and length."""
    for value in VALUES:
        policies = compile_documents([Document(policy(operator, value), "")]).policy_set()
        for key in KEYS:
            body: JSONObject = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "a", "namespace": "b"},
                "data": {"key": key},
            }
            request = Request.from_manifest(body)
            fast, exact = (
                [(each.status, each.message) for each in Engine(policies, host).review(request, VALIDATING).results]
                for host in (NoHost(), SupplyingHost())
            )
            assert (value, key, exact) == (value, key, fast)
