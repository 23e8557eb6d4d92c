"""Checks of conditions: their shape, operators, and values of `request.operation`.

This module must not evaluate conditions.
(Kyverno: pkg/validation/policy)
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.validation.findings import Findings
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.generate import Generate
from pyverno.policy.mutate import Mutate, MutateForeach
from pyverno.policy.rule import Rule, VerifyImages
from pyverno.policy.schema import describe_type
from pyverno.policy.validate import Validate, ValidateForeach
from pyverno.spelling import did_you_mean

__all__ = [
    "DEPRECATED_OPERATORS",
    "OPERATORS",
    "check_condition_block",
    "check_conditions",
    "condition_blocks",
    "conditions_of",
]

OPERATORS = (
    "Equal",
    "Equals",
    "NotEqual",
    "NotEquals",
    "In",
    "AnyIn",
    "AllIn",
    "NotIn",
    "AnyNotIn",
    "AllNotIn",
    "GreaterThanOrEquals",
    "GreaterThan",
    "LessThanOrEquals",
    "LessThan",
    "DurationGreaterThanOrEquals",
    "DurationGreaterThan",
    "DurationLessThanOrEquals",
    "DurationLessThan",
)
DEPRECATED_OPERATORS: dict[str, tuple[str, ...]] = {"In": ("AllIn", "AnyIn"), "NotIn": ("AllNotIn", "AnyNotIn")}

_NOT_IN_V2BETA1 = {
    "Equal": "Equals",
    "NotEqual": "NotEquals",
    "In": "AnyIn or AllIn",
    "NotIn": "AnyNotIn or AllNotIn",
}
_OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")


def condition_blocks(rule: Rule) -> Iterator[tuple[JSON, Path, bool]]:
    """Yield every conditions value of a rule with its path, and whether key and value have to be written."""
    if rule.preconditions is not None:
        yield rule.preconditions, (*rule.path, "preconditions"), True
    match rule.action:
        case Validate() as validate:
            if validate.deny is not None and validate.deny.conditions is not None:
                yield validate.deny.conditions, (*validate.path, "deny", "conditions"), True
            yield from _foreach_blocks(validate.foreach)
        case Mutate() as mutate:
            yield from _foreach_blocks(mutate.foreach)
            for target in mutate.targets or ():
                if target.preconditions is not None:
                    yield target.preconditions, (*target.path, "preconditions"), False
        case Generate() as generate:
            for entry in generate.foreach or ():
                if entry.preconditions is not None:
                    yield entry.preconditions, (*entry.path, "preconditions"), False
        case VerifyImages() as images:
            for image in images.entries:
                for attestation in image.attestations:
                    for index, block in enumerate(attestation.conditions):
                        yield block, (*attestation.path, "conditions", index), False
                if image.check is not None and image.check.deny is not None and image.check.deny.conditions is not None:
                    yield image.check.deny.conditions, (*image.path, "validate", "deny", "conditions"), True


def _foreach_blocks(
    entries: tuple[ValidateForeach, ...] | tuple[MutateForeach, ...],
) -> Iterator[tuple[JSON, Path, bool]]:
    for entry in entries:
        if entry.preconditions is not None:
            yield entry.preconditions, (*entry.path, "preconditions"), False
        if isinstance(entry, ValidateForeach) and entry.deny is not None and entry.deny.conditions is not None:
            yield entry.deny.conditions, (*entry.path, "deny", "conditions"), False
        yield from _foreach_blocks(entry.foreach)


def conditions_of(block: JSON, path: Path) -> Iterator[tuple[JSON, Path]]:
    """Yield the single conditions of a block: `any`, `all`, or a legacy list."""
    if isinstance(block, list):
        yield from ((each, (*path, index)) for index, each in enumerate(block))
    elif isinstance(block, dict):
        for form in ("any", "all"):
            if isinstance(block.get(form), list):
                yield from ((each, (*path, form, index)) for index, each in enumerate(block[form]))


def check_conditions(rule: Rule, findings: Findings, *, version: str = "") -> None:
    """Check all conditions of one rule; `version` is that of the policy's API."""
    for block, path, complete in condition_blocks(rule):
        check_condition_block(block, path, findings, complete=complete)
        if version == "v2beta1" and complete:
            _check_reduced(block, path, findings)


def _check_reduced(block: JSON, path: Path, findings: Findings) -> None:
    """Check that conditions have the form of `v2beta1`: any and all, without the deprecated operators."""
    if not isinstance(block, dict):
        findings.error("conditions", path, "conditions must be an object with `any` and `all` in v2beta1")
    for condition, place in conditions_of(block, path):
        operator = condition.get("operator") if isinstance(condition, dict) else None
        if operator in _NOT_IN_V2BETA1:
            text = f"the operator `{operator}` does not exist in v2beta1: use {_NOT_IN_V2BETA1[operator]}"
            findings.error("condition-operator", (*place, "operator"), text)


def check_condition_block(block: JSON, path: Path, findings: Findings, *, complete: bool) -> None:
    """Check one conditions value; `complete` requires key and value in every condition."""
    if not isinstance(block, dict | list):
        findings.error("conditions", path, "conditions must be an object with `any` and `all`, or a list")
        return
    if isinstance(block, dict):
        for key, value in block.items():
            if key not in ("any", "all"):
                findings.error("conditions", (*path, key), f"unknown field `{key}`: expected `any` or `all`")
            elif value is not None and not isinstance(value, list):
                findings.error("conditions", (*path, key), "expected a list of conditions")
    for condition, place in conditions_of(block, path):
        if isinstance(condition, dict):
            _check_condition(condition, place, findings, complete=complete)
        else:
            findings.error("conditions", place, "expected a condition")


def _check_condition(condition: JSONObject, path: Path, findings: Findings, *, complete: bool) -> None:
    operator = condition.get("operator")
    missing = condition.get("key") is None or condition.get("value") is None or not operator
    if complete and missing:
        text = "entered value of `key`, `value` or `operator` is missing or misspelled"
        findings.error("condition", path, text)
    if (operator or not complete) and (not isinstance(operator, str) or operator not in OPERATORS):
        listed = " ".join(f'"{each}"' for each in OPERATORS)
        text = f"entered value of `operator` is invalid. valid values: [{listed}]"
        text += did_you_mean(operator, OPERATORS) if operator and isinstance(operator, str) else ""
        findings.error("condition-operator", (*path, "operator"), text)
    for field in condition:
        if field not in ("key", "operator", "value", "message"):
            findings.error("condition", (*path, field), f"unknown field `{field}`")
    key = condition.get("key")
    if complete and isinstance(key, str) and key.replace(" ", "") == "{{request.operation}}" and not missing:
        _check_operation(condition["value"], (*path, "value"), findings)


def _check_operation(value: JSON, path: Path, findings: Findings) -> None:
    allowed = "Only the following values are allowed: [CREATE, UPDATE, DELETE, CONNECT]"
    if isinstance(value, str):
        if not (value.startswith("{{") and value.endswith("}}")) and value not in _OPERATIONS:
            findings.error(
                "condition-operation",
                path,
                f"unknown value '{value}' found under the 'value' field. {allowed}{did_you_mean(value, _OPERATIONS)}",
            )
    elif isinstance(value, list):
        for index, each in enumerate(value):
            if not isinstance(each, str):
                text = (
                    f"'value[{index}]' found to be {describe_type(each)}. "
                    "The provided values are expected to be strings"
                )
                findings.error("condition-operation", (*path, index), text)
            elif each not in _OPERATIONS:
                text = (
                    f"unknown value '{each}' found under the 'value' field. {allowed}{did_you_mean(each, _OPERATIONS)}"
                )
                findings.error("condition-operation", (*path, index), text)
    else:
        text = (
            f"'value' field found to be {describe_type(value)}. "
            "The provided value/values are expected to be either in the form of a string or list"
        )
        findings.error("condition-operation", path, text)
