"""Policies of rows lose what no schema knows, and nothing else."""

from __future__ import annotations

from typing import Any

from pyverno.compiler import Compiled, compile_document
from pyverno.errors import PolicyError
from tests.conformance.policies import as_document, compiled_policy, known_fields, refusal


def policy(**rule: Any) -> dict[str, Any]:
    written = {"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, **rule}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "spec": {"rules": [written]},
    }


def test_unknown_fields_are_dropped_at_any_depth() -> None:
    """The result is the policy as a cluster would store it; the row itself is not changed."""
    value = policy(validate={"deny": {}, "colour": "red"}) | {"pod-policies.kyverno.io/x": "none"}
    cleaned = known_fields(value)
    assert {"deny": {}} == cleaned["spec"]["rules"][0]["validate"]
    assert "pod-policies.kyverno.io/x" not in cleaned
    assert "colour" in value["spec"]["rules"][0]["validate"]


def test_a_rule_without_an_action_denies() -> None:
    """A rule whose only action was unknown gets one, because its match is what matters."""
    cleaned = known_fields(policy(mutate={"overlay": {"a": "b"}}))
    assert {"deny": {}} == cleaned["spec"]["rules"][0]["validate"]
    assert "mutate" not in cleaned["spec"]["rules"][0]


def test_valid_policies_stay_as_they_are() -> None:
    """Nothing known is dropped."""
    value = policy(validate={"message": "m", "pattern": {"a": "?*"}})
    assert value == known_fields(value)


def test_a_text_is_read_as_a_document() -> None:
    """Rows hold some policies as text."""
    assert {"a": 1} == as_document("a: 1").value


def test_refusals_of_the_product_have_its_own_texts() -> None:
    """A kind that is recognised but cannot be used is left out; a document that is merely bad is not."""
    text = "kind `A` (b/v1) is not supported yet"
    unsupported = Compiled(as_document("a: b"), errors=(PolicyError(text, code="unsupported-kind"),))
    assert text == refusal([unsupported])
    assert refusal([compile_document(as_document(policy(colour="red")))]) == ""


def test_policies_written_in_cel_are_run() -> None:
    """Nothing keeps them out."""
    cel = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "p"},
        "spec": {"evaluation": {"mode": "JSON"}, "validations": [{"expression": "true"}]},
    }
    assert compiled_policy(cel).info.kind == "ValidatingPolicy"
