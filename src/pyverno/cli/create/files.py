"""The files that `pyverno create` writes, as values: tests, values, users, exceptions, metrics settings, roles.

Each has the current schema, so that `apply` and `test` accept it. This module must never write a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyverno.errors import UsageError
from pyverno.kube.json import JSON, JSONObject, encode_indent
from pyverno.kube.yaml.scalars import resolve_plain
from pyverno.offline.clifiles import API_VERSION

__all__ = ["cluster_role", "exception", "expected_row", "metrics_config", "new_test", "user_info", "values_file"]


def _without_empty(pairs: Mapping[str, JSON]) -> JSONObject:
    """Leave out empty fields."""
    return {key: value for key, value in pairs.items() if value not in ("", [], {}, None)}


def expected_row(text: str, result: str) -> JSONObject:
    """Read `POLICY,RULE,RESOURCE,NAMESPACE,KIND[,PATCHED]` (rule and namespace may be empty).

    >>> expected_row("p,r,nginx,shop,Pod", "pass")["resources"]
    ['shop/nginx']
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (5, 6):
        raise UsageError(f"--{result} `{text}`: expected POLICY,RULE,RESOURCE,NAMESPACE,KIND[,PATCHED]")
    policy, rule, resource, namespace, kind, *patched = parts
    if not (policy and resource and kind):
        raise UsageError(f"--{result} `{text}`: policy, resource and kind must not be empty")
    return _without_empty(
        {
            "policy": policy,
            "rule": rule,
            "resources": [f"{namespace}/{resource}" if namespace else resource],
            "kind": kind,
            "patchedResources": "".join(patched),
            "result": result,
        }
    )


def new_test(
    *, name: str, policies: Sequence[str], resources: Sequence[str], values: str, rows: Sequence[JSONObject]
) -> JSONObject:
    """Return a Test."""
    optional = _without_empty({"variables": values})
    return {
        "apiVersion": API_VERSION,
        "kind": "Test",
        "metadata": {"name": name},
        "policies": list(policies),
        "resources": list(resources),
        **optional,
        "results": list(rows),
    }


def _pair(word: str, flag: str) -> tuple[str, str]:
    key, separator, text = word.partition("=")
    if not separator or not key.strip():
        raise UsageError(f"{flag} `{word}`: expected KEY=VALUE")
    return key.strip(), text.strip()


def _pairs(words: Iterable[str], flag: str) -> JSONObject:
    """Read values as YAML would, so that `5` is a number."""
    return {key: _parse_value(text) for key, text in (_pair(word, flag) for word in words)}


def _parse_value(text: str) -> JSON:
    try:
        return resolve_plain(text) if text else ""
    except ValueError:
        return text


def _split_scope(text: str, flag: str, names: int) -> tuple[list[str], list[str]]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) <= names or not all(parts[:names]):
        raise UsageError(f"{flag} `{text}`: expected {','.join(['NAME'] * names)},KEY=VALUE")
    return parts[:names], parts[names:]


def values_file(
    *,
    global_values: Sequence[str],
    namespaces: Sequence[str],
    rules: Sequence[str],
    resources: Sequence[str],
) -> JSONObject:
    """Return a Values file out of `KEY=VALUE`, `NAMESPACE,KEY=VALUE`, `POLICY,RULE,...` and `POLICY,RESOURCE,...`."""
    policies: dict[str, JSONObject] = {}
    for flag, field, texts in (("--rule", "rules", rules), ("--resource", "resources", resources)):
        for text in texts:
            (policy, name), words = _split_scope(text, flag, 2)
            entry = policies.setdefault(policy, {"name": policy})
            entry.setdefault(field, []).append({"name": name, "values": _pairs(words, flag)})
    selectors: list[JSON] = []
    for text in namespaces:
        (namespace,), words = _split_scope(text, "--ns-selector", 1)
        selectors.append({"name": namespace, "labels": dict(_pair(word, "--ns-selector") for word in words)})
    optional = _without_empty(
        {
            "globalValues": _pairs(global_values, "--global"),
            "policies": list(policies.values()),
            "namespaceSelector": selectors,
        }
    )
    return {"apiVersion": API_VERSION, "kind": "Values", "metadata": {"name": "values"}, **optional}


def user_info(
    *, username: str, groups: Sequence[str], roles: Sequence[str], cluster_roles: Sequence[str]
) -> JSONObject:
    """Return a UserInfo file."""
    optional = _without_empty(
        {
            "roles": list(roles),
            "clusterRoles": list(cluster_roles),
            "userInfo": _without_empty({"username": username, "groups": list(groups)}),
        }
    )
    return {"apiVersion": API_VERSION, "kind": "UserInfo", "metadata": {"name": "user-info"}, **optional}


_FILTERS = {"kind": "kinds", "name": "names", "namespace": "namespaces", "operation": "operations"}


def _filter(text: str, flag: str) -> JSONObject:
    found: dict[str, list[str]] = {}
    for part in text.split(","):
        key, separator, value = part.partition("=")
        if not separator or key.strip() not in _FILTERS or not value.strip():
            raise UsageError(f"{flag} `{text}`: `{part}` must be KEY=VALUE with a key of {', '.join(_FILTERS)}")
        found.setdefault(_FILTERS[key.strip()], []).append(value.strip())
    if "kinds" not in found:
        raise UsageError(f"{flag} `{text}`: a kind is required")
    return {"resources": {field: found[field] for field in _FILTERS.values() if field in found}}


def exception(
    *,
    name: str,
    namespace: str,
    background: bool,
    policy_rules: Sequence[str],
    any_of: Sequence[str],
    all_of: Sequence[str],
) -> JSONObject:
    """Return a PolicyException; filters are `kind=…,name=…,namespace=…,operation=…`."""
    listed: list[JSON] = []
    for text in policy_rules:
        policy, *rules = [part.strip() for part in text.split(",")]
        if not policy or not rules or not all(rules):
            raise UsageError(f"--policy-rules `{text}`: expected POLICY,RULE[,RULE...]")
        listed.append({"policyName": policy, "ruleNames": rules})
    if not any_of and not all_of:
        raise UsageError("one of --any and --all must select the exempt resources")
    match = _without_empty(
        {
            "any": [_filter(text, "--any") for text in any_of],
            "all": [_filter(text, "--all") for text in all_of],
        }
    )
    if len(match) > 1:
        raise UsageError("--any and --all cannot be used together, use one or the other")
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": name, "namespace": namespace or "default"},
        "spec": {"background": background, "match": match, "exceptions": listed},
    }


def metrics_config(*, name: str, namespace: str, include: Sequence[str], exclude: Sequence[str]) -> JSONObject:
    """Return the ConfigMap that selects the namespaces of metrics."""
    namespaces = encode_indent({"include": list(include), "exclude": list(exclude)})
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"namespaces": namespaces},
    }


_ALL_VERBS = ("create", "get", "update", "delete", "list", "watch")


def cluster_role(
    *, name: str, api_groups: str, resources: Sequence[str], verbs: Sequence[str], controllers: Sequence[str]
) -> JSONObject:
    """Return a ClusterRole that Kyverno's controllers aggregate; the verb `all` stands for all verbs that they use."""
    expanded = [each for verb in verbs for each in (_ALL_VERBS if verb == "all" else (verb,))]
    labels = {f"rbac.kyverno.io/aggregate-to-{controller}": "true" for controller in controllers}
    rule = {
        "apiGroups": [api_groups],
        "resources": list(resources),
        "verbs": list(dict.fromkeys(expanded)),
    }
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"kyverno-{name}-permission", "labels": labels},
        "rules": [rule],
    }
