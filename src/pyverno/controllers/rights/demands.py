"""What a namespaced policy does, as the permissions that its author needs to do the same.

Only what the policy fixes is listed: kinds and names from variables, and objects that CEL makes, are known when the
policy works (see `AuthorRights.require`). Roles, bindings and policies escalate: they decide what others may do, and
need the verbs `escalate` and `bind`, as RBAC treats them. This module must not ask the API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pyverno.compiler.autogen.cel import expand_cel
from pyverno.compiler.autogen.patterns import expand
from pyverno.controllers.rights.texts import reads_of
from pyverno.controllers.state.targets import Target as KindTarget
from pyverno.controllers.state.targets import targets_of
from pyverno.kube.json import JSON
from pyverno.kube.kinds import KindTable
from pyverno.kube.wildcard import has_wildcard
from pyverno.kube.wildcard import match as fits
from pyverno.lazyregex import regex
from pyverno.policy.cel.constraints import MatchConstraints
from pyverno.policy.cel.policies import DeletingPolicy, MutatingPolicy
from pyverno.policy.cleanup import CleanupPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.document import PolicyDocument
from pyverno.policy.generate import Generate
from pyverno.policy.kinds import POLICY_KINDS
from pyverno.policy.match import MatchBlocks, ResourceDescription, ResourceFilter
from pyverno.policy.mutate import Mutate, Target
from pyverno.policy.rule import Rule
from pyverno.value import dataclass, field, replace

__all__ = ["Demand", "demands_of", "escalations"]

_RBAC: Final = "rbac.authorization.k8s.io"
_ROLES: Final = ("roles", "clusterroles")
_BINDINGS: Final = ("rolebindings", "clusterrolebindings")
_WRITES: Final = ("create", "update", "patch")
_OPERATIONS: Final = {"CREATE": "create", "UPDATE": "update", "CONNECT": "create"}  # guard: to connect is to create
"""Operations whose content a mutation changes, and the verb that their users need."""

_STORING: Final = ("CREATE", "UPDATE")
_POLICIES: Final = frozenset((row.group, row.plural) for row in POLICY_KINDS)
_NAME: Final = regex("[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Demand:
    """One permission that an author needs; an empty `name` is every object, `path` the part of the policy.

    `body` is the object that is written, as far as it is known.
    """

    verb: str
    group: str
    resource: str
    subresource: str = ""
    name: str = ""
    path: str = ""
    body: JSON = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        what = f"{resource}/{self.subresource}" if self.subresource else resource
        return f"{self.verb} {what}{f' `{self.name}`' if self.name else ''}"


def demands_of(policy: object, kinds: KindTable) -> Iterator[Demand]:
    """Yield the permissions that a namespaced policy needs of its author, with those for what escalates.

    What it judges and reads counts as well: conditions, messages and generated objects tell it.
    """
    for demand in _deeds_of(policy, kinds):
        yield demand
        yield from escalations(demand)
    if isinstance(policy, PolicyDocument):
        namespace = policy.namespace or "default"
        for each in reads_of(policy.raw, namespace, kinds):
            yield Demand(each.verb, each.group, each.resource, name=each.name, path=each.path)
        yield from _of_judged(policy, kinds)  # guard: a policy judges what its author may read


def _deeds_of(policy: object, kinds: KindTable) -> Iterator[Demand]:
    match policy:
        case ClusterPolicy():
            yield from _of_rules(policy, kinds)
        case CleanupPolicy():
            yield from _of_match("delete", policy.spec.match, kinds, "spec.match")
        case MutatingPolicy():
            yield from _of_mutating(policy)
        case DeletingPolicy():
            yield from _of_constraints(policy.spec.match_constraints, "spec.matchConstraints", verb="delete")


def escalations(demand: Demand) -> Iterator[Demand]:
    """Yield what else an author needs to write an object whose content is a permission.

    >>> [str(each) for each in escalations(Demand("create", "rbac.authorization.k8s.io", "roles"))]
    ['escalate roles.rbac.authorization.k8s.io']
    """
    if demand.verb not in _WRITES or demand.subresource:
        return

    def writes(group: str, resource: str) -> bool:
        return demand.group in ("*", group) and fits(demand.resource, resource)

    for role in _ROLES:
        if writes(_RBAC, role):
            yield replace(demand, verb="escalate", group=_RBAC, resource=role)
    if any(writes(_RBAC, binding) for binding in _BINDINGS):
        for role, name in _bound(demand.body):
            yield replace(demand, verb="bind", group=_RBAC, resource=role, name=name)
    for group, plural in sorted(_POLICIES):
        if writes(group, plural):
            yield replace(demand, verb="escalate", group=group, resource=plural, name="")


def _of_judged(policy: PolicyDocument, kinds: KindTable) -> Iterator[Demand]:
    """Yield `get` for what a policy judges; for everything it is that for what is secret."""
    found: Iterator[Demand]
    match policy:
        case ClusterPolicy():
            found = (
                each
                for rule in expand(policy)
                for each in _of_match("get", rule.match, kinds, f"spec.rules `{rule.name}`.match")
            )
        case CleanupPolicy():
            found = _of_match("get", policy.spec.match, kinds, "spec.match")
        case _:
            spec = getattr(policy, "spec", None)
            constraints = getattr(spec, "match_constraints", None)
            found = _of_constraints(constraints, "spec.matchConstraints", verb="get")
    for demand in found:
        if "*" not in (demand.group, demand.resource):
            yield replace(demand, subresource="")
        elif demand.group in ("", "*") and fits(demand.resource, "secrets"):
            yield replace(demand, group="", resource="secrets", subresource="")


def _bound(body: JSON) -> Iterator[tuple[str, str]]:
    """Yield the role that a binding binds, as resource and name; all of them where it is not known."""
    reference = body.get("roleRef") if isinstance(body, dict) else None
    reference = reference if isinstance(reference, dict) else {}
    kind, name = reference.get("kind"), reference.get("name")
    resource = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind if isinstance(kind, str) else "")
    if resource is not None and isinstance(name, str) and name and not _is_variable(name):
        yield resource, name
    else:
        yield from ((each, "") for each in _ROLES)


# ------------------------------------------------------------------------------------------------------- legacy rules


def _of_rules(policy: ClusterPolicy, kinds: KindTable) -> Iterator[Demand]:
    for index, rule in enumerate(policy.spec.rules):
        if isinstance(rule.action, Generate):
            yield from _of_generate(rule.action, kinds, f"spec.rules[{index}].generate")
    for rule in expand(policy):
        if isinstance(rule.action, Mutate):
            yield from _of_mutate(rule, rule.action, kinds, f"spec.rules `{rule.name}`")


def _of_generate(generate: Generate, kinds: KindTable, path: str) -> Iterator[Demand]:
    verbs = ("create", "update", "delete") if generate.synchronize else ("create",)
    patterns = [generate.pattern] if generate.foreach is None else [each.pattern for each in generate.foreach]
    for pattern in patterns:
        listed = pattern.clone_list.kinds
        texts = listed if listed is not None else (_selector(pattern.api_version, pattern.kind),)
        for text in texts:
            for target in _known(text, kinds):
                for verb in verbs:
                    yield replace(_demand(verb, target, pattern.name, path), body=pattern.data)
                if listed is not None:
                    yield _demand("list", target, "", f"{path}.cloneList")
                elif pattern.clone.name:
                    yield _demand("get", target, pattern.clone.name, f"{path}.clone")


def _of_mutate(rule: Rule, mutate: Mutate, kinds: KindTable, path: str) -> Iterator[Demand]:
    if mutate.targets is not None:
        yield from (each for target in mutate.targets for each in _of_target(target, kinds, f"{path}.mutate.targets"))
        return
    for block in _deciding(rule.match):
        for verb in _verbs([each.value for each in block.resources.operations] or _STORING):
            yield from _of_resources(verb, block.resources, kinds, f"{path}.match")


def _of_target(target: Target, kinds: KindTable, path: str) -> Iterator[Demand]:
    for found in _known(_selector(target.api_version, target.kind), kinds):
        yield _demand("update", found, target.name, path)
        if has_wildcard(target.name) and "{{" not in target.name:
            yield _demand("list", found, "", path)
        elif not _is_variable(target.name):
            yield _demand("get", found, target.name, path)


def _of_match(verb: str, match: MatchBlocks, kinds: KindTable, path: str) -> Iterator[Demand]:
    for block in _deciding(match):
        yield from _of_resources(verb, block.resources, kinds, path)


def _deciding(match: MatchBlocks) -> Iterator[ResourceFilter]:
    """Yield the blocks whose kinds are all that can match: every block of `any`, one block of `all` that names some."""
    every = [block for block in match.all if block.resources.kinds] or list(match.all)
    yield from (match.flat,) if match.flat is not None else ()
    yield from (*every[:1], *match.any)


def _of_resources(verb: str, resources: ResourceDescription, kinds: KindTable, path: str) -> Iterator[Demand]:
    names = (*resources.names, *((resources.name,) if resources.name else ()))
    if any(_is_variable(name) for name in names):
        names = ()
    for text in resources.kinds or ("*",):
        for target in _known(text, kinds):
            for name in names or ("",):
                yield _demand(verb, target, name, path)


def _selector(api_version: str, kind: str) -> str:
    return f"{api_version}/{kind}" if api_version else kind


def _known(text: str, kinds: KindTable) -> Iterator[KindTarget]:
    """Yield the resources of a kind selector, once each; none of one with variables, which are judged at work."""
    if "{{" in text:
        return
    seen: set[tuple[str, str, str]] = set()
    for found in targets_of(text, kinds):
        for resource, subresource in _places_of(f"{found.resource}/{found.subresource}"):
            place = (found.group, resource, subresource)
            if place not in seen and found.is_namespaced is not False:
                seen.add(place)
                yield replace(found, subresource=subresource)


def _demand(verb: str, target: KindTarget, name: str, path: str) -> Demand:
    # a role that names objects never grants their creation
    name = "" if verb in ("create", "list") or _is_variable(name) else name
    return Demand(verb, target.group, target.resource, target.subresource, name, path)


def _is_variable(name: str) -> bool:
    return has_wildcard(name) or _NAME.fullmatch(name) is None


# ---------------------------------------------------------------------------------------------------- policies in CEL


def _of_mutating(policy: MutatingPolicy) -> Iterator[Demand]:
    copies = tuple(copy.policy for copy in expand_cel(policy))  # guard: copies of a policy need the same
    for each in (policy, *copies):
        yield from _of_mutating_one(each)


def _of_mutating_one(policy: MutatingPolicy) -> Iterator[Demand]:
    spec = policy.spec
    targets = spec.target_match_constraints
    if spec.evaluation.admission:
        yield from _of_constraints(spec.match_constraints, "spec.matchConstraints")
    if spec.evaluation.mutate_existing:
        constraints = spec.match_constraints if targets is None else targets.constraints
        path = "spec.matchConstraints" if targets is None else "spec.targetMatchConstraints"
        for verb in ("update", "list"):
            yield from _of_constraints(constraints, path, verb=verb)


def _of_constraints(constraints: MatchConstraints | None, path: str, *, verb: str = "") -> Iterator[Demand]:
    """Yield the permissions for resource rules: of their operations, or of one verb."""
    for rule in constraints.resource_rules if constraints is not None else ():
        if rule.scope == "Cluster":  # a namespaced policy never matches it
            continue
        verbs = (verb,) if verb else tuple(_verbs(rule.operations))
        places = [(group, *place) for group in rule.api_groups for each in rule.resources for place in _places_of(each)]
        for each in verbs:
            names = () if each in ("create", "list") else rule.resource_names
            for group, resource, subresource in places:
                for name in names or ("",):
                    yield Demand(each, group, resource, subresource, name, path)


def _places_of(written: str) -> Iterator[tuple[str, str]]:
    """Yield resource and subresource of an entry; one for all subresources includes the object itself."""
    resource, _, subresource = written.partition("/")
    yield resource, subresource
    if subresource == "*":  # guard: all subresources are the object, too
        yield resource, ""


def _verbs(operations: Iterable[str]) -> Iterator[str]:
    """Return the verbs of operations, once each."""
    written = tuple(operations)
    verbs = (verb for operation, verb in _OPERATIONS.items() if operation in written or "*" in written)
    return iter(dict.fromkeys(verbs))
