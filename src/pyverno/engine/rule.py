"""The one small form that every policy kind is lowered to.

A `CompiledRule` has an identity (`RuleInfo`), the requests that it matches (`Matcher`), variables (`Binding`),
conditions (`Guard`) and an action (`Action`). Everything is parsed, expanded and immutable, and may be used by many
threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from pyverno.engine.broker import Broker
from pyverno.engine.match import Filter, IndexKey
from pyverno.engine.request import Request
from pyverno.engine.result import FailureAction, RuleResult, RuleType, Status, Verdict
from pyverno.engine.scope import Scope
from pyverno.errors import NOWHERE, Location
from pyverno.kube.json import JSON
from pyverno.kube.resource import Resource
from pyverno.lang.runtime import Runtime
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.podsecurity import Exclude

__all__ = [
    "UNMATCHED",
    "Action",
    "ActionOverride",
    "Binding",
    "CompiledPolicy",
    "CompiledRule",
    "Exemption",
    "Family",
    "FastTier",
    "FastVerdict",
    "Guard",
    "HasFastTier",
    "PassCheck",
    "PassCheckPart",
    "PolicyInfo",
    "RequestMatcher",
    "RuleInfo",
    "Run",
    "Stage",
]


class Stage(StrEnum):
    """The point of a review at which a rule runs; the phases of a front door consist of stages."""

    MUTATE = "mutate"
    MUTATE_EXISTING = "mutate existing"
    VERIFY_IMAGES = "verify images"
    VALIDATE = "validate"
    REQUIRE_IMAGES = "require images"
    GENERATE = "generate"
    CLEANUP = "cleanup"


class Family(StrEnum):
    """The families of policies that the engine tells apart; the compiler knows which kinds belong to which.

    `RULES` are policies of several rules (ClusterPolicy); `CEL` and `IMAGES` those of policies.kyverno.io; `CLEANUP`
    the legacy cleanup policies; `ADMISSION` the admission policies of Kubernetes itself.
    """

    RULES = "rules"
    CEL = "cel"
    IMAGES = "images"
    CLEANUP = "cleanup"
    ADMISSION = "admission"


@dataclass(frozen=True, slots=True)
class PolicyInfo:
    """The identity of a policy (kind, name, family, namespace), and the settings that judge its results.

    `failure_policy` is `Fail` or `Ignore`; `apply_one` stops after the first rule that passes or fails; `source` is the
    value of a report's `source`; `reads_payloads` means that JSON documents are judged too; `answers` names the kind of
    authorization requests (`Envoy`, `HTTP`) that are all it judges; `location` is where the policy was read.
    """

    kind: str
    api_version: str
    name: str
    family: Family
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    failure_policy: str = "Fail"
    apply_one: bool = False
    admission: bool = True
    background: bool = True
    emit_warning: bool = False
    source: str = "kyverno"
    reads_payloads: bool = False
    answers: str = ""
    location: Location = NOWHERE

    @property
    def key(self) -> str:
        """`name`, or `namespace/name` of a namespaced policy."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def is_scored(self) -> bool:
        """Return whether a fail counts as a fail (and not as a warning)."""
        return self.annotations.get("policies.kyverno.io/scored") != "false"


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """The identity of a rule.

    `origin` is the name of the rule that it was generated from for pod controllers, or "". `can_deny` states whether
    the rule is of those that a cluster runs within an admission request (its failure action, or one of its overrides,
    is Enforce), so that a denial lists it.
    """

    policy: PolicyInfo
    name: str
    type: RuleType
    location: Location = NOWHERE
    origin: str = ""
    can_deny: bool = False


@dataclass(frozen=True, slots=True)
class ActionOverride:
    """A failure action for some namespaces: compiled tests of name and labels (one with neither always fits)."""

    action: FailureAction
    namespaces: tuple[Callable[[str], bool], ...] = ()
    selector: Callable[[Mapping[str, str]], bool] | None = None

    def fits(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether the override applies in this namespace."""
        if self.namespaces and not any(test(namespace) for test in self.namespaces):
            return False
        return self.selector is None or self.selector(labels)


@dataclass(frozen=True, slots=True)
class Run:
    """One rule on one request: the inputs of guards, bindings and actions.

    `resource` is the object as changed by the rules before; `scope` holds the variables of the rule; `supplied` are
    values from the user of the CLI, which replace context entries that this Host cannot answer.
    """

    rule: CompiledRule
    request: Request
    scope: Scope
    broker: Broker
    runtime: Runtime
    supplied: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def resource(self) -> JSON:
        """The new object, or None on DELETE."""
        return self.request.object

    @property
    def is_delete(self) -> bool:
        """Return whether the variables of this request read `request.object` as `request.oldObject`."""
        return self.request.object is None and self.request.operation.value == "DELETE"

    def with_scope(self, scope: Scope) -> Run:
        """Return the same run with other variables."""
        return Run(self.rule, self.request, scope, self.broker, self.runtime, self.supplied)

    def with_request(self, request: Request, scope: Scope) -> Run:
        """Return the same run about another object."""
        return Run(self.rule, request, scope, self.broker, self.runtime, self.supplied)


FastVerdict = Callable[[JSON], Sequence[RuleResult] | None]
"""A rule as a function of the object; None, and any exception, means that the action must run."""

PassCheck = Callable[[JSON], bool]
"""A pass-check: True means that rules pass; anything else, and any exception, means nothing."""


@dataclass(frozen=True, slots=True)
class PassCheckPart:
    """The condition on the object for a rule to pass, in the rule's own language.

    `condition` is a pattern or a CEL claim; `fuse` makes one pass-check of several conditions of its language, or None.
    """

    condition: Hashable
    fuse: Callable[[Sequence[Any]], PassCheck | None]


@dataclass(frozen=True, slots=True)
class FastTier:
    """The fast tier of a rule: what the object alone decides when nothing but the action decides.

    `verdict` gives the results of the rule. `pass_check` is what must hold for the results `passed`, so that the
    pass-checks of several rules can be fused. `is_apart` keeps it from those of patterns and CEL: an object that such a
    check does not prove to pass often passes all of them.
    """

    verdict: FastVerdict | None = None
    pass_check: PassCheckPart | None = None
    passed: tuple[RuleResult, ...] = ()
    is_apart: bool = False


NO_FAST_TIER = FastTier()


@runtime_checkable
class HasFastTier(Protocol):
    """An action that knows its own fast tier."""

    def fast_tier(self, info: RuleInfo, failure_action: FailureAction) -> FastTier:
        """Return the fast tier of the action as part of a rule."""
        ...


class Binding(Protocol):
    """A context entry: extends a scope by one lazily computed variable."""

    @property
    def name(self) -> str:
        """The name that the entry binds."""
        ...

    def bind(self, run: Run) -> Scope:
        """Return the scope of the run with this entry added."""
        ...


UNMATCHED: Final = Verdict(Status.SKIP, "a match condition is false")
"""The return value of a guard if the policy does not match the request: the rule has no result."""


class Guard(Protocol):
    """A condition that must hold before the action runs; returns a verdict to stop with, or None to go on."""

    def check(self, run: Run) -> Verdict | None:
        """Judge the run; errors are raised, never returned as "does not hold"."""
        ...

    def surely_holds(self, key: IndexKey) -> bool:
        """Return whether the index key alone shows that the guard lets every such request through."""
        ...


class Exemption(Protocol):
    """The parts of a PolicyException that an action needs when it applies to the request."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        ...

    @property
    def pod_security(self) -> Sequence[Exclude]:
        """Extra excludes for podSecurity rules; empty = the whole rule is exempt."""
        ...

    @property
    def is_full(self) -> bool:
        """Return whether the whole rule is exempt."""
        ...

    @property
    def priority(self) -> int:
        """The rank among exceptions: the highest decides how an exempt policy is reported."""
        ...

    @property
    def reports_pass(self) -> bool:
        """Return whether an exempt policy is reported as pass (and not as skip)."""
        ...

    @property
    def allowances(self) -> Mapping[str, JSON]:
        """The variable `exceptions` of CEL expressions: allowedImages, allowedValues."""
        ...

    @property
    def policy_names(self) -> Collection[str]:
        """The names or keys of the policies that the exception refers to; `names_rule` decides about their rules."""
        ...

    def names_rule(self, info: RuleInfo) -> bool:
        """Return whether the exception refers to a rule."""
        ...

    def applies(self, run: Run, resource: Resource) -> bool:
        """Return whether the exception matches this request."""
        ...


class RequestMatcher(Protocol):
    """Selects requests: compiled match and exclude blocks, or compiled matchConstraints."""

    @property
    def blocks(self) -> tuple[Filter, ...]:
        """All match blocks, none where constraints select."""
        ...

    @property
    def policy_namespace(self) -> str:
        """The namespace that the policy is confined to, or ""."""
        ...

    def may_match(self, key: IndexKey) -> bool:
        """Return, from the index key alone, whether some request with that key could match."""
        ...

    def surely_matches(self, key: IndexKey) -> bool:
        """Return, from the index key alone, whether every request with that key matches."""
        ...

    def names_operation(self, operation: str) -> bool:
        """Return whether a block or rule lists an operation by name, as opposed to matching every one."""
        ...

    def mismatch(self, request: Request, resource: Resource) -> str | None:
        """Return in words why the request is not matched, or None when it is."""
        ...


class Action(Protocol):
    """The action of a rule. Returns its verdicts: none (no result), one, or one per target."""

    def run(self, run: Run) -> Sequence[Verdict]:
        """Do the rule's work; an expected failure is a verdict, a raised PyvernoError becomes an ERROR result."""
        ...

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Judge the run when exceptions apply to it (at least one); None = they change nothing."""
        ...


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """One rule, ready to run.

    `failure_action` holds unless one of `overrides` fits. `checks_existing` allows updates of objects that failed
    before (allowExistingViolations); where the rule `misses_scale`, through which the violation may have come, it
    allows no update of the replicas. `mutates_existing`: it changes existing objects, because of a request and after
    it. `fast_tier` makes the fast tier of the action, when it may have one; it is called only for rules that match
    requests, so that other rules cost nothing.
    """

    info: RuleInfo
    stage: Stage
    matcher: RequestMatcher
    action: Action
    bindings: tuple[Binding, ...] = ()
    guards: tuple[Guard, ...] = ()
    failure_action: FailureAction = FailureAction.AUDIT
    overrides: tuple[ActionOverride, ...] = ()
    checks_existing: bool = False
    misses_scale: bool = False
    mutates_existing: bool = False
    skips_background_requests: bool = True
    report_properties: Callable[[Run, Verdict], Mapping[str, str]] | None = None
    fast_tier: Callable[[], FastTier] | None = None

    def action_for(self, namespace: str, labels: Mapping[str, str] | None) -> FailureAction:
        """Return the failure action that holds in a namespace."""
        for override in self.overrides:
            if override.fits(namespace, labels or {}):
                return override.action
        return self.failure_action

    def may_match(self, key: IndexKey) -> bool:
        """Return, from the index key alone, whether the rule could match such a request."""
        return self.matcher.may_match(key)


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A policy as the engine sees it: its identity and its rules, autogen copies included.

    `warnings` are for its author.
    """

    info: PolicyInfo
    rules: tuple[CompiledRule, ...]
    warnings: tuple[str, ...] = ()
