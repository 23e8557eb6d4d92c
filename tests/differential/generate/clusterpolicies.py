"""ClusterPolicies that validate: patterns, conditions, loops, Pod Security Standards, CEL; matches and exceptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from pyverno.kube.json import JSON, JSONObject
from tests.differential.generate.celexpressions import about_object
from tests.differential.generate.draws import chance, some
from tests.differential.generate.expressions import conditions, expression
from tests.differential.generate.patterns import pattern_of
from tests.differential.generate.resources import KINDS, NAMESPACES

__all__ = ["cluster_policy", "exception", "match", "validating_rule", "values"]

_MESSAGES = (
    "",
    "must be so",
    "bad {{ request.object.metadata.name }}",
    "{{ request.operation }} of {{request.object.kind}}",
)
_POD_CONTROLS = ("Host Namespaces", "HostPath Volumes", "Sysctls", "Volume Types")
_CONTAINER_CONTROLS = (
    "Privileged Containers", "Capabilities", "Host Ports", "/proc Mount Type", "Seccomp", "SELinux", "HostProcess",
    "Privilege Escalation", "Running as Non-root", "Running as Non-root user",
)  # fmt: skip
POD_KINDS = ("Pod", "Deployment", "CronJob")
LISTS = (
    "request.object.spec.containers", "request.object.spec.[initContainers, containers][]",
    "request.object.spec.containers[].ports[]", "request.object.spec.volumes",
    "request.object.spec.containers[].image", "request.object.spec.containers[*].env[]",
    "request.object.spec.volumes || `[]`", "request.object.metadata.labels | items(@, 'key', 'value')",
    "request.object.spec.tolerations[?key == 'a']",
)  # fmt: skip
INNER_LISTS = (
    "element.ports",
    "element.env || `[]`",
    "element.args",
    "element0.ports[].containerPort",
    "[element.name]",
)
"""Lists of a loop inside of a loop over containers."""
_PARTS: tuple[JSONObject, ...] = ({"name": "E0", "value": "1"}, {"containerPort": 80, "hostPort": 8080})


def cluster_policy(name: str, rules: Sequence[JSON], **spec: JSON) -> JSONObject:
    """Return a ClusterPolicy."""
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name, "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}},
        "spec": {**spec, "rules": list(rules)},
    }


def match(random: Random, sample: JSONObject, *, wide: bool = False) -> JSONObject:
    """Return `match`, sometimes with `exclude`, that selects a sample more often than not."""
    found: JSONObject = {"match": _filters(random, sample, wide=wide)}
    if not wide and chance(random, 0.2):
        found["exclude"] = _filters(random, sample, wide=False)
    return found


def _filters(random: Random, sample: JSONObject, *, wide: bool) -> JSONObject:
    kind = sample["kind"] if chance(random, 0.8) else random.choice(KINDS)
    described: JSONObject = {"kinds": [kind] if wide else random.choice(([kind], [kind], [kind, "Service"]))}
    if not wide:
        extra: JSONObject = {
            "namespaces": some(random, (*NAMESPACES, "team-*", "*"), 1, 3),
            "names": some(random, ("r1*", "r?", "*", "r0", "x*"), 1, 2),
            "selector": random.choice(_SELECTORS),
            "annotations": random.choice(({"app": "*"}, {"tier": "web"}, {"*": "d?"}, {"env": ""})),
            "operations": some(random, ("CREATE", "UPDATE", "DELETE"), 1, 2),
            "namespaceSelector": random.choice(_SELECTORS),
        }
        described |= {key: extra[key] for key in some(random, tuple(extra), 0, 2)}
    return {random.choice(("any", "any", "all")): [{"resources": described}]}


_SELECTORS: tuple[JSONObject, ...] = (
    {"matchLabels": {"app": "web"}},
    {"matchLabels": {"app": "w*"}},
    {"matchLabels": {"a*": "?*"}},
    {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["web", "db"]}]},
    {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]},
    {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]},
)


def validating_rule(random: Random, name: str, sample: JSONObject, *, wide: bool = False) -> JSONObject:
    """Return a rule about resources like a sample."""
    rule: JSONObject = {"name": name, **match(random, sample, wide=wide)}
    if chance(random, 0.15):
        rule["preconditions"] = conditions(random, "request.object", sample)
    if chance(random, 0.15):
        rule["context"] = [
            {"name": "found", "variable": {"jmesPath": expression(random, "request.object", sample, depth=2)}}
        ]
    check = random.choice(_CHECKS)(random, sample)
    if "cel" in check:
        rule.pop("context", None)
    if "message" not in check and "cel" not in check:
        message = random.choice(_MESSAGES)
        if "context" in rule and chance(random, 0.5):
            message = "found {{ to_string(found) }}"
        check["message"] = message
    if chance(random, 0.3):
        check["failureAction"] = random.choice(("Audit", "Enforce"))
    rule["validate"] = check
    return rule


def _pattern(random: Random, sample: JSONObject) -> JSONObject:
    return {"pattern": _below_top(random, sample)}


def _any_pattern(random: Random, sample: JSONObject) -> JSONObject:
    return {"anyPattern": [_below_top(random, sample) for _ in range(random.randint(1, 3))]}


def _below_top(random: Random, sample: JSONObject) -> JSONObject:
    parts = {key: sample[key] for key in ("metadata", "spec", "data") if key in sample}
    found = pattern_of(random, parts)
    return found if isinstance(found, dict) else {"metadata": {"name": found}}


def _deny(random: Random, sample: JSONObject) -> JSONObject:
    return {"deny": {"conditions": conditions(random, "request.object", sample)}}


def _show(random: Random, sample: JSONObject) -> JSONObject:
    """Deny an object that has a value; the message shows it."""
    shown = expression(random, "request.object", sample)
    condition = {"key": "{{ " + shown + " }}", "operator": "NotEquals", "value": "never"}
    return {"message": "{{ to_string(" + shown + ") }}", "deny": {"conditions": {"all": [condition]}}}


def _foreach(random: Random, sample: JSONObject) -> JSONObject:
    containers = sample.get("spec", {}).get("containers") or [{"name": "a", "image": "nginx"}]
    element = random.choice(containers)
    if chance(random, 0.2):
        inner = {**_loop(random, random.choice(_PARTS)), "list": random.choice(INNER_LISTS)}
        return {"foreach": [{"list": random.choice(LISTS[:3]), "foreach": [inner]}]}
    return {"foreach": [_loop(random, element)]}


def _loop(random: Random, element: JSONObject) -> JSONObject:
    loop: JSONObject = {"list": random.choice(LISTS)}
    if chance(random, 0.2):
        loop["elementScope"] = chance(random, 0.5)
    if chance(random, 0.3):
        loop["preconditions"] = conditions(random, "element", element)
    roll = random.random()
    if roll < 0.4:
        loop["pattern"] = pattern_of(random, element)
    elif roll < 0.5:
        loop["anyPattern"] = [pattern_of(random, element) for _ in range(2)]
    else:
        loop["deny"] = {"conditions": conditions(random, "element", element)}
    return loop


def _pod_security(random: Random, sample: JSONObject) -> JSONObject:
    found: JSONObject = {
        "level": random.choice(("baseline", "restricted")),
        "version": random.choice(("latest", "v1.29", "v1.24", "v1.19")),
    }
    if chance(random, 0.5):
        excluded: JSONObject = {"controlName": random.choice((*_POD_CONTROLS, *_CONTAINER_CONTROLS))}
        if excluded["controlName"] in _CONTAINER_CONTROLS:
            excluded["images"] = random.choice((["nginx*"], ["ghcr.io/*", "docker.io/*"], ["*"]))
        if excluded["controlName"] == "Capabilities" and chance(random, 0.6):
            field = "spec.containers[*].securityContext.capabilities.add"
            excluded |= {"restrictedField": field, "values": ["NET_ADMIN", "SYS_TIME"]}
        found["exclude"] = [excluded]
    return {"podSecurity": found}


def _cel(random: Random, sample: JSONObject) -> JSONObject:
    validation: JSONObject = {"expression": about_object(random, sample)}
    if chance(random, 0.6):
        validation["message"] = random.choice(("must be so", "no"))
    return {"cel": {"expressions": [validation]}}


_CHECKS: tuple[Callable[[Random, JSONObject], JSONObject], ...] = (
    _pattern, _pattern, _pattern, _any_pattern, _deny, _deny, _show, _show, _foreach, _foreach, _pod_security, _cel,
)  # fmt: skip


def exception(random: Random, name: str, policy: str, rules: Sequence[str], sample: JSONObject) -> JSONObject:
    """Return a PolicyException for some rules of a policy."""
    spec: JSONObject = {
        "match": _filters(random, sample, wide=chance(random, 0.5)),
        "exceptions": [{"policyName": policy, "ruleNames": some(random, (*rules, "*"), 1, 2)}],
    }
    if chance(random, 0.3):
        spec["conditions"] = conditions(random, "request.object", sample)
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def values(random: Random, policies: Sequence[str], resources: Sequence[str]) -> JSONObject:
    """Return a values file: an operation, labels of namespaces, and variables of some policies and resources."""
    found: JSONObject = {
        "apiVersion": "cli.kyverno.io/v1alpha1",
        "kind": "Values",
        "metadata": {"name": "values"},
        "globalValues": {"request.operation": random.choice(("CREATE", "UPDATE"))},
        "namespaceSelector": [
            {"name": name, "labels": {"app": "web", "tier": random.choice(("web", "db"))}}
            for name in some(random, NAMESPACES, 1, 3)
        ],
    }
    chosen = some(random, policies, 0, 3)
    found["policies"] = [
        {
            "name": policy,
            "resources": [
                {"name": resource, "values": {"request.object.metadata.labels.tier": "given"}}
                for resource in some(random, resources, 1, 3)
            ],
        }
        for policy in chosen
    ]
    return found
