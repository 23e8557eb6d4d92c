"""Policies as admission policies of Kubernetes: ValidatingAdmissionPolicy and MutatingAdmissionPolicy with bindings.

A pure function: the same policy gives the same objects. `eligibility` decides whether a policy can be translated at
all. (Kyverno: pkg/admissionpolicy)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyverno.controllers.admissionpolicies.eligibility import Convertible
from pyverno.controllers.state.targets import targets_of
from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.policy.cel.exception import CelException
from pyverno.policy.cel.policies import MutatingPolicy, ValidatingPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.exception import PolicyException
from pyverno.policy.failureaction import FailureAction
from pyverno.policy.match import MatchBlocks, ResourceDescription
from pyverno.policy.rule import Rule
from pyverno.policy.subresources import pod_subresources_of
from pyverno.policy.validate import Validate

__all__ = ["admission_policies", "admission_policy_name"]

_GROUP: Final = "admissionregistration.k8s.io"
_OPERATIONS: Final = ("CREATE", "UPDATE", "CONNECT", "DELETE")
_PREFIXES: Final = {ClusterPolicy: "cpol", ValidatingPolicy: "vpol", MutatingPolicy: "mpol"}
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_NOT_REPORTED: Final = "reports.kyverno.io/disabled"
_ALLOWED: Final = re.compile(r"(?<![\w.])exceptions\.(allowedImages|allowedValues)\b")
# COMPAT: Kyverno names the owner in this version, whichever it read
_CEL_OWNER: Final = "policies.kyverno.io/v1beta1"


def admission_policy_name(policy: Convertible) -> str:
    """Return the name of the admission policy that a policy becomes; its binding has `-binding` behind it."""
    return f"{_PREFIXES[type(policy)]}-{policy.name}"


def admission_policies(
    policy: Convertible,
    exceptions: Sequence[PolicyException | CelException] = (),
    *,
    kinds: KindTable,
    version: str = "v1",
) -> tuple[JSONObject, JSONObject]:
    """Return the admission policy and its binding, in a version that the cluster serves.

    The policy must have no obstacle. Raises UsageError for a kind that is not exactly one resource of the cluster.
    """
    name = admission_policy_name(policy)
    word = "Mutating" if isinstance(policy, MutatingPolicy) else "Validating"
    labels = {"app.kubernetes.io/managed-by": "kyverno"}
    reported = {**labels, _NOT_REPORTED: "true"} if _NOT_REPORTED in policy.labels else labels
    binding: JSONObject = {"policyName": name}
    match policy:
        case ClusterPolicy():
            legacy = [each for each in exceptions if isinstance(each, PolicyException)]
            spec = _of_rule(policy, legacy, kinds)
            binding |= _rule_binding(policy)
        case ValidatingPolicy():
            spec = _of_validating(policy, [each for each in exceptions if isinstance(each, CelException)])
            binding["validationActions"] = [action.value for action in policy.spec.actions]
        case MutatingPolicy():
            spec = _of_mutating(policy, [each for each in exceptions if isinstance(each, CelException)])
    kind = f"{word}AdmissionPolicy"
    head = {"apiVersion": f"{_GROUP}/{version}"}
    return (
        {**head, "kind": kind, "metadata": _metadata(name, reported, policy), "spec": spec},
        {
            **head,
            "kind": f"{kind}Binding",
            "metadata": _metadata(f"{name}-binding", labels, policy),
            "spec": binding,
        },
    )


def _metadata(name: str, labels: JSONObject, policy: Convertible) -> JSONObject:
    owner = {
        "apiVersion": policy.api_version if isinstance(policy, ClusterPolicy) else _CEL_OWNER,
        "kind": policy.kind,
        "name": policy.name,
        "uid": policy.document.value["metadata"].get("uid", ""),
    }
    return {"name": name, "labels": dict(labels), "ownerReferences": [owner]}


def _without_nothing(**parts: object) -> JSONObject:
    return {key: value for key, value in parts.items() if value}


# ------------------------------------------------------------------------------------------------------- ClusterPolicy


def _of_rule(policy: ClusterPolicy, exceptions: Iterable[PolicyException], kinds: KindTable) -> JSONObject:
    [rule] = policy.spec.rules
    cel = rule.raw["validate"]["cel"]
    excludes = [*([rule.exclude] if rule.exclude is not None else []), *(each.spec.match for each in exceptions)]
    return _without_nothing(
        failurePolicy="Ignore" if policy.spec.failure_policy.value == "Ignore" else None,
        matchConstraints=_constraints(rule, excludes, kinds),
        matchConditions=rule.raw.get("celPreconditions"),
        paramKind=cel.get("paramKind"),
        variables=cel.get("variables"),
        validations=cel.get("expressions"),
        auditAnnotations=cel.get("auditAnnotations"),
    )


def _rule_binding(policy: ClusterPolicy) -> JSONObject:
    action = policy.spec.rules[0].action
    chosen = action.failure_action if isinstance(action, Validate) else None
    enforces = (chosen or policy.spec.failure_action) is FailureAction.ENFORCE
    parameters = action.cel.param_ref if isinstance(action, Validate) and action.cel is not None else None
    return _without_nothing(paramRef=parameters, validationActions=["Deny"] if enforces else ["Audit", "Warn"])


def _constraints(rule: Rule, excludes: Sequence[MatchBlocks], kinds: KindTable) -> JSONObject:
    taken: list[JSONObject] = []
    for block in rule.match.blocks:
        _add_rules(taken, block.resources, kinds, pod_subresources_of(rule))
    left_out: list[JSONObject] = []
    namespaces: list[str] = []
    for exclude in excludes:
        for block in exclude.blocks:
            _add_rules(left_out, block.resources, kinds, pod_subresources_of(rule))
            if block.resources.namespaces:
                left_out.append(_namespace_rule(block.resources))
                namespaces += block.resources.namespaces
    first = rule.match.blocks[0].resources
    return _without_nothing(
        resourceRules=taken,
        excludeResourceRules=left_out,
        namespaceSelector=_namespace_selector(first, namespaces),
        objectSelector=first.selector,
    )


def _namespace_selector(resources: ResourceDescription, excluded: Sequence[str]) -> JSONObject | None:
    """Translate the selected namespaces into a label selector.

    Kyverno leaves excluded namespaces to a rule about Namespace objects, which does not keep what is in them out.
    """
    selector: JSONObject = dict(resources.namespace_selector or {})
    expressions = list(selector.get("matchExpressions") or ())
    if resources.namespaces:
        expressions.append({"key": _NAMESPACE_NAME, "operator": "In", "values": list(resources.namespaces)})
    if excluded:
        expressions.append({"key": _NAMESPACE_NAME, "operator": "NotIn", "values": list(dict.fromkeys(excluded))})
    if expressions:
        selector["matchExpressions"] = expressions
    return selector or None


def _add_rules(
    rules: list[JSONObject], resources: ResourceDescription, kinds: KindTable, pod_subresources: Iterable[str]
) -> None:
    """Add the resources of a block; those of one group and version share a rule when all else is equal."""
    operations = [operation.value for operation in resources.operations] or list(_OPERATIONS)
    names = [*resources.names, *([resources.name] if resources.name else [])]
    for text in resources.kinds:
        group, version, added = _resources(text, kinds)
        if added == ["pods"]:
            added += [f"pods/{name}" for name in pod_subresources]
        wanted = {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": operations,
            **({"resourceNames": names} if names else {}),
        }
        known = next(
            (rule for rule in rules if {**rule, **wanted} == rule and ("resourceNames" in rule) == bool(names)), None
        )
        if known is None:
            rules.append({**wanted, "resources": sorted(added)})
        else:
            known["resources"] = sorted({*known["resources"], *added})


def _resources(text: str, kinds: KindTable) -> tuple[str, str, list[str]]:
    if text == "*":
        return "*", "*", ["*"]
    found = targets_of(text, kinds)
    if len(found) != 1:
        raise UsageError(f"no unique match for kind {text}")
    [target] = found
    name = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
    return target.group, target.version, [name]


def _namespace_rule(resources: ResourceDescription) -> JSONObject:
    return {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": [operation.value for operation in resources.operations] or list(_OPERATIONS),
        "resources": ["namespaces"],
        "resourceNames": list(resources.namespaces),
    }


# ----------------------------------------------------------------------------------------------------- policies in CEL


def _of_validating(policy: ValidatingPolicy, exceptions: Sequence[CelException]) -> JSONObject:
    raw = policy.spec.raw
    validations = [_with_lists(each) for each in raw.get("validations") or ()]
    lists = {
        "allowedImages": [image for each in exceptions for image in each.spec.images],
        "allowedValues": [value for each in exceptions for value in each.spec.allowed_values],
    }
    asked = {name for each in raw.get("validations") or () for name in _ALLOWED.findall(each["expression"])}
    variables = [
        {"name": name, "expression": f"[{', '.join(map(_quote, values))}]"}
        for name, values in lists.items()
        if values or name in asked
    ]
    return _without_nothing(
        failurePolicy="Ignore" if policy.spec.failure_policy.value == "Ignore" else None,
        matchConstraints=raw.get("matchConstraints"),
        matchConditions=[*(raw.get("matchConditions") or ()), *_exempting(exceptions)],
        variables=[*(raw.get("variables") or ()), *variables],
        validations=validations,
        auditAnnotations=raw.get("auditAnnotations"),
    )


def _of_mutating(policy: MutatingPolicy, exceptions: Sequence[CelException]) -> JSONObject:
    raw = policy.spec.raw
    return _without_nothing(
        failurePolicy=raw.get("failurePolicy"),
        reinvocationPolicy=policy.spec.reinvocation_policy.value,
        matchConstraints=raw.get("matchConstraints"),
        matchConditions=[*_exempting(exceptions), *(raw.get("matchConditions") or ())],
        variables=raw.get("variables"),
        mutations=raw.get("mutations"),
    )


def _with_lists(validation: JSONObject) -> JSONObject:
    """Let an expression read the lists of exceptions from variables, where Kubernetes knows no exceptions."""
    return {**validation, "expression": _ALLOWED.sub(r"variables.\1", validation["expression"])}


def _exempting(exceptions: Iterable[CelException]) -> Iterator[JSONObject]:
    """Yield conditions that do not hold for exempt requests: all conditions of an exception together exempt."""
    names: set[str] = set()
    for exception in exceptions:
        if exception.is_partial:
            continue
        conditions = exception.spec.match_conditions
        held = [each.expression for each in conditions]
        text = held[0] if len(held) == 1 else " && ".join(f"({each})" for each in held)
        name = wanted = conditions[0].name if conditions else f"exception-{exception.name}"
        while name in names:
            name = f"{wanted}-{len(names) + 1}"
        names.add(name)
        yield {"name": name, "expression": f"!({text})" if held else "false"}


def _quote(text: str) -> str:
    """Write a text as a literal of CEL; it is data, whatever it holds."""
    escaped = json.dumps(text)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{escaped}'"
