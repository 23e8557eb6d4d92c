"""Policies that change or create objects; each is for the objects with its own label, so that they do not meet."""

from __future__ import annotations

import json
from random import Random

from pyverno.kube.json import JSON, JSONObject
from tests.differential.generate.celexpressions import about_object, text_about_object
from tests.differential.generate.celpolicies import constraints
from tests.differential.generate.clusterpolicies import LISTS, cluster_policy
from tests.differential.generate.draws import chance, some
from tests.differential.generate.expressions import conditions, expression
from tests.differential.generate.patterns import json_patch, overlay_of

_NAMED: JSONObject = {"name": "{{ element.name }}", "imagePullPolicy": "Always"}

__all__ = ["CASE", "generating_policy", "generating_rule_policy", "mutating_policy", "mutating_rule_policy"]

CASE = "case"
"""The label whose value is the name of the one policy for an object."""


def _selected(kind: str, name: str) -> JSONObject:
    return {"any": [{"resources": {"kinds": [kind], "selector": {"matchLabels": {CASE: name}}}}]}


def mutating_rule_policy(random: Random, name: str, sample: JSONObject) -> JSONObject:
    """Return a ClusterPolicy that mutates."""
    rules = []
    for index in range(random.randint(1, 2)):
        rule: JSONObject = {"name": f"m{index}", "match": _selected(sample["kind"], name)}
        if chance(random, 0.2):
            rule["preconditions"] = conditions(random, "request.object", sample)
        rules.append({**rule, "mutate": _mutation(random, sample)})
    return cluster_policy(name, rules)


def _mutation(random: Random, sample: JSONObject) -> JSONObject:
    parts = {key: sample[key] for key in ("metadata", "spec", "data") if key in sample}
    roll = random.random()
    if roll < 0.5:
        overlay = overlay_of(random, parts)
        return {"patchStrategicMerge": _with_variable(random, overlay, sample)}
    if roll < 0.8:
        return {"patchesJson6902": json.dumps(json_patch(random, parts), ensure_ascii=False)}
    loop: JSONObject = {"list": random.choice(LISTS)}
    containers = sample.get("spec", {}).get("containers")
    if containers and chance(random, 0.7):
        loop = {
            "list": "request.object.spec.containers",
            "patchStrategicMerge": {
                "spec": {"containers": [{"name": "{{ element.name }}", "imagePullPolicy": "Always"}]}
            },
        }
        if chance(random, 0.4):
            loop["preconditions"] = conditions(random, "element", random.choice(containers))
    else:
        step = {"op": "add", "path": "/metadata/annotations/e{{elementIndex}}", "value": "{{ to_string(element) }}"}
        loop["patchesJson6902"] = json.dumps([step])
    if chance(random, 0.2):
        loop["order"] = random.choice(("Ascending", "Descending"))
    return {"foreach": [loop]}


def _with_variable(random: Random, overlay: JSON, sample: JSONObject) -> JSONObject:
    found: JSONObject = overlay if isinstance(overlay, dict) else {}
    if not found or chance(random, 0.3):
        shown = expression(random, "request.object", sample, depth=2)
        metadata = found.setdefault("metadata", {})
        if isinstance(metadata, dict):
            metadata.setdefault("annotations", {"shown": "{{ to_string(" + shown + ") }}"})
    return found


def generating_rule_policy(random: Random, name: str, sample: JSONObject) -> JSONObject:
    """Return a ClusterPolicy that generates."""
    shown = expression(random, "request.object", sample, depth=2)
    data: JSONObject = {
        "metadata": {"labels": {"made": "yes"}},
        "data": {"shown": "{{ to_string(" + shown + ") }}", "fixed": "1"},
    }
    rule: JSONObject = {
        "name": "g0",
        "match": _selected(sample["kind"], name),
        "generate": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": random.choice((name, name + "-{{ request.object.metadata.name }}")),
            "namespace": "default",
            "synchronize": chance(random, 0.5),
            "data": data,
        },
    }
    if chance(random, 0.3):
        rule["preconditions"] = conditions(random, "request.object", sample)
    return cluster_policy(name, [rule])


def _case_constraints(random: Random, kind: str, name: str) -> JSONObject:
    return constraints(random, kind, objectSelector={"matchLabels": {CASE: name}})


def mutating_policy(random: Random, name: str, sample: JSONObject, *, admission: bool = False) -> list[JSONObject]:
    """Return a MutatingPolicy; with `admission` a MutatingAdmissionPolicy."""
    spec: JSONObject = {
        "matchConstraints": _case_constraints(random, sample["kind"], name),
        "mutations": [_cel_mutation(random, sample) for _ in range(random.randint(1, 2))],
    }
    if chance(random, 0.2):
        spec["matchConditions"] = [{"name": "only", "expression": about_object(random, sample, depth=1)}]
    if chance(random, 0.3):
        spec["variables"] = [{"name": "v0", "expression": text_about_object(random, sample)}]
    if not admission:
        return [
            {"apiVersion": "policies.kyverno.io/v1", "kind": "MutatingPolicy", "metadata": {"name": name}, "spec": spec}
        ]
    version = "admissionregistration.k8s.io/v1alpha1"
    spec |= {"failurePolicy": "Fail", "reinvocationPolicy": "Never"}
    policy = {"apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}
    if chance(random, 0.5):
        return [policy]
    # a binding repeats the constraints, because with one Kyverno's command ignores those of the policy
    selected = _case_constraints(random, sample["kind"], name)
    if chance(random, 0.3):
        selected["objectSelector"]["matchLabels"]["app"] = "web"
    bound: JSONObject = {"policyName": name, "matchResources": selected}
    kind = "MutatingAdmissionPolicyBinding"
    return [policy, {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": bound}]


def _cel_mutation(random: Random, sample: JSONObject) -> JSONObject:
    shown = text_about_object(random, sample)
    metadata = f'metadata: Object.metadata{{labels: {{"added": "x"}}, annotations: {{"shown": {shown}}}}}'
    roll = random.random()
    if roll < 0.4:
        written = f"Object{{{metadata}}}"
    elif roll < 0.6 and sample["kind"] == "Pod":
        items = "object.spec.containers.map(c, Object.spec.containers{name: c.name, imagePullPolicy: 'Always'})"
        written = f"Object{{spec: Object.spec{{containers: {items}}}}}"
    elif roll < 0.7:
        written = f"{about_object(random, sample, depth=1)} ? Object{{{metadata}}} : Object{{}}"
    else:
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": _json_patch(random, sample, shown)}}
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": written}}


def _json_patch(random: Random, sample: JSONObject, shown: str) -> str:
    steps = (
        f'JSONPatch{{op: "add", path: "/metadata/annotations", value: {{"shown": {shown}}}}}',
        'JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b~c"), value: "x"}',
        'JSONPatch{op: "remove", path: "/metadata/labels/app"}',
        'JSONPatch{op: "test", path: "/metadata/name", value: object.metadata.name}',
        'JSONPatch{op: "copy", from: "/metadata/name", path: "/metadata/labels/copied"}',
    )
    return "[" + ", ".join(some(random, steps, 1, 3)) + "]"


def generating_policy(random: Random, name: str, sample: JSONObject) -> JSONObject:
    """Return a GeneratingPolicy that makes a ConfigMap."""
    made = (
        f'{{"apiVersion": dyn("v1"), "kind": dyn("ConfigMap"), "metadata": dyn({{"name": "{name}"}}), '
        f'"data": dyn({{"shown": {text_about_object(random, sample)}}})}}'
    )
    spec: JSONObject = {
        "matchConstraints": _case_constraints(random, sample["kind"], name),
        "variables": [{"name": "made", "expression": f"[{made}]"}],
        "generate": [{"expression": 'generator.Apply("default", variables.made)'}],
    }
    if chance(random, 0.3):
        spec["matchConditions"] = [{"name": "only", "expression": about_object(random, sample, depth=1)}]
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "GeneratingPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }
