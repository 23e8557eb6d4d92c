"""RBAC: finds the rules that apply to a user, and decides whether one of them allows an action.

Roles and bindings are read from the store and indexed by subject; the index is rebuilt when one of them changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kubesandbox.authorization.access import MASTERS, Access, AccessAttributes, PolicyRule
from kubesandbox.parsing.requests import go_quote
from kubesandbox.storage.store import Key
from kubesandbox.view import ObjectReader
from pyverno.engine.request import User
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import resource_name
from pyverno.value import dataclass

__all__ = ["GROUP", "RbacAuthorizer", "allows", "rules_of"]

GROUP = "rbac.authorization.k8s.io"
_RESOURCES = tuple(
    resource_name(GROUP, each) for each in ("clusterrolebindings", "rolebindings", "clusterroles", "roles")
)
_CLUSTER_BINDINGS, _BINDINGS, _CLUSTER_ROLES, _ROLES = _RESOURCES


class RbacAuthorizer:
    """Judges by the roles and bindings in the store; members of `system:masters` may everything."""

    def __init__(self, objects: ObjectReader) -> None:
        """Take where roles and bindings are."""
        self._objects = objects
        self._made_at: tuple[int, ...] = ()
        self._index: dict[tuple[str, str, str], list[_Grant]] = {}

    def authorize(self, attributes: AccessAttributes) -> Access:
        """Return whether a rule allows the action, and the binding that grants it."""
        if MASTERS in attributes.user.groups:
            return Access(True)
        problems: list[str] = []
        for grant in self._grants(attributes.user, attributes.namespace):
            if grant.problem:
                problems.append(f"{grant.problem}")
            elif any(allows(rule, attributes) for rule in grant.rules):
                return Access(True, f"RBAC: allowed by {grant.source}")
        return Access(False, f"RBAC: {_aggregate(problems)}" if problems else "")

    def rules_for(self, user: User, namespace: str) -> tuple[tuple[PolicyRule, ...], str]:
        """Return the rules of a user's bindings that apply in a namespace, and the missing roles."""
        rules: list[PolicyRule] = []
        problems: list[str] = []
        for grant in self._grants(user, namespace):
            rules.extend(grant.rules)
            if grant.problem:
                problems.append(grant.problem)
        return tuple(rules), _aggregate(problems)

    def role_rules(self, reference: JSONObject, namespace: str) -> tuple[PolicyRule, ...] | None:
        """Return the rules of the role that a `roleRef` names, None for a missing role."""
        name = str(reference.get("name") or "")
        is_role = reference.get("kind") == "Role"
        found = self._objects.get(Key(_ROLES, namespace, name) if is_role else Key(_CLUSTER_ROLES, "", name))
        return None if found is None else rules_of(found.body)

    def _grants(self, user: User, namespace: str) -> Iterator[_Grant]:
        """Yield the permissions of a user: first in the cluster, then in the namespace; each binding once."""
        revisions = tuple(map(self._objects.changed_at, _RESOURCES))
        if revisions != self._made_at:
            self._index, self._made_at = self._build_index(), revisions
        subjects = [("User", user.username), *(("Group", group) for group in user.groups)]
        for scope in ("", namespace) if namespace else ("",):
            found = [grant for kind, name in subjects for grant in self._index.get((scope, kind, name), ())]
            seen: set[int] = set()
            for grant in sorted(found, key=lambda grant: grant.order):
                if grant.order[0] not in seen:
                    seen.add(grant.order[0])
                    yield grant

    def _build_index(self) -> dict[tuple[str, str, str], list[_Grant]]:
        index: dict[tuple[str, str, str], list[_Grant]] = {}
        bindings = [*self._objects.all(_CLUSTER_BINDINGS), *self._objects.all(_BINDINGS)]
        for number, stored in enumerate(bindings):
            binding, namespace = stored.body, stored.key.namespace
            reference = _object(binding.get("roleRef"))
            rules = self.role_rules(reference, namespace)
            problem = "" if rules is not None else _missing(reference)
            for place, subject in enumerate(_objects(binding.get("subjects"))):
                kind, name = _matched(subject, namespace)
                if name:
                    source = f"{_describe(stored.key, reference)} to {_described_subject(subject, namespace)}"
                    grant = _Grant((number, place), rules or (), source, problem)
                    index.setdefault((namespace, kind, name), []).append(grant)
        return index


@dataclass(frozen=True, slots=True)
class _Grant:
    """The rights of one subject of one binding; `order` is the place of the binding and of the subject in it."""

    order: tuple[int, int]
    rules: tuple[PolicyRule, ...]
    source: str
    problem: str


def rules_of(role: JSONObject) -> tuple[PolicyRule, ...]:
    """Read the rules of a Role or ClusterRole.

    >>> rules_of({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]})[0].resources
    ('pods',)
    """
    return tuple(
        PolicyRule(
            verbs=_texts(rule.get("verbs")),
            groups=_texts(rule.get("apiGroups")),
            resources=_texts(rule.get("resources")),
            names=_texts(rule.get("resourceNames")),
            urls=_texts(rule.get("nonResourceURLs")),
        )
        for rule in _objects(role.get("rules"))
    )


def allows(rule: PolicyRule, attributes: AccessAttributes) -> bool:
    """Return whether a rule allows it.

    >>> rule = PolicyRule(verbs=("get",), groups=("",), resources=("*/log",))
    >>> allows(rule, AccessAttributes(User("x"), "get", resource="pods", subresource="log"))
    True
    """
    if not ("*" in rule.verbs or attributes.verb in rule.verbs):
        return False
    if attributes.path:
        return any(_is_under(url, attributes.path) for url in rule.urls)
    if not ("*" in rule.groups or attributes.group in rule.groups):
        return False
    if rule.names and attributes.name not in rule.names:
        return False
    wanted = {"*", attributes.combined_resource}
    if attributes.subresource:
        wanted.add(f"*/{attributes.subresource}")
    return not wanted.isdisjoint(rule.resources)


def _is_under(url: str, path: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


def _matched(subject: JSONObject, namespace: str) -> tuple[str, str]:
    """Return the kind and name under which users find a subject; an empty name matches no user."""
    kind, name = subject.get("kind"), str(subject.get("name") or "")
    if kind in ("User", "Group"):
        return kind, name
    at = str(subject.get("namespace") or namespace)
    if kind == "ServiceAccount" and at:
        return "User", f"system:serviceaccount:{at}:{name}"
    return "", ""


def _describe(key: Key, reference: JSONObject) -> str:
    kind = "RoleBinding" if key.namespace else "ClusterRoleBinding"
    name = f"{key.name}/{key.namespace}" if key.namespace else key.name
    role = f"{reference.get('kind')} {go_quote(str(reference.get('name') or ''))}"
    return f"{kind} {go_quote(name)} of {role}"


def _described_subject(subject: JSONObject, namespace: str) -> str:
    kind, name = subject.get("kind"), str(subject.get("name") or "")
    if kind == "ServiceAccount":
        # Kubernetes writes the name first
        name = f"{name}/{subject.get('namespace') or namespace}"
    return f"{kind} {go_quote(name)}"


def _missing(reference: JSONObject) -> str:
    kind, name = str(reference.get("kind") or ""), str(reference.get("name") or "")
    if kind not in ("Role", "ClusterRole"):
        return f"unsupported role reference kind: {go_quote(kind)}"
    return f"{resource_name(GROUP, kind.lower())} {go_quote(name)} not found"


def _aggregate(problems: Sequence[str]) -> str:
    unique = list(dict.fromkeys(problems))
    return f"[{', '.join(unique)}]" if len(unique) > 1 else "".join(unique)


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _objects(value: JSON) -> Iterable[JSONObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else ()


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
