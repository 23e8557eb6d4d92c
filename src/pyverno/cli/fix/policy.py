"""Rewrite policies to the current schema: deprecated fields become their successors.

Every step takes a document and returns a new one with its notes. No step may change the meaning of a policy.
"""

from __future__ import annotations

from collections.abc import Callable

from pyverno.kube.json import JSON, JSONObject
from pyverno.policy.kinds import RULE_KINDS

__all__ = ["fix_policy"]

Fixed = tuple[JSONObject, list[str]]

_FLAT = ("resources", "subjects", "roles", "clusterRoles")
_ACTIONS = {"audit": "Audit", "enforce": "Enforce"}


def fix_policy(document: JSONObject) -> Fixed:
    """Return a policy in the current schema and one warning per change; other kinds come back as they are."""
    api_version, spec = document.get("apiVersion"), document.get("spec")
    is_legacy = isinstance(api_version, str) and api_version.startswith("kyverno.io/")
    if not is_legacy or document.get("kind") not in RULE_KINDS or not isinstance(spec, dict):
        return document, []
    messages: list[str] = []
    for step in (_actions, _moved_to_rules, _aliases, _rules):
        spec, said = step(spec)
        messages += said
    return ({**document, "spec": spec}, messages) if messages else (document, [])


def _rules_of(spec: JSONObject) -> list[JSON]:
    rules = spec.get("rules")
    return rules if isinstance(rules, list) else []


def _with_rules(spec: JSONObject, change: Callable[[JSONObject], JSONObject]) -> JSONObject:
    rules = [change(rule) if isinstance(rule, dict) else rule for rule in _rules_of(spec)]
    return {**spec, "rules": rules} if "rules" in spec else spec


def _without(value: JSONObject, *names: str) -> JSONObject:
    return {key: item for key, item in value.items() if key not in names}


def _action(value: JSON) -> JSON:
    return _ACTIONS.get(value, value) if isinstance(value, str) else value


def _override(entry: JSON) -> JSON:
    return {**entry, "action": _action(entry["action"])} if isinstance(entry, dict) and "action" in entry else entry


def _actions(spec: JSONObject) -> Fixed:
    """Move the failure action and its overrides into the rules that validate or verify images."""
    moved = {
        "failureAction": _action(spec.get("validationFailureAction")),
        "failureActionOverrides": spec.get("validationFailureActionOverrides"),
    }
    if isinstance(moved["failureActionOverrides"], list):
        moved["failureActionOverrides"] = [_override(entry) for entry in moved["failureActionOverrides"]]
    given = {key: value for key, value in moved.items() if value is not None}
    if not given:
        return spec, []
    if "failureActionOverrides" in given and any(isinstance(r, dict) and "verifyImages" in r for r in _rules_of(spec)):
        # rules that verify images have no overrides of their own
        return spec, ["spec.validationFailureActionOverrides is deprecated, but rules with verifyImages need it: kept"]

    def change(rule: JSONObject) -> JSONObject:
        validate, images = rule.get("validate"), rule.get("verifyImages")
        if isinstance(validate, dict):
            rule = {**rule, "validate": {**given, **validate}}
        if isinstance(images, list) and "failureAction" in given:
            action = {"failureAction": given["failureAction"]}
            rule = {**rule, "verifyImages": [{**action, **each} if isinstance(each, dict) else each for each in images]}
        return rule

    spec = _without(_with_rules(spec, change), "validationFailureAction", "validationFailureActionOverrides")
    return spec, ["spec.validationFailureAction and its overrides are deprecated, moved to the rules"]


_MOVED = (
    ("mutateExistingOnPolicyUpdate", "mutate", "mutateExistingOnPolicyUpdate"),
    ("generateExisting", "generate", "generateExisting"),
    ("generateExistingOnPolicyUpdate", "generate", "generateExisting"),
)


def _moved_to_rules(spec: JSONObject) -> Fixed:
    messages = []
    for name, block, field in _MOVED:
        if name not in spec:
            continue
        value = spec[name]

        def change(rule: JSONObject, block: str = block, field: str = field, value: JSON = value) -> JSONObject:
            own = rule.get(block)
            return {**rule, block: {field: value, **own}} if isinstance(own, dict) else rule

        spec = _without(_with_rules(spec, change), name)
        messages.append(f"spec.{name} is deprecated, moved to {block}.{field} of the rules")
    return spec, messages


_ALIASES = (("failurePolicy", "failurePolicy"), ("webhookTimeoutSeconds", "timeoutSeconds"))


def _aliases(spec: JSONObject) -> Fixed:
    messages = []
    for name, field in _ALIASES:
        if name in spec:
            webhook = spec.get("webhookConfiguration")
            webhook = webhook if isinstance(webhook, dict) else {}
            value = spec[name]
            spec = {**_without(spec, name), "webhookConfiguration": {field: value, **webhook}}
            messages.append(f"spec.{name} is deprecated, moved to spec.webhookConfiguration.{field}")
    if "schemaValidation" in spec:
        spec = _without(spec, "schemaValidation")
        messages.append("spec.schemaValidation has no effect, removed")
    return spec, messages


def _rules(spec: JSONObject) -> Fixed:
    messages: list[str] = []

    def change(rule: JSONObject) -> JSONObject:
        name = rule.get("name")
        for step in (_matching, _preconditions, _denied):
            rule, said = step(rule)
            messages.extend(f"rule `{name}`: {text}" for text in said)
        return rule

    return _with_rules(spec, change), messages


def _matching(rule: JSONObject) -> Fixed:
    messages = []
    for field in ("match", "exclude"):
        block = rule.get(field)
        if not isinstance(block, dict):
            continue
        flat = {key: block[key] for key in _FLAT if key in block}
        if flat:
            others = _without(block, *_FLAT)
            if "any" in others or "all" in others:
                messages.append(f"{field} mixes resources with any or all, left as it is")
                continue
            rule = {**rule, field: {**others, "any": [flat]}}
            messages.append(f"{field} uses the old form without any or all, moved below any")
    return rule, messages


def _preconditions(rule: JSONObject) -> Fixed:
    listed = rule.get("preconditions")
    if not isinstance(listed, list):
        return rule, []
    # an empty list is met, as is an empty `all`
    return {**rule, "preconditions": {"all": listed}}, ["preconditions use the old form of a list, moved below all"]


def _denied(rule: JSONObject) -> Fixed:
    validate = rule.get("validate")
    deny = validate.get("deny") if isinstance(validate, dict) else None
    listed = deny.get("conditions") if isinstance(deny, dict) else None
    if not isinstance(validate, dict) or not isinstance(deny, dict) or not isinstance(listed, list):
        return rule, []
    changed = {**validate, "deny": {**deny, "conditions": {"all": listed}}}
    return {**rule, "validate": changed}, ["deny.conditions use the old form of a list, moved below all"]
