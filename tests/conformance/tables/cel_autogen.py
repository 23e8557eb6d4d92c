"""Table `cel_autogen`: which CEL policies get copies for pod controllers, their constraints, expressions and specs.

Rows hold Go structs: what Go embeds is inlined as in JSON, and constants for operations and copies are their values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyverno.compiler.autogen.cel import (
    CRON_JOBS,
    DEFAULTS,
    Target,
    constraints_for,
    expand_cel,
    guarded_conditions,
    is_about_pods,
    rewrite_mutation,
    rewrite_text,
)
from pyverno.policy.cel.constraints import MatchConstraints
from pyverno.policy.cel.imagepolicy import ImageValidatingPolicy
from pyverno.policy.cel.policies import MutatingPolicy, ValidatingPolicy
from pyverno.policy.decode import decode
from pyverno.policy.validate import NamedExpression
from tests.conformance.outcome import NO_ASSERTION, Claim, NotRun
from tests.conformance.policies import as_document
from tests.conformance.tables.go_structs import as_json

_CONSTANTS = {"autogen.AutogenDefaults": DEFAULTS, "autogen.AutogenCronjobs": CRON_JOBS}
_EMBEDDED = ("ruleWithOperations", "rule")
_JSON_NAMES = {"aPIGroups": "apiGroups", "aPIVersions": "apiVersions"}
_REQUIRED = {
    "ImageValidatingPolicy": {"attestors": [{"name": "row", "cosign": {}}], "validations": [{"expression": "true"}]}
}


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row by the function that its test covers."""
    check = _CHECKS.get(row["test"].rpartition("/")[2])
    if check is None:
        raise NotRun(NO_ASSERTION)
    return check(row)


def _plain(value: Any) -> Any:
    """Return a Go struct as the JSON that it stands for."""
    return _inlined(as_json(value))


def _inlined(value: Any) -> Any:
    if isinstance(value, list):
        return [_inlined(item) for item in value]
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for key, item in value.items():
        name, found = _JSON_NAMES.get(key, key), _inlined(item)
        if name in _EMBEDDED and isinstance(found, dict):
            result.update(found)
        else:
            result[name] = _operations(found) if name == "operations" else found
    return result


def _operations(names: list[str]) -> list[str]:
    """Return the values of Go's constants for operations."""
    return ["*" if name == "OperationAll" else name.upper() for name in names]


def _policy(kind: str, spec: dict[str, Any]) -> ValidatingPolicy | MutatingPolicy | ImageValidatingPolicy:
    document = {
        "apiVersion": "policies.kyverno.io/v1beta1",
        "kind": kind,
        "metadata": {"name": "row"},
        "spec": {**_REQUIRED.get(kind, {}), **spec},
    }
    decoded = decode(as_document(document))
    assert isinstance(decoded.policy, ValidatingPolicy | MutatingPolicy | ImageValidatingPolicy), "; ".join(
        map(str, decoded.errors)
    )
    return decoded.policy


def _constraints(value: Any) -> MatchConstraints | None:
    return _policy("ValidatingPolicy", {} if value is None else {"matchConstraints": value}).spec.match_constraints


def _targets(row: dict[str, Any]) -> list[Target]:
    return [
        Target(each.get("Group", ""), each["Version"], each["Resource"], each["Kind"])
        for each in row.get("targets") or ()
    ]


def _selected(row: dict[str, Any]) -> Claim:
    origin = {
        "resourceRules": [{"operations": _operations(row.get("operations") or [])}],
        **({"namespaceSelector": _plain(row["namespaceSelector"])} if row.get("namespaceSelector") else {}),
    }
    constraints = _constraints(origin)
    assert constraints is not None
    return Claim(_plain(row["want"]), constraints_for(_targets(row), constraints))


def _guarded(row: dict[str, Any]) -> Claim:
    conditions = [NamedExpression(each["Name"], each["Expression"]) for each in row.get("conditions") or ()]
    got = guarded_conditions(conditions, _targets(row), config=row.get("config", ""))
    return Claim(_plain(row["want"]) or [], [{"name": each.name, "expression": each.expression} for each in got])


def _config(name: str) -> str:
    """Return the copy that a controller belongs to: upstream's rows name one of its controllers."""
    return CRON_JOBS if name == CRON_JOBS else DEFAULTS


def _text(row: dict[str, Any]) -> Claim:
    return Claim(row["want"], rewrite_text(row["expr"], _config(row["config"])))


def _mutation(row: dict[str, Any]) -> Claim:
    """CEL reads an expression the same however it is laid out, so blanks and line ends do not count."""
    got = rewrite_mutation(row["input"], _config(row["config"]))
    return Claim("".join(row["expected"].split()), "".join(got.split()))


def _is_about_pods(row: dict[str, Any]) -> Claim:
    """Go's zero value stands for an expectation that a row leaves out."""
    constraints = _constraints(_plain(row["match"]))
    return Claim(row.get("want", False), constraints is not None and is_about_pods(constraints))


def _copies(row: dict[str, Any]) -> Claim:
    if "expectedRules" in row:
        spec = {**_plain(row["spec"]), "autogen": {"podControllers": {"controllers": row["configs"]}}}
        for mutation in spec.get("mutations") or ():
            # the schema asks for it, the Go function does not look at it
            mutation.setdefault("patchType", "ApplyConfiguration" if "applyConfiguration" in mutation else "JSONPatch")
        return Claim(row["expectedRules"], len(expand_cel(_policy("MutatingPolicy", spec))))
    controllers = row.get("controllers", [CRON_JOBS])
    spec = {**row["policySpec"], "autogen": {"podControllers": {"controllers": controllers}}}
    wanted = {_CONSTANTS.get(name, name): _plain(copy) for name, copy in (row["generatedRule"] or {}).items()}
    made = {}
    for copy in expand_cel(_policy("ValidatingPolicy", spec)):
        targets = [
            {"group": each.group, "version": each.version, "resource": each.resource, "kind": each.kind}
            for each in copy.targets
        ]
        # upstream keeps the choice of controllers out of what it makes
        rewritten = {key: value for key, value in copy.policy.spec.raw.items() if key != "autogen"}
        made[copy.name] = {"targets": targets, "spec": rewritten}
    return Claim(wanted, made)


_CHECKS: dict[str, Callable[[dict[str, Any]], Claim]] = {
    "TestCreateMatchConstraints": _selected,
    "TestCreateMatchConditions": _guarded,
    "TestApplyRewritesExpressions": _text,
    "TestCanAutoGen": _is_about_pods,
    "TestConvertPodToTemplateExpression": _mutation,
    "TestMutationConversionEdgeCases": _mutation,
    "TestGenerateRuleForControllers": _copies,
    "TestGenerateCronJobRule": _copies,
}
