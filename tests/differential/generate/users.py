"""Users of requests, and policies about them: subjects and roles of matches, conditions and CEL about the request."""

from __future__ import annotations

from random import Random

from pyverno.kube.json import JSON, JSONObject
from tests.differential.generate.celexpressions import about_object
from tests.differential.generate.celpolicies import constraints
from tests.differential.generate.clusterpolicies import cluster_policy
from tests.differential.generate.draws import chance, some
from tests.differential.generate.expressions import conditions, expression

__all__ = ["request_of", "user", "user_policy", "user_rule"]

_NAMES = ("alice", "bob", "system:serviceaccount:team-a:robot", "system:serviceaccount:kube-system:job", "system:admin")
_GROUPS = ("developers", "system:masters", "system:authenticated", "system:serviceaccounts")
_ROLES = ("team-a:editor", "default:viewer", "kube-system:leader")
_CLUSTER_ROLES = ("admin", "cluster-admin", "view")


def user(random: Random) -> JSONObject:
    """Return the file with the user of all requests."""
    info: JSONObject = {"username": random.choice(_NAMES), "groups": some(random, _GROUPS, 0, 3)}
    found: JSONObject = {"apiVersion": "cli.kyverno.io/v1alpha1", "kind": "UserInfo", "metadata": {"name": "user"}}
    if chance(random, 0.8):
        found["roles"] = some(random, _ROLES, 1, 2)
    if chance(random, 0.8):
        found["clusterRoles"] = some(random, _CLUSTER_ROLES, 1, 2)
    if chance(random, 0.2):
        info["extra"] = {"scopes": ["a", "b"]}
    return {**found, "userInfo": info}


def request_of(given: JSONObject, resource: JSONObject) -> JSONObject:
    """Return the request of a resource, as expressions see it."""
    return {
        "userInfo": given["userInfo"],
        "roles": given.get("roles", []),
        "clusterRoles": given.get("clusterRoles", []),
        "operation": "CREATE",
        "namespace": resource["metadata"].get("namespace", ""),
        "name": resource["metadata"]["name"],
        "kind": {"kind": resource["kind"]},
    }


def user_rule(random: Random, name: str, given: JSONObject, resource: JSONObject) -> JSONObject:
    """Return a rule for some users, which denies by what the request is."""
    described: JSONObject = {"resources": {"kinds": [resource["kind"]]}, **_users(random)}
    rule: JSONObject = {"name": name, "match": {random.choice(("any", "all")): [described]}}
    if chance(random, 0.3):
        rule["exclude"] = {"any": [_users(random)]}
    request = request_of(given, resource)
    if chance(random, 0.3):
        shown = random.choice(("serviceAccountName", "request.userInfo.username", "request.userInfo.groups"))
        wanted = random.choice(("robot", "team-a", "alice", "?*", "", ["developers"]))
        operator = random.choice(("Equals", "NotEquals", "AnyIn", "AnyNotIn"))
        checked: JSON = {"any": [{"key": "{{ " + shown + " }}", "operator": operator, "value": wanted}]}
    else:
        checked = conditions(random, "request", request)
    message = random.choice(("no", "{{ to_string(" + expression(random, "request", request, depth=1) + ") }}"))
    return {**rule, "validate": {"message": message, "deny": {"conditions": checked}}}


def _users(random: Random) -> JSONObject:
    subjects = (
        {"kind": "User", "name": random.choice((*_NAMES, "a*"))},
        {"kind": "Group", "name": random.choice((*_GROUPS, "system:*"))},
        {"kind": "ServiceAccount", "name": random.choice(("robot", "job")), "namespace": "team-a"},
    )
    choices: JSONObject = {
        "subjects": some(random, subjects, 1, 2),
        "roles": [random.choice((*_ROLES, "default:*", "*"))],
        "clusterRoles": [random.choice((*_CLUSTER_ROLES, "cluster-*", "*"))],
    }
    return {key: choices[key] for key in some(random, tuple(choices), 1, 2)}


def user_policy(random: Random, name: str, given: JSONObject, resource: JSONObject) -> JSONObject:
    """Return a policy about the request: a ClusterPolicy, a ValidatingPolicy or a ValidatingAdmissionPolicy."""
    if chance(random, 0.6):
        rules = [user_rule(random, f"v{index}", given, resource) for index in range(2)]
        return cluster_policy(name, rules, background=chance(random, 0.05))
    request = request_of(given, resource)
    request = {key: value for key, value in request.items() if key not in ("roles", "clusterRoles", "kind")}
    request["userInfo"] = {"username": request["userInfo"]["username"], "groups": [*request["userInfo"]["groups"], "a"]}
    validations = [{"expression": about_object(random, request, root="request", depth=2)} for _ in range(2)]
    spec: JSONObject = {"matchConstraints": constraints(random, resource["kind"]), "validations": validations}
    if chance(random, 0.3):
        expression_ = about_object(random, request, root="request", depth=1)
        spec["matchConditions"] = [{"name": "some", "expression": expression_}]
    api_version, kind = "policies.kyverno.io/v1", "ValidatingPolicy"
    if chance(random, 0.4):
        api_version, kind = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
