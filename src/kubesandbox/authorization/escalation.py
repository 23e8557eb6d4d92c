"""Prevents privilege escalation: users cannot write roles or bindings that grant more than they hold.

Without it, a user who may write roles could grant everything to themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kubesandbox.attributes import Attributes
from kubesandbox.authorization.access import MASTERS, AccessAttributes, Authorizer, PolicyRule
from kubesandbox.authorization.rbac import GROUP, rules_of
from kubesandbox.parsing.requests import go_quote
from kubesandbox.storage.store import Key
from kubesandbox.view import ObjectReader
from pyverno.engine.request import Operation, User
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import StatusError, forbidden, not_found
from pyverno.value import replace

__all__ = ["check_escalation", "covers"]

_ROLES = ("roles", "clusterroles")
_BINDINGS = ("rolebindings", "clusterrolebindings")
_EVERYTHING = (
    PolicyRule(verbs=("*",), groups=("*",), resources=("*",)),
    PolicyRule(verbs=("*",), urls=("*",)),
)
_UNTOUCHED = ("ownerReferences", "finalizers", "selfLink", "managedFields")


def check_escalation(attributes: Attributes, objects: ObjectReader, authorizer: Authorizer) -> None:
    """Raise 403 for a role or binding that grants rights which its writer does not hold.

    The writer may, if allowed to `escalate` roles of this name or to `bind` the role. Raises 404 for a binding to a
    role that does not exist, unless the writer may bind it.
    """
    plural, user = attributes.type.plural, attributes.user
    if attributes.type.group != GROUP or plural not in (*_ROLES, *_BINDINGS) or attributes.subresource:
        return
    body = attributes.object
    if attributes.operation not in (Operation.CREATE, Operation.UPDATE) or body is None or MASTERS in user.groups:
        return
    if attributes.old is not None and _comparable(body) == _comparable(attributes.old):
        return  # only what the garbage collector writes has changed
    if plural in _ROLES:
        _check_role(attributes, body, authorizer)
    else:
        _check_binding(attributes, body, objects, authorizer)


def _check_role(attributes: Attributes, body: JSONObject, authorizer: Authorizer) -> None:
    asked = AccessAttributes(
        attributes.user,
        "escalate",
        group=GROUP,
        version="*",
        resource=attributes.type.plural,
        namespace=attributes.namespace,
        name="" if attributes.operation is Operation.CREATE else attributes.name,
    )
    if authorizer.authorize(asked).allowed:
        return
    _check_rules(attributes, rules_of(body), authorizer)
    if any(_has_aggregation(role) for role in (body, attributes.old or {})):
        try:
            _check_rules(attributes, _EVERYTHING, authorizer)
        except StatusError:
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise forbidden(GROUP, attributes.type.plural, attributes.name, why) from None


def _check_binding(attributes: Attributes, body: JSONObject, objects: ObjectReader, authorizer: Authorizer) -> None:
    reference: JSON = body.get("roleRef")
    reference = reference if isinstance(reference, dict) else {}
    name, is_role = str(reference.get("name") or ""), reference.get("kind") == "Role"
    plural = "roles" if is_role else "clusterroles"
    asked = AccessAttributes(
        attributes.user,
        "bind",
        group=str(reference.get("apiGroup") or GROUP),
        version="*",
        resource=plural,
        namespace=attributes.namespace,
        name=name,
    )
    if authorizer.authorize(asked).allowed:
        return
    role = objects.get(Key(f"{plural}.{GROUP}", attributes.namespace if is_role else "", name))
    if role is None:
        raise not_found(GROUP, attributes.type.plural, name)
    _check_rules(attributes, rules_of(role.body), authorizer)


def _check_rules(attributes: Attributes, rules: Sequence[PolicyRule], authorizer: Authorizer) -> None:
    user = attributes.user
    held, problem = authorizer.rules_for(user, attributes.namespace)
    missing = covers(held, rules)
    if missing:
        listed = "\n".join(sorted({_compact(rule) for rule in _merge(missing)}))
        why = f"{_format_user(user)} is attempting to grant RBAC permissions not currently held:\n{listed}"
        if problem:
            # Kubernetes: this look-up names kinds in the singular, unlike that of permissions
            said = problem.replace(f"role.{GROUP}", f"roles.{GROUP}")
            why = f"{why}; resolution errors: [{said}]"
        raise forbidden(GROUP, attributes.type.plural, attributes.name, why)


def covers(held: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> tuple[PolicyRule, ...]:
    """Return the smallest parts of the wanted rules that no held rule covers; nothing when all are covered.

    >>> held = [PolicyRule(verbs=("*",), groups=("",), resources=("pods",))]
    >>> covers(held, [PolicyRule(verbs=("get",), groups=("",), resources=("pods", "secrets"))])[0].resources
    ('secrets',)
    """
    parts = (part for rule in wanted for part in _parts(rule))
    return tuple(part for part in parts if not any(_rule_covers(rule, part) for rule in held))


def _parts(rule: PolicyRule) -> Iterator[PolicyRule]:
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in rule.names or ("",):
                    names = (name,) if rule.names else ()
                    yield PolicyRule(verbs=(verb,), groups=(group,), resources=(resource,), names=names)
    for url in rule.urls:
        for verb in rule.verbs:
            yield PolicyRule(verbs=(verb,), urls=(url,))


def _rule_covers(rule: PolicyRule, part: PolicyRule) -> bool:
    return (
        ("*" in rule.verbs or set(part.verbs) <= set(rule.verbs))
        and ("*" in rule.groups or set(part.groups) <= set(rule.groups))
        and all(_resource_covers(rule.resources, resource) for resource in part.resources)
        and (not rule.names or (bool(part.names) and set(part.names) <= set(rule.names)))
        and all(any(_url_covers(owner, url) for owner in rule.urls) for url in part.urls)
    )


def _resource_covers(held: Sequence[str], wanted: str) -> bool:
    _, slash, subresource = wanted.partition("/")
    return "*" in held or wanted in held or (bool(slash) and f"*/{subresource}" in held)


def _url_covers(held: str, wanted: str) -> bool:
    return held == wanted or (held.endswith("*") and wanted.startswith(held.rstrip("*")))


def _merge(parts: Iterable[PolicyRule]) -> Iterator[PolicyRule]:
    """Join rules that differ only in their verb, as in messages."""
    simple: dict[tuple[tuple[str, ...], ...], PolicyRule] = {}
    for part in parts:
        if part.urls:
            yield part
            continue
        key = (part.groups, part.resources, part.names)
        known = simple.get(key)
        simple[key] = part if known is None else replace(known, verbs=(*known.verbs, *part.verbs))
    yield from simple.values()


def _compact(rule: PolicyRule) -> str:
    rows = (
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.urls),
        ("ResourceNames", rule.names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{name}:{_format_list(texts)}" for name, texts in rows if texts) + "}"


def _format_user(user: User) -> str:
    return f"user {go_quote(user.username)} (groups={_format_list(user.groups)})"


def _format_list(texts: Iterable[str]) -> str:
    return "[" + " ".join(map(go_quote, texts)) + "]"


def _has_aggregation(role: JSONObject) -> bool:
    rule = role.get("aggregationRule")
    return isinstance(rule, dict) and bool(rule.get("clusterRoleSelectors"))


def _comparable(body: JSONObject) -> JSONObject:
    metadata = body.get("metadata") or {}
    return {**body, "metadata": {key: value for key, value in metadata.items() if key not in _UNTOUCHED}}
