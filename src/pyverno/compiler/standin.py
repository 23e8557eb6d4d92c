"""Stand-ins for policies whose compilation ran into a bug: their rules are errors, so that no request passes unjudged.

A rule of a ClusterPolicy keeps its own match and exclude where these can be lowered; any other matches every
request of its phase, in the namespace of its policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyverno.compiler.rules.matching import lower_matcher
from pyverno.engine.actions.unavailable import Unavailable
from pyverno.engine.match import IndexKey, namespace_of
from pyverno.engine.result import FailureAction, RuleType
from pyverno.engine.rule import CompiledPolicy, CompiledRule, Family, PolicyInfo, RequestMatcher, RuleInfo, Stage
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.kinds import Family as KindFamily
from pyverno.policy.kinds import PolicyAction, PolicyKind
from pyverno.value import dataclass

if TYPE_CHECKING:
    from pyverno.engine.match import Filter
    from pyverno.engine.request import Request
    from pyverno.kube.resource import Resource
    from pyverno.policy.decode import AnyPolicy

__all__ = ["make_stand_in"]

_STAGES = {
    "validate": (Stage.VALIDATE, RuleType.VALIDATION),
    "mutate": (Stage.MUTATE, RuleType.MUTATION),
    "generate": (Stage.GENERATE, RuleType.GENERATION),
    "verifyImages": (Stage.VERIFY_IMAGES, RuleType.IMAGE_VERIFY),
}
_STAGES_OF_ACTIONS = {
    PolicyAction.VALIDATE: _STAGES["validate"],
    PolicyAction.MUTATE: _STAGES["mutate"],
    PolicyAction.GENERATE: _STAGES["generate"],
    PolicyAction.VERIFY_IMAGES: (Stage.VALIDATE, RuleType.IMAGE_VERIFY),
    PolicyAction.DELETE: (Stage.CLEANUP, RuleType.DELETION),
}
_FAMILIES = {
    KindFamily.RULES: Family.RULES,
    KindFamily.CLEANUP: Family.CLEANUP,
    KindFamily.CEL: Family.CEL,
    KindFamily.ADMISSION: Family.ADMISSION,
}


@dataclass(frozen=True, slots=True)
class _AnyRequest:
    """Matches every request, of one namespace where the policy is confined to it."""

    policy_namespace: str = ""

    @property
    def blocks(self) -> tuple[Filter, ...]:
        return ()

    def may_match(self, key: IndexKey) -> bool:
        return not self.policy_namespace or key.namespace == self.policy_namespace

    def surely_matches(self, _key: IndexKey) -> bool:
        return False

    def names_operation(self, _operation: str) -> bool:
        return False

    def mismatch(self, request: Request, resource: Resource) -> str | None:
        if not self.policy_namespace or namespace_of(request, resource) == self.policy_namespace:
            return None
        return f"the policy is confined to namespace {self.policy_namespace}"


def make_stand_in(document: Document, row: PolicyKind, written: AnyPolicy | None, text: str) -> CompiledPolicy | None:
    """Return a policy whose rules yield an error with this text; None for kinds without rules."""
    family = _FAMILIES.get(row.family)
    if family is None or row.binds:
        return None
    raw = _object(document.value)
    metadata, spec = _object(raw.get("metadata")), _object(raw.get("spec"))
    info = PolicyInfo(
        kind=row.kind,
        api_version=str(raw.get("apiVersion")),
        name=str(metadata.get("name")),
        family=Family.IMAGES if row.action is PolicyAction.VERIFY_IMAGES else family,
        namespace=str(metadata.get("namespace") or "default") if row.namespaced else "",
        failure_policy="Ignore" if spec.get("failurePolicy") == "Ignore" else "Fail",
        source=row.source,
        location=document.location(()),
    )
    if row.action is None:
        rules = tuple(_rules(info, spec, written, text))
    else:
        actions = spec.get("validationActions")
        denies = not isinstance(actions, list) or "Deny" in actions
        rules = (_rule(info, "", _STAGES_OF_ACTIONS[row.action], _AnyRequest(info.namespace), text, enforces=denies),)
    return CompiledPolicy(info, rules)


def _rules(info: PolicyInfo, spec: JSONObject, written: AnyPolicy | None, text: str) -> Iterator[CompiledRule]:
    listed = spec.get("rules")
    matchers = _matchers(written, info.namespace)
    for index, rule in enumerate(map(_object, listed if isinstance(listed, list) else [{}])):
        word = next((each for each in _STAGES if each in rule), "validate")
        does = _STAGES[word]
        if _object(rule.get("mutate")).get("targets"):
            does = (Stage.MUTATE_EXISTING, RuleType.MUTATION)
        actions = (spec.get("validationFailureAction"), _object(rule.get(word)).get("failureAction"))
        enforces = any(str(action).lower() == "enforce" for action in actions)
        matcher = matchers[index] if index < len(matchers) else _AnyRequest(info.namespace)
        yield _rule(info, str(rule.get("name") or ""), does, matcher, text, enforces=enforces)


def _matchers(written: AnyPolicy | None, namespace: str) -> Sequence[RequestMatcher]:
    """Return the kinds that the rules of a policy match, as far as they can be read."""
    if not isinstance(written, ClusterPolicy):
        return ()
    try:
        return [lower_matcher(rule.match, rule.exclude, policy_namespace=namespace) for rule in written.spec.rules]
    except Exception:  # this is where the bug is: every request is meant then
        return ()


def _rule(
    info: PolicyInfo,
    name: str,
    does: tuple[Stage, RuleType],
    matcher: RequestMatcher,
    text: str,
    *,
    enforces: bool,
) -> CompiledRule:
    stage, kind = does
    return CompiledRule(
        info=RuleInfo(info, name, kind, info.location, can_deny=enforces),
        stage=stage,
        matcher=matcher,
        action=Unavailable(text, ignores_delete=False),
        failure_action=FailureAction.ENFORCE if enforces else FailureAction.AUDIT,
        mutates_existing=stage is Stage.MUTATE_EXISTING,
    )


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}
