"""Webhook configurations, ValidatingAdmissionPolicies, MutatingAdmissionPolicies and their bindings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from kubesandbox.objects.fielderrors import duplicate, forbidden, invalid, required, unsupported
from kubesandbox.validation.check import Check, Errors, label_selector
from kubesandbox.validation.names import dns_label_1035_problems, dns_subdomain_problems, path_segment_problems
from kubesandbox.validation.results import Result
from kubesandbox.validation.webhookclient import REVIEW_VERSIONS, client_config, review_versions
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.labelsyntax import label_key_problems
from pyverno.lang.cel.syntax.parser import RESERVED

if TYPE_CHECKING:
    from kubesandbox.validation.expressions import Expressions

__all__ = ["mutating_policy", "policy_binding", "validating_policy", "webhook_configuration"]

Version: TypeAlias = tuple[int, int]
"""The version of Kubernetes, whose CEL expressions are written in."""

_FAILURE: Final = ("Fail", "Ignore")
_MATCH: Final = ("Equivalent", "Exact")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_IDENTIFIER: Final = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")


def _expressions(version: Version, *, has_params: bool = False, mutation: bool = False) -> Expressions:
    from kubesandbox.validation.expressions import Expressions  # loads CEL

    return Expressions(version, has_params=has_params, mutation=mutation)


def _conditions(value: JSON, path: str, errors: Errors, version: Version, *, has_params: bool = False) -> None:
    if value:
        from kubesandbox.validation.expressions import match_conditions  # loads CEL

        match_conditions(value, path, errors, _expressions(version, has_params=has_params), label_key_problems)


def _in(value: JSON, path: str, supported: Iterable[str], errors: Errors) -> None:
    if value is not None and value not in supported:
        errors.append(unsupported(path, value, supported))


def _rule(rule: JSONObject, path: str, errors: Errors, *, operations: tuple[str, ...] = _OPERATIONS) -> None:
    given = rule.get("operations") or []
    if not given:
        errors.append(required(f"{path}.operations"))
    if len(given) > 1 and "*" in given:
        what = "if '*' is present, must not specify other operations"
        errors.append(invalid(f"{path}.operations", given, what))
    for index, operation in enumerate(given):
        _in(operation, f"{path}.operations[{index}]", operations, errors)
    for key, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(key) or []
        if not values:
            errors.append(required(f"{path}.{key}"))
        if len(values) > 1 and "*" in values:
            errors.append(invalid(f"{path}.{key}", values, f"if '*' is present, must not specify other {what}"))
        if key == "apiVersions":
            errors.extend(required(f"{path}.{key}[{index}]") for index, item in enumerate(values) if not item)
    _resources(rule.get("resources") or [], f"{path}.resources", errors)
    _in(rule.get("scope"), f"{path}.scope", _SCOPES, errors)


def _resources(resources: list[str], path: str, errors: Errors) -> None:
    if not resources:
        errors.append(required(path))
    whole, parts = set(), set()
    for index, text in enumerate(resources):
        place = f"{path}[{index}]"
        if not text:
            errors.append(required(place))
            continue
        resource, slash, sub = text.partition("/")
        if text == "*/*":
            continue
        if sub == "*":
            whole.add(resource)
        if resource == "*" and slash:
            parts.add(sub)
        if slash and resource in whole and sub != "*":
            errors.append(invalid(place, text, f"if '{resource}/*' is present, must not specify {text}"))
        if slash and sub in parts and resource != "*":
            errors.append(invalid(place, text, f"if '*/{sub}' is present, must not specify {text}"))
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any("/" not in text for text in resources if text != "*"):
        what = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, what))


def _webhook(hook: JSONObject, path: str, errors: Errors, version: Version) -> None:
    name = str(hook.get("name") or "")
    _qualified_name(name, f"{path}.name", errors)
    for index, rule in enumerate(hook.get("rules") or ()):
        _rule(rule, f"{path}.rules[{index}]", errors)
    _in(hook.get("failurePolicy"), f"{path}.failurePolicy", _FAILURE, errors)
    _in(hook.get("matchPolicy"), f"{path}.matchPolicy", _MATCH, errors)
    effects = hook.get("sideEffects")
    if effects is None:
        errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    _in(effects, f"{path}.sideEffects", _SIDE_EFFECTS, errors)
    timeout = hook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= 30:
        what = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", timeout, what))
    for key in ("namespaceSelector", "objectSelector"):
        label_selector(hook.get(key), f"{path}.{key}", errors)
    _in(hook.get("reinvocationPolicy"), f"{path}.reinvocationPolicy", ("IfNeeded", "Never"), errors)
    client_config(hook.get("clientConfig") or {}, f"{path}.clientConfig", errors)
    versions = hook.get("admissionReviewVersions") or []
    listed = f"must specify one of {', '.join(REVIEW_VERSIONS)}"
    review_versions(versions, f"{path}.admissionReviewVersions", errors, missing=listed)
    if hook.get("matchConditions"):
        _conditions(hook["matchConditions"], f"{path}.matchConditions", errors, version)


def _qualified_name(name: str, path: str, errors: Errors) -> None:
    if not name:
        errors.append(required(path))
        return
    problems = dns_subdomain_problems(name)
    if problems:
        errors.extend(invalid(path, name, problem) for problem in problems)
    elif len(name.split(".")) < 3:
        errors.append(invalid(path, name, "should be a domain with at least three segments separated by dots"))


def webhook_configuration(body: JSON, path: str, errors: Errors, *, version: Version) -> None:
    """Check a ValidatingWebhookConfiguration or MutatingWebhookConfiguration."""
    names: set[str] = set()
    for index, hook in enumerate(body.get("webhooks") or ()):
        _webhook(hook, f"webhooks[{index}]", errors, version)
        name = hook.get("name") or ""
        if name and name in names:
            errors.append(duplicate(f"webhooks[{index}].name", name))
        names.add(name)


def _resources_to_match(
    value: JSONObject, path: str, errors: Errors, operations: tuple[str, ...] = _OPERATIONS
) -> None:
    _in(value.get("matchPolicy"), f"{path}.matchPolicy", _MATCH, errors)
    for key in ("namespaceSelector", "objectSelector"):
        label_selector(value.get(key), f"{path}.{key}", errors)
    for key in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(value.get(key) or ()):
            place = f"{path}.{key}[{index}]"
            names: list[str] = rule.get("resourceNames") or []
            for number, name in enumerate(names):
                problems = path_segment_problems(name)
                errors.extend(invalid(f"{place}.resourceNames[{number}]", name, problem) for problem in problems)
                if name in names[:number]:
                    errors.append(duplicate(f"{place}.resourceNames[{number}]", name))
            _rule(rule, place, errors, operations=operations)


def _param_kind(value: JSONObject, path: str, errors: Errors) -> None:
    version, kind = str(value.get("apiVersion") or ""), str(value.get("kind") or "")
    if not version:
        errors.append(required(f"{path}.apiVersion"))
    elif version.count("/") > 1:
        errors.append(invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    if not kind:
        errors.append(required(f"{path}.kind"))
    else:
        problems = dns_label_1035_problems(kind.lower())
        if problems:
            what = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            errors.append(invalid(f"{path}.kind", kind, what))


def _head(spec: JSONObject, errors: Errors, *, operations: tuple[str, ...] = _OPERATIONS) -> None:
    """Check what both kinds of policies begin with."""
    if spec.get("failurePolicy") is None:
        errors.append(required("spec.failurePolicy"))
    _in(spec.get("failurePolicy"), "spec.failurePolicy", _FAILURE, errors)
    if spec.get("paramKind") is not None:
        _param_kind(spec["paramKind"], "spec.paramKind", errors)
    constraints = spec.get("matchConstraints")
    if constraints is None:
        errors.append(required("spec.matchConstraints"))
    else:
        _resources_to_match(constraints, "spec.matchConstraints", errors, operations)
        if not constraints.get("resourceRules"):
            errors.append(required("spec.matchConstraints.resourceRules"))


def _variables(spec: JSONObject, expressions: Expressions, errors: Errors) -> None:
    for index, variable in enumerate(spec.get("variables") or ()):
        place, name = f"spec.variables[{index}]", str(variable.get("name") or "")
        text = str(variable.get("expression") or "").strip()
        if not name:
            errors.append(required(f"{place}.name", "name is not specified"))
        elif not _IDENTIFIER.fullmatch(name) or name in RESERVED:
            errors.append(invalid(f"{place}.name", name, "name is not a valid CEL identifier"))
        if not text:
            errors.append(required(f"{place}.expression", "expression is not specified"))
            continue
        expressions.check(text, f"{place}.expression", errors)
        expressions.declare(name, text)


def _validation(value: JSONObject, path: str, expressions: Expressions, errors: Errors) -> None:
    text = str(value.get("expression") or "").strip()
    message, from_text = value.get("message") or "", value.get("messageExpression") or ""
    if not text:
        errors.append(required(f"{path}.expression", "expression is not specified"))
    else:
        expressions.check(text, f"{path}.expression", errors, expected=Result.CONDITION)
    if from_text and not from_text.strip():
        errors.append(invalid(f"{path}.messageExpression", from_text, "must be non-empty if specified"))
    elif from_text:
        expressions.check(from_text.strip(), f"{path}.messageExpression", errors, expected=Result.MESSAGE)
    if message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip():
        errors.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    elif "\n" in text and not message:
        what = "message must be specified if expression contains line breaks"
        errors.append(required(f"{path}.message", what))
    _in(value.get("reason"), f"{path}.reason", _REASONS, errors)


def validating_policy(body: JSON, path: str, errors: Errors, *, version: Version) -> None:
    """Check a ValidatingAdmissionPolicy."""
    spec = body.get("spec") or {}
    _head(spec, errors)
    has_params = spec.get("paramKind") is not None
    _conditions(spec.get("matchConditions"), "spec.matchConditions", errors, version, has_params=has_params)
    expressions = _expressions(version, has_params=has_params)
    _variables(spec, expressions, errors)
    validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not validations and not annotations:
        what = "validations or auditAnnotations must contain at least one item"
        errors.extend(required(f"spec.{key}", what) for key in ("validations", "auditAnnotations"))
    for index, validation in enumerate(validations):
        _validation(validation, f"spec.validations[{index}]", expressions, errors)
    keys: set[str] = set()
    name = str((body.get("metadata") or {}).get("name", ""))
    for index, annotation in enumerate(annotations):
        _annotation(annotation, name, f"spec.auditAnnotations[{index}]", expressions, errors)
        key = annotation.get("key") or ""
        if key in keys:
            errors.append(duplicate(f"spec.auditAnnotations[{index}].key", key))
        keys.add(key)


def _annotation(value: JSONObject, policy: str, path: str, expressions: Expressions, errors: Errors) -> None:
    key, text = f"{policy}/{value.get('key') or ''}", str(value.get("valueExpression") or "").strip()
    errors.extend(invalid(f"{path}.key", key, problem) for problem in label_key_problems(key))
    if not text:
        errors.append(required(f"{path}.valueExpression", "valueExpression is not specified"))
    else:
        expressions.check(text, f"{path}.valueExpression", errors, expected=Result.ANNOTATION)


_PATCHES: Final = {"JSONPatch": "jsonPatch", "ApplyConfiguration": "applyConfiguration"}


def mutating_policy(body: JSON, path: str, errors: Errors, *, version: Version) -> None:
    """Check a MutatingAdmissionPolicy."""
    spec = body.get("spec") or {}
    _head(spec, errors, operations=("CREATE", "UPDATE"))
    has_params = spec.get("paramKind") is not None
    _conditions(spec.get("matchConditions"), "spec.matchConditions", errors, version, has_params=has_params)
    expressions = _expressions(version, has_params=has_params, mutation=True)
    _variables(spec, expressions, errors)
    mutations = spec.get("mutations") or []
    if not mutations:
        errors.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(mutations):
        _mutation(mutation, f"spec.mutations[{index}]", expressions, errors)
    policy = spec.get("reinvocationPolicy")
    if not policy:
        errors.append(required("spec.reinvocationPolicy"))
    else:
        _in(policy, "spec.reinvocationPolicy", ("IfNeeded", "Never"), errors)


def _mutation(value: JSONObject, path: str, expressions: Expressions, errors: Errors) -> None:
    kind = str(value.get("patchType") or "")
    if not kind:
        errors.append(required(f"{path}.patchType"))
        return
    if kind not in _PATCHES:
        errors.append(unsupported(f"{path}.patchType", kind, ("ApplyConfiguration", "JSONPatch")))
        return
    own = _PATCHES[kind]
    other = next(key for key in _PATCHES.values() if key != own)
    if value.get(own) is None:
        errors.append(required(f"{path}.{own}", f"must be specified when patchType is {kind}"))
    else:
        text = str(value[own].get("expression") or "").strip()
        wanted = Result.CONFIGURATION if kind == "ApplyConfiguration" else Result.PATCH
        if not text:
            errors.append(required(f"{path}.{own}.expression", "expression is not specified"))
        else:
            expressions.check(text, f"{path}.{own}.expression", errors, expected=wanted)
    if value.get(other) is not None:
        what = f"must not be specified when patchType is {kind}"
        errors.append(invalid(f"{path}.{other}", f"{{{other}}}", what))


def _param_reference(value: JSONObject, path: str, errors: Errors) -> None:
    name, selector = str(value.get("name") or ""), value.get("selector")
    if name:
        errors.extend(invalid(f"{path}.name", name, problem) for problem in path_segment_problems(name))
        if selector is not None:
            errors.append(forbidden(f"{path}.name", "name and selector are mutually exclusive"))
    if selector is not None:
        label_selector(selector, f"{path}.selector", errors)
        if name:
            errors.append(forbidden(f"{path}.selector", "name and selector are mutually exclusive"))
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    action = value.get("parameterNotFoundAction")
    if not action:
        errors.append(required(f"{path}.parameterNotFoundAction"))
    else:
        _in(action, f"{path}.parameterNotFoundAction", ("Deny", "Allow"), errors)


def policy_binding(*, is_validating: bool) -> Check:
    """Return the check of a binding of a policy."""

    def check(body: JSON, path: str, errors: Errors) -> None:
        spec = body.get("spec") or {}
        name = str(spec.get("policyName") or "")
        if not name:
            errors.append(required("spec.policyName"))
        else:
            errors.extend(invalid("spec.policyName", name, problem) for problem in dns_subdomain_problems(name))
        if spec.get("paramRef") is not None:
            _param_reference(spec["paramRef"], "spec.paramRef", errors)
        if spec.get("matchResources") is not None:
            _resources_to_match(spec["matchResources"], "spec.matchResources", errors)
        if is_validating:
            _actions(spec.get("validationActions") or [], errors)

    return check


def _actions(actions: list[str], errors: Errors) -> None:
    path = "spec.validationActions"
    for index, action in enumerate(actions):
        _in(action, f"{path}[{index}]", ("Audit", "Deny", "Warn"), errors)
        if action in actions[:index]:
            errors.append(duplicate(f"{path}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        what = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        errors.append(invalid(path, actions, what))
    if not actions:
        errors.append(required(path, "at least one validation action is required"))
