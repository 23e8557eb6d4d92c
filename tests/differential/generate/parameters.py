"""Admission policies with parameters, their bindings, and the objects that they read."""

from __future__ import annotations

from random import Random

from pyverno.kube.json import JSONObject
from tests.differential.generate.celexpressions import about_object, text_about_object
from tests.differential.generate.celpolicies import constraints
from tests.differential.generate.draws import chance
from tests.differential.generate.resources import resource

__all__ = ["parameterized_policy", "parameters"]


def parameters(random: Random) -> list[JSONObject]:
    """Return the ConfigMaps that bindings refer to."""
    found = [resource(random, "ConfigMap", f"limits-{index}") for index in range(3)]
    for index, each in enumerate(found):
        each["metadata"] |= {"namespace": "default", "labels": {"limits": "yes" if index else "no"}}
        each["data"] = {"app": "web", "count": "5", **each["data"]}
    return found


def parameterized_policy(random: Random, name: str, sample: JSONObject, given: list[JSONObject]) -> list[JSONObject]:
    """Return a ValidatingAdmissionPolicy that reads parameters, with its binding."""
    validations = []
    for _ in range(random.randint(1, 2)):
        about_parameters = about_object(random, given[0], root="params", depth=1)
        written = f"{about_parameters} {random.choice(('&&', '||'))} {about_object(random, sample, depth=1)}"
        validation = {"expression": written}
        if chance(random, 0.4):
            validation["messageExpression"] = text_about_object(random, given[0], root="params")
        validations.append(validation)
    spec: JSONObject = {
        "failurePolicy": random.choice(("Fail", "Ignore")),
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": constraints(random, sample["kind"]),
        "validations": validations,
    }
    if chance(random, 0.2):
        condition = about_object(random, given[0], root="params", depth=1)
        spec["matchConditions"] = [{"name": "some", "expression": condition}]
    bound: JSONObject = {
        "policyName": name,
        "paramRef": _reference(random),
        "validationActions": [random.choice(("Audit", "Deny", "Warn"))],
    }
    return [_document("Policy", name, spec), _document("PolicyBinding", name, bound)]


def _reference(random: Random) -> JSONObject:
    roll = random.random()
    found: JSONObject = {"parameterNotFoundAction": random.choice(("Deny", "Allow"))}
    if chance(random, 0.8):
        found["namespace"] = "default"
    if roll < 0.75:
        return {**found, "name": random.choice(("limits-0", "limits-1", "limits-2"))}
    return {**found, "selector": {"matchLabels": {"limits": random.choice(("yes", "no"))}}}


def _document(suffix: str, name: str, spec: JSONObject) -> JSONObject:
    kind = f"ValidatingAdmission{suffix}"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
