"""A deliberately simple engine for validation rules: the reference that the compiled engine is held against.

It works the way the upstream engine does: for every request it walks all rules, looks for variables in every text,
parses every expression and every pattern anew, and evaluates both by walking them. It knows what our Pod Security
policies use and nothing else. It must never be made fast.
"""

from __future__ import annotations

import copy
import re

from pyverno.errors import EvaluationError, PyvernoError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.wildcard import match
from pyverno.lang.jmespath.expression import parse_expression
from pyverno.lang.pattern.operators import operator
from pyverno.lang.runtime import Runtime
from tests.bench.naive import naive_match

__all__ = ["Said", "naive_review"]

Said = tuple[str, str, str, str]
"""The result of one rule: policy, rule, status, message."""

_VARIABLE = re.compile(r"\{\{((?:[^{}]|\{[^{}]*\})*)\}\}")


def naive_review(policies: list[JSONObject], resource: JSONObject) -> list[Said]:
    """Judge a resource by all rules of all policies, in the order of their names."""
    said: list[Said] = []
    for policy in sorted(policies, key=lambda policy: policy["metadata"]["name"]):
        for rule in policy["spec"]["rules"]:
            if _is_about(rule["match"], resource):
                verdict = _judge(copy.deepcopy(rule), resource)
                if verdict is not None:
                    said.append((policy["metadata"]["name"], rule["name"], *verdict))
    return said


def _is_about(block: JSONObject, resource: JSONObject) -> bool:
    kinds = [kind for item in block["any"] for kind in item["resources"]["kinds"]]
    return any(match(kind.rpartition("/")[2], resource["kind"]) for kind in kinds)


def _judge(rule: JSONObject, resource: JSONObject) -> tuple[str, str] | None:
    validate, name = rule["validate"], rule["name"]
    data: JSONObject = {"request": {"object": resource, "operation": "CREATE"}}
    message = _substituted(validate.get("message", ""), data)
    if "pattern" in validate:
        return _pattern(name, message, _substituted(validate["pattern"], data), resource)
    if "anyPattern" in validate:
        return _any_pattern(name, message, _substituted(validate["anyPattern"], data), resource)
    if "deny" in validate:
        try:
            denied = _denies(validate["deny"], data)
        except PyvernoError as error:
            return "error", _unresolved(error)
        return ("fail", message) if denied else ("pass", f"validation rule '{name}' passed.")
    return _foreach(validate["foreach"], message, data)


def _pattern(name: str, message: str, pattern: JSON, resource: JSONObject) -> tuple[str, str]:
    status, path, text = naive_match(pattern, resource)
    match status:
        case "pass":
            return status, f"validation rule '{name}' passed."
        case "skip":
            return status, text
        case "fail":
            return status, _failure(message, f"rule {name} failed at path {path}")
    return status, _failure(message, f"rule {name} execution error: {text}")


def _any_pattern(name: str, message: str, patterns: list[JSON], resource: JSONObject) -> tuple[str, str]:
    failed, skipped = [], []
    for index, pattern in enumerate(patterns):
        status, path, text = naive_match(pattern, resource, float_numbers=True)
        if status == "pass":
            return status, f"validation rule '{name}' anyPattern[{index}] passed."
        if status == "skip":
            skipped.append(f"rule {name}[{index}] skipped: {text}")
        else:
            failed.append(f"rule {name}[{index}] failed" + (f" at path {path}" if path else f": {text}"))
    return ("fail", _failure(message, " ".join(failed))) if failed else ("skip", " ".join(skipped))


def _foreach(entries: list[JSONObject], message: str, data: JSONObject) -> tuple[str, str] | None:
    applied = False
    for entry in entries:
        try:
            found = _query(entry["list"], data)
        except PyvernoError:
            continue
        for element in found if isinstance(found, list) else [found]:
            if element is None:
                continue
            try:
                denied = _denies(entry["deny"], {**data, "element": element})
            except PyvernoError as error:
                return "error", f"validation failure: {_unresolved(error)}"
            if denied:
                return "fail", f"validation failure: {message}"
            applied = True
    return ("pass", "rule passed") if applied else None


def _unresolved(error: PyvernoError) -> str:
    return f"failed to check deny conditions: failed to substitute variables in condition key: {error.message}"


def _denies(deny: JSONObject, data: JSONObject) -> bool:
    conditions = deny["conditions"]
    every = [_holds(condition, data) for condition in conditions.get("all") or []]
    some = [_holds(condition, data) for condition in conditions["any"]] if "any" in conditions else [True]
    return all(every) and any(some)


def _holds(condition: JSONObject, data: JSONObject) -> bool:
    compare = operator(condition["operator"])
    assert compare is not None
    return compare(_substituted(condition["key"], data), _substituted(condition["value"], data))


def _substituted(document: JSON, data: JSONObject) -> JSON:
    """Return the document with its variables replaced; texts are looked through one by one."""
    if isinstance(document, dict):
        return {_substituted(key, data): _substituted(value, data) for key, value in document.items()}
    if isinstance(document, list):
        return [_substituted(item, data) for item in document]
    if not isinstance(document, str):
        return document
    whole = _VARIABLE.fullmatch(document.strip())
    if whole:
        text = whole[1].strip()
        try:
            return _query(text, data)
        except PyvernoError as error:
            reason = f"JMESPath query failed: {error.message}"
            raise EvaluationError(f"failed to resolve {text} at path : {reason}") from error
    return _VARIABLE.sub(lambda found: str(_query(found[1].strip(), data)), document)


def _query(text: str, data: JSONObject) -> JSON:
    return parse_expression(text).evaluate(data, Runtime())


def _failure(message: str, tail: str) -> str:
    dot = "" if message.endswith(".") else "."
    return f"validation error: {message}{dot} {tail}" if message else f"validation error: {tail}"
