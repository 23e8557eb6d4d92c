"""Admission policies with their bindings, compiled when one of them changes.

Each binding is compiled by itself, so that the server can evaluate it once or again without the others. This module
must never judge a request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from kubesandbox.admission.matching import is_namespace_selected, is_object_selected, matched_type
from kubesandbox.attributes import Attributes
from kubesandbox.parsing.requests import go_quote
from kubesandbox.types.resources import ResourceTable, ResourceType
from kubesandbox.view import ClusterView
from pyverno.engine.cel.constraints import ConstraintMatcher
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.status import internal_error
from pyverno.kube.yaml.documents import Document
from pyverno.value import dataclass, replace

if TYPE_CHECKING:
    # the engine and the language are imported when the first policy is bound; most servers have none
    from pyverno.engine.policyset import PolicySet
    from pyverno.engine.rule import CompiledPolicy, CompiledRule

__all__ = ["Bound", "BoundPolicies", "BoundPolicy"]

_GROUP: Final = "admissionregistration.k8s.io"
_EVERYTHING = ConstraintMatcher()


@dataclass(frozen=True, slots=True)
class Bound:
    """One binding: its name, its own match, the actions of its denials, and the policy to run.

    `params` is the kind of the policy's parameters.
    """

    name: str
    matcher: ConstraintMatcher | None
    actions: tuple[str, ...]
    policies: PolicySet
    params: GVK | None = None

    def is_about(self, attributes: Attributes, cluster: ClusterView) -> bool:
        """Return whether the binding matches a request that its policy matches; raises StatusError 404."""
        return self.matcher is None or matching_type(self.matcher, attributes, cluster) is not None


@dataclass(frozen=True, slots=True)
class BoundPolicy:
    """One policy with bindings; `body` is the stored policy."""

    name: str
    body: JSONObject
    matcher: ConstraintMatcher
    bindings: tuple[Bound, ...]

    @property
    def ignores_errors(self) -> bool:
        """Return whether errors deny nothing."""
        return bool((self.body.get("spec") or {}).get("failurePolicy") == "Ignore")

    @property
    def reinvokes(self) -> bool:
        """Return whether the policy runs again after others have changed the object."""
        return bool((self.body.get("spec") or {}).get("reinvocationPolicy") == "IfNeeded")

    def unserved_params(self, cluster: ClusterView) -> GVK | None:
        """Return the kind of the parameters if the server does not serve it."""
        kind = next((binding.params for binding in self.bindings), None)
        return None if kind is None or cluster.table.by_kind(kind) is not None else kind

    def matching_type(self, attributes: Attributes, cluster: ClusterView) -> ResourceType | None:
        """Return the type in whose version the policy sees a request, None if it does not match; raises 404."""
        return matching_type(self.matcher, attributes, cluster)


def matching_type(matcher: ConstraintMatcher, attributes: Attributes, cluster: ClusterView) -> ResourceType | None:
    """Return the type through which constraints match a request, None when they do not; raises StatusError 404."""
    type, table = attributes.type, cluster.table
    if (type.group, type.plural) in matcher.never:
        return None
    if not is_namespace_selected(matcher.namespace_selector, attributes, cluster):
        return None
    if not is_object_selected(matcher.object_selector, attributes):
        return None
    if matched_type(matcher.excludes, attributes, table, is_equivalent=matcher.is_equivalent) is not None:
        return None
    if not matcher.rules:
        return type
    return matched_type(matcher.rules, attributes, table, is_equivalent=matcher.is_equivalent)


class BoundPolicies:
    """The policies of one kind, `validatingadmission` or `mutatingadmission`, in order of their names."""

    def __init__(self, kind: str, cluster: ClusterView) -> None:
        """Take where policies and bindings are."""
        self._resources = (f"{kind}policies.{_GROUP}", f"{kind}policybindings.{_GROUP}")
        self._cluster = cluster
        self._made_at: tuple[int, ...] = ()
        self._policies: tuple[BoundPolicy, ...] = ()
        self._table: ResourceTable | None = None
        self._about: dict[tuple[object, ...], tuple[BoundPolicy, ...]] = {}

    def current(self) -> tuple[BoundPolicy, ...]:
        """Return the policies with bindings; changed ones are compiled again."""
        revisions = tuple(map(self._cluster.changed_at, self._resources))
        if revisions != self._made_at:
            self._policies = tuple(self._compile())
            self._made_at = revisions
            self._about = {}
        return self._policies

    def about(self, attributes: Attributes) -> tuple[BoundPolicy, ...]:
        """Return the policies whose rules may match a request, with names and selectors left unchecked."""
        policies, table = self.current(), self._cluster.table
        if not policies:
            return ()
        if table is not self._table:
            self._table, self._about = table, {}
        key = (attributes.type, attributes.subresource, attributes.operation, bool(attributes.namespace))
        found = self._about.get(key)
        if found is None:
            found = self._about[key] = tuple(policy for policy in policies if _may_be_about(policy, attributes, table))
        return found

    def _compile(self) -> Iterator[BoundPolicy]:
        policies, bindings = ([stored.body for stored in self._cluster.all(resource)] for resource in self._resources)
        by_policy: dict[str, list[JSONObject]] = {}
        for body in bindings:
            by_policy.setdefault(str((body.get("spec") or {}).get("policyName") or ""), []).append(body)
        for body in policies:
            bound = by_policy.get(body["metadata"]["name"])
            if bound:
                yield _bind(body, bound)


def _may_be_about(policy: BoundPolicy, attributes: Attributes, table: ResourceTable) -> bool:
    matcher, type = policy.matcher, attributes.type
    if (type.group, type.plural) in matcher.never:
        return False
    rules = [replace(rule, names=frozenset()) for rule in matcher.rules]
    is_equivalent = matcher.is_equivalent
    return not rules or matched_type(rules, attributes, table, is_equivalent=is_equivalent) is not None


def _bind(body: JSONObject, bindings: Sequence[JSONObject]) -> BoundPolicy:
    from pyverno.compiler.compile import compile_documents

    found = [compile_documents((Document(body), Document(binding))).items[0].policy for binding in bindings]
    matcher = next((each.rules[0].matcher for each in found if each is not None), _EVERYTHING)
    assert isinstance(matcher, ConstraintMatcher)  # noqa: S101  # admission policies have no other
    pairs = zip(bindings, found, strict=True)
    return BoundPolicy(
        body["metadata"]["name"], body, matcher, tuple(_binding(binding, policy, body) for binding, policy in pairs)
    )


def _binding(body: JSONObject, policy: CompiledPolicy | None, written: JSONObject) -> Bound:
    from pyverno.engine.policyset import PolicySet

    if policy is None:
        # the store holds valid policies only; an invalid one must not be skipped
        raise internal_error(f"the admission policy {go_quote(written['metadata']['name'])} cannot be read")
    rule, matcher = _alone(policy.rules[0])
    actions = tuple(map(str, (body.get("spec") or {}).get("validationActions") or ()))
    kind = (written.get("spec") or {}).get("paramKind")
    params = GVK(*parse_api_version(str(kind.get("apiVersion") or "")), str(kind.get("kind") or "")) if kind else None
    # a policy that does not compile is kept: its error is judged by failurePolicy
    return Bound(body["metadata"]["name"], matcher, actions, PolicySet((replace(policy, rules=(rule,)),)), params)


def _alone(rule: CompiledRule) -> tuple[CompiledRule, ConstraintMatcher | None]:
    """Return a rule without a match of its own, and the match of its only binding."""
    from pyverno.engine.actions.cel.admission import AdmissionMutation, AdmissionValidation

    action, matcher, fast_tier = rule.action, None, None
    if isinstance(action, AdmissionMutation | AdmissionValidation):
        (binding,) = action.bindings
        matcher = binding.matcher
        action = replace(action, bindings=(replace(binding, matcher=None),), reports_all=True)
    if isinstance(action, AdmissionValidation):
        # the fast tier can only decide that everything passes
        fast_tier = cache(partial(action.fast_tier, rule.info, rule.failure_action))
    return replace(rule, matcher=_EVERYTHING, action=action, fast_tier=fast_tier), matcher
