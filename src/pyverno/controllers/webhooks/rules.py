"""The requests that the API server must send for a policy: the `rules` of webhook configurations.

Rules are sets of single entries, one operation on one resource each, so that those of several policies can be united,
reduced and written in one order. (Kyverno: pkg/controllers/webhook)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyverno.compiler.autogen.patterns import expand
from pyverno.controllers.state.targets import served_targets
from pyverno.kube.json import JSONObject, encode
from pyverno.kube.kinds import KindTable
from pyverno.policy.cel.constraints import ResourceRule
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.generate import Generate, GeneratePattern
from pyverno.policy.match import MatchBlocks, ResourceFilter
from pyverno.policy.mutate import Mutate
from pyverno.policy.rule import Rule, VerifyImages
from pyverno.policy.subresources import EPHEMERAL_CONTAINERS, pod_subresources_of
from pyverno.policy.validate import Validate
from pyverno.value import replace
from pyverno.webhook.routes import WebhookType

__all__ = [
    "Entry",
    "constraint_rules",
    "legacy_entries",
    "sorted_rules",
    "unite",
    "webhook_types",
    "write_rules",
]

ALL_OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_DEFAULT_OPERATIONS = {WebhookType.VALIDATE: ALL_OPERATIONS, WebhookType.MUTATE: ("CREATE", "UPDATE")}
_DOWNSTREAM_OPERATIONS = ("CREATE", "UPDATE", "DELETE")


class Entry(NamedTuple):
    """One operation on one resource: `resource` is a plural name or `*`, `subresource` a name, `*` or ""."""

    group: str
    version: str
    resource: str
    subresource: str
    scope: str
    operation: str

    def covers(self, other: Entry) -> bool:
        """Return whether this entry matches every request that the other one matches."""
        return (
            self.operation == other.operation
            and self.scope in ("*", other.scope)
            and self.group in ("*", other.group)
            and self.version in ("*", other.version)
            and self.resource in ("*", other.resource)
            and (self.subresource == other.subresource or (self.subresource == "*" and self._takes_main(other)))
        )

    def _takes_main(self, other: Entry) -> bool:
        # Kubernetes: `*/*` matches resources and subresources, `pods/*` the subresources of pods only
        return bool(other.subresource) or self.resource == "*"


def webhook_types(rule: Rule) -> tuple[WebhookType, ...]:
    """Return the webhooks that run a rule; rules that generate need all webhooks of their policy."""
    match rule.action:
        case Generate():
            return (WebhookType.VALIDATE,)
        case Mutate(targets=targets):
            return (WebhookType.VALIDATE,) if targets else (WebhookType.MUTATE,)
        case VerifyImages():
            return (WebhookType.MUTATE, WebhookType.VALIDATE)
        case Validate(manifests=manifests):
            return (WebhookType.MUTATE, WebhookType.VALIDATE) if manifests is not None else (WebhookType.VALIDATE,)


def legacy_entries(policy: ClusterPolicy, webhook_type: WebhookType, kinds: KindTable) -> frozenset[Entry]:
    """Return the entries of a ClusterPolicy or Policy for a type of webhook, copies for pod controllers included.

    A kind without a version gives entries for every served version; kinds that the cluster does not serve give none.
    """
    rules = expand(policy)
    if not any(webhook_type in webhook_types(rule) for rule in rules):
        return frozenset()
    found: set[Entry] = set()
    subresources: frozenset[str] = EPHEMERAL_CONTAINERS
    for rule in rules:
        if isinstance(rule.action, Generate):
            found.update(_match_entries(policy, rule, kinds, ALL_OPERATIONS))
            found.update(_downstream(policy, rule.action, kinds))
        elif webhook_type in webhook_types(rule):
            found.update(_match_entries(policy, rule, kinds, _DEFAULT_OPERATIONS[webhook_type]))
            subresources |= pod_subresources_of(rule)
    return _with_pod_subresources(found, subresources)


def _match_entries(policy: ClusterPolicy, rule: Rule, kinds: KindTable, default: Sequence[str]) -> Iterator[Entry]:
    for block in rule.match.blocks:
        operations = tuple(operation.value for operation in block.resources.operations) or default
        for text in block.resources.kinds:
            excluded = _excluded_operations(rule.exclude, text)
            yield from _entries(policy, text, kinds, [each for each in operations if each not in excluded])


def _excluded_operations(exclude: MatchBlocks | None, kind: str) -> frozenset[str]:
    """Return the operations that `exclude.any` takes away from a kind altogether."""
    found: set[str] = set()
    for block in exclude.any if exclude is not None else ():
        resources = block.resources
        if _is_about_kinds_only(block) and (not resources.kinds or kind in resources.kinds):
            found.update(operation.value for operation in resources.operations or ())
            if not resources.operations:
                found.update(ALL_OPERATIONS)
    return frozenset(found)


def _is_about_kinds_only(block: ResourceFilter) -> bool:
    bare = replace(block, resources=replace(block.resources, kinds=(), operations=()))
    return bare.is_empty and not block.is_empty


def _downstream(policy: ClusterPolicy, generate: Generate, kinds: KindTable) -> Iterator[Entry]:
    patterns = (generate.pattern, *(each.pattern for each in generate.foreach or ()))
    for text in dict.fromkeys(kind for pattern in patterns for kind in _generated_kinds(pattern)):
        yield from _entries(policy, text, kinds, _DOWNSTREAM_OPERATIONS)


def _generated_kinds(pattern: GeneratePattern) -> Iterator[str]:
    if pattern.kind and "{{" not in pattern.kind:
        yield f"{pattern.api_version}/{pattern.kind}" if pattern.api_version else pattern.kind
    yield from pattern.clone_list.kinds or ()


def _entries(policy: ClusterPolicy, text: str, kinds: KindTable, operations: Iterable[str]) -> Iterator[Entry]:
    wanted = tuple(operations)
    # Kyverno: one rule for each served version, so that a policy sees objects in the version they were sent in
    for target in served_targets(text, kinds):
        is_namespaced = policy.is_namespaced if target.is_namespaced is None else target.is_namespaced
        scope = "Namespaced" if is_namespaced else "*"
        for operation in wanted:
            yield Entry(target.group, target.version, target.resource, target.subresource, scope, operation)


def _with_pod_subresources(entries: Iterable[Entry], subresources: Iterable[str]) -> frozenset[Entry]:
    found = set(entries)
    for entry in tuple(found):
        is_pod = entry.group in ("", "*") and entry.version in ("v1", "*") and entry.resource in ("pods", "*")
        if is_pod and not entry.subresource:
            found.update(entry._replace(resource="pods", subresource=name) for name in subresources)
    return frozenset(found)


def unite(entries: Iterable[Entry]) -> frozenset[Entry]:
    """Return the entries without those that another one covers."""
    found = set(entries)
    wide = [entry for entry in found if "*" in entry[:5]]
    return frozenset(entry for entry in found if not any(other != entry and other.covers(entry) for other in wide))


def write_rules(entries: Iterable[Entry]) -> list[JSONObject]:
    """Write entries as the `rules` of a webhook: one for each group, version, scope and set of operations, in order.

    >>> pods = [Entry("", "v1", "pods", "", "Namespaced", name) for name in ("UPDATE", "CREATE")]
    >>> write_rules(pods)[0]["operations"], write_rules(pods)[0]["resources"]
    (['CREATE', 'UPDATE'], ['pods'])
    """
    operations: dict[tuple[str, str, str, str], set[str]] = {}
    for entry in unite(entries):
        name = f"{entry.resource}/{entry.subresource}" if entry.subresource else entry.resource
        operations.setdefault((entry.group, entry.version, entry.scope, name), set()).add(entry.operation)
    grouped: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = {}
    for (group, version, scope, name), asked in operations.items():
        grouped.setdefault((group, version, scope, tuple(sorted(asked))), []).append(name)
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": list(asked),
            "resources": sorted(names),
            "scope": scope,
        }
        for (group, version, scope, asked), names in grouped.items()
    ]
    return sorted(rules, key=_order)


def sorted_rules(rules: Iterable[JSONObject]) -> tuple[JSONObject, ...]:
    """Return rules without repetitions, their lists and themselves in order."""
    ordered = [
        {key: sorted(value) if isinstance(value, list) else value for key, value in rule.items()} for rule in rules
    ]
    return tuple(sorted({encode(rule): rule for rule in ordered}.values(), key=_order))


def _order(rule: JSONObject) -> tuple[object, ...]:
    lists = ("apiGroups", "apiVersions", "resources", "operations")
    return (*((len(rule[name]), rule[name]) for name in lists), rule.get("scope", ""))


def constraint_rules(rules: Iterable[ResourceRule], operations: Sequence[str] = ()) -> list[JSONObject]:
    """Write the resource rules of a CEL policy for a webhook: names and excluded resources are left to the policy.

    `operations` replaces those of the rules, for kinds that must see everything.
    """
    return [
        {
            "apiGroups": list(rule.api_groups),
            "apiVersions": list(rule.api_versions),
            "operations": list(operations or rule.operations),
            "resources": list(rule.resources),
            **({"scope": rule.scope} if rule.scope else {}),
        }
        for rule in rules
    ]
