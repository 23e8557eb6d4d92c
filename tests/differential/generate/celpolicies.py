"""Policies in CEL: ValidatingPolicies, ValidatingAdmissionPolicies with bindings, exceptions."""

from __future__ import annotations

from random import Random

from pyverno.kube.json import JSON, JSONObject
from tests.differential.generate.celexpressions import about_object, text_about_object
from tests.differential.generate.draws import chance

__all__ = ["admission_policy", "cel_exception", "constraints", "selectors", "validating_policy"]

_PLACES = {
    "Pod": ("", "v1", "pods"),
    "Deployment": ("apps", "v1", "deployments"),
    "CronJob": ("batch", "v1", "cronjobs"),
    "Service": ("", "v1", "services"),
    "ConfigMap": ("", "v1", "configmaps"),
    "Namespace": ("", "v1", "namespaces"),
    "Widget": ("example.com", "v1", "widgets"),
}


def constraints(random: Random, kind: str, **more: JSON) -> JSONObject:
    """Return match constraints for a kind."""
    group, version, plural = _PLACES[kind]
    rule: JSONObject = {
        "apiGroups": [group],
        "apiVersions": [version if chance(random, 0.9) else "*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural if chance(random, 0.9) else "*"],
    }
    return {"resourceRules": [rule], **more}


def selectors(random: Random) -> JSONObject:
    """Return the selectors of match constraints, most times none."""
    found: JSONObject = {}
    if chance(random, 0.15):
        found["objectSelector"] = {"matchLabels": {"app": "web"}}
    if chance(random, 0.1):
        found["objectSelector"] = {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    return found


def validating_policy(random: Random, name: str, sample: JSONObject) -> JSONObject:
    """Return a ValidatingPolicy about resources like a sample."""
    spec = _validations(random, sample)
    if sample["kind"] == "Pod" and chance(random, 0.3):
        spec["autogen"] = {"podControllers": {"controllers": ["deployments", "cronjobs"]}}
    if chance(random, 0.4):
        spec["validationActions"] = [random.choice(("Audit", "Deny"))]
    return _document("policies.kyverno.io/v1", "ValidatingPolicy", name, spec)


def admission_policy(random: Random, name: str, sample: JSONObject) -> list[JSONObject]:
    """Return a ValidatingAdmissionPolicy, mostly with its binding."""
    spec = _validations(random, sample)
    spec["failurePolicy"] = random.choice(("Fail", "Ignore"))
    policy = _document("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", name, spec)
    if chance(random, 0.4):
        return [policy]
    bound: JSONObject = {"policyName": name, "validationActions": [random.choice(("Audit", "Deny", "Warn"))]}
    if chance(random, 0.2):
        bound["matchResources"] = {"objectSelector": {"matchLabels": {"app": "web"}}}
    binding = _document("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", name, bound)
    return [policy, binding]


def _validations(random: Random, sample: JSONObject) -> JSONObject:
    variables = [
        {"name": f"v{index}", "expression": about_object(random, sample, depth=1)}
        for index in range(random.randint(0, 2))
    ]
    written = []
    for _ in range(random.randint(1, 3)):
        expression = about_object(random, sample)
        if variables and chance(random, 0.4):
            expression = f"variables.{random.choice(variables)['name']} {random.choice(('&&', '||'))} {expression}"
        validation: JSONObject = {"expression": expression}
        if chance(random, 0.5):
            validation["message"] = random.choice(("must be so", "no", " trailing "))
        if chance(random, 0.5):
            validation["messageExpression"] = text_about_object(random, sample)
        if chance(random, 0.1):
            validation["reason"] = "Invalid"
        written.append(validation)
    spec: JSONObject = {
        "matchConstraints": constraints(random, sample["kind"], **selectors(random)),
        "validations": written,
    }
    if variables:
        spec["variables"] = variables
    if chance(random, 0.2):
        spec["matchConditions"] = [{"name": "only", "expression": about_object(random, sample, depth=1)}]
    if chance(random, 0.15):
        spec["auditAnnotations"] = [{"key": "noted", "valueExpression": text_about_object(random, sample)}]
    return spec


def cel_exception(random: Random, name: str, kind: str, policy: str, sample: JSONObject) -> JSONObject:
    """Return a PolicyException for a policy in CEL."""
    spec: JSONObject = {"policyRefs": [{"name": policy, "kind": kind}]}
    if chance(random, 0.7):
        spec["matchConditions"] = [{"name": "some", "expression": about_object(random, sample, depth=1)}]
    found = _document("policies.kyverno.io/v1", "PolicyException", name, spec)
    found["metadata"]["namespace"] = "default"
    return found


def _document(api_version: str, kind: str, name: str, spec: JSONObject) -> JSONObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
