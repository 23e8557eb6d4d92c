"""Table `policy_validation`: refusals, warnings, and a few predicates that validation uses."""

from __future__ import annotations

from typing import Any

from pyverno.compiler import compile_document
from pyverno.compiler.validation.actions import _are_texts
from pyverno.compiler.validation.kinds import _is_about_metadata
from pyverno.compiler.validation.rules import validate
from pyverno.compiler.validation.variables import _COMPILED
from pyverno.errors import PolicyError
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.decode import decode
from tests.conformance.outcome import NO_ASSERTION, Claim, NotRun
from tests.conformance.policies import as_document
from tests.conformance.tables.go_structs import as_json


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row by the fields that it has."""
    if "policy" in row and "valid" in row:
        return _verdict(bool(row["valid"]), _problems(row["policy"]))
    if "policy" in row and "expectedOutput" in row:
        return _verdict(bool(row["expectedOutput"]), _problems(_named(row["policy"])))
    if "newPolicy" in row and "oldPolicy" in row:
        return _update(row)
    if "spec" in row:
        return _overrides(row)
    if "rule" in row and "expectedOutput" in row:
        rule = {**row["rule"], "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}}
        return Claim(row["expectedOutput"], _is_about_metadata(_decoded(_policy([rule])).spec.rules[0]))
    if "input" in row and "pass" in row:
        return Claim(row["pass"], bool(_COMPILED[False, False].search(row["input"])))
    if isinstance(row.get("args"), dict) and "m" in row["args"]:
        return Claim(row["want"], _are_texts(row["args"]["m"]))
    raise NotRun(NO_ASSERTION)


def _policy(rules: list[Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "row"},
        "spec": {**spec, "rules": rules},
    }


def _named(policy: dict[str, Any]) -> dict[str, Any]:
    """Give names to rules that have none; the function that such rows come from looks at one field only."""
    rules = [{"name": f"rule-{index}", **rule} for index, rule in enumerate(policy["spec"]["rules"])]
    return {**policy, "spec": {"validationFailureAction": "Enforce", **policy["spec"], "rules": rules}}


def _decoded(value: Any) -> ClusterPolicy:
    decoded = decode(as_document(value))
    assert isinstance(decoded.policy, ClusterPolicy), "; ".join(map(str, decoded.errors))
    return decoded.policy


def _problems(value: Any) -> list[PolicyError]:
    return list(compile_document(as_document(value)).errors)


def _verdict(is_valid: bool, errors: list[PolicyError]) -> Claim:
    if is_valid:
        return Claim([], [str(error) for error in errors])
    return Claim("refused", "refused" if errors else "accepted")


def _update(row: dict[str, Any]) -> Claim:
    problems = validate(_decoded(row["newPolicy"]), old=_decoded(row["oldPolicy"]))
    got = {
        "refused": any(error.code == "generate-immutable" for error in problems.errors),
        "warned": any("no synchronization" in warning for warning in problems.warnings),
    }
    return Claim({"refused": bool(row["expectedErr"]), "warned": bool(row["expectWarning"])}, got)


def _overrides(row: dict[str, Any]) -> Claim:
    overrides = as_json(row["spec"].get("ValidationFailureActionOverrides") or [])
    rule = {
        "name": "row",
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "validate": {"pattern": {"metadata": {"name": "?*"}}},
    }
    policy = _policy([rule], validationFailureActionOverrides=overrides)
    wanted = row.get("expectedError")
    return _verdict(not wanted, _problems(policy))
