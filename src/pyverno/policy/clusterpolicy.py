"""ClusterPolicy and Policy, as written (`kyverno.io/v1`, `v2beta1`).

Both kinds are one dataclass: a Policy has a namespace. This module must not compile or expand anything.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.document import PolicyDocument, policy_record
from pyverno.policy.failureaction import FAILURE_ACTION, OVERRIDE, FailureAction, FailureActionOverride
from pyverno.policy.rule import RULE, RULE_V2BETA1, Rule
from pyverno.policy.schema import Cursor, Field, Problems, Record, boolean, choice, integer, list_of
from pyverno.policy.validate import CEL_CONDITION, NamedExpression
from pyverno.value import dataclass, field

__all__ = [
    "CLUSTER_POLICY",
    "CLUSTER_POLICY_V2BETA1",
    "ApplyRules",
    "ClusterPolicy",
    "FailurePolicy",
    "Spec",
    "WebhookConfiguration",
    "decode_rule",
]


class FailurePolicy(StrEnum):
    """The verdict on a request when a rule or the webhook has an error."""

    IGNORE = "Ignore"
    FAIL = "Fail"


class ApplyRules(StrEnum):
    """Whether all rules run, or only up to the first that passes or fails."""

    ALL = "All"
    ONE = "One"


@dataclass(frozen=True, slots=True)
class WebhookConfiguration:
    """Settings of the policy's webhook; None means not written."""

    failure_policy: FailurePolicy | None = None
    timeout_seconds: int | None = None
    match_conditions: tuple[NamedExpression, ...] = ()


@dataclass(frozen=True, slots=True)
class Spec:
    """The spec of a policy, deprecated aliases already resolved."""

    rules: tuple[Rule, ...] = ()
    apply_rules: ApplyRules = ApplyRules.ALL
    admission: bool = True
    background: bool = True
    emit_warning: bool = False
    failure_policy: FailurePolicy = FailurePolicy.FAIL
    failure_action: FailureAction = FailureAction.AUDIT
    failure_action_overrides: tuple[FailureActionOverride, ...] = ()
    webhook: WebhookConfiguration = field(default_factory=WebhookConfiguration)
    webhook_timeout_seconds: int | None = None
    use_server_side_apply: bool = False
    generate_existing: bool = False
    mutate_existing_on_policy_update: bool = False
    raw: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPolicy(PolicyDocument):
    """A ClusterPolicy, or with a namespace a Policy; `document` locates everything in it.

    `expanded` are the rules with their autogen copies, once the policy is compiled.
    """

    spec: Spec = field(default_factory=Spec)
    expanded: tuple[Rule, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def is_namespaced(self) -> bool:
        """Return whether this is a Policy, which sees its own namespace only."""
        return self.kind == "Policy"

    @property
    def key(self) -> str:
        """Return the name that exceptions and reports use: `name`, or `namespace/name` for a Policy."""
        return f"{self.namespace}/{self.name}" if self.is_namespaced and self.namespace else self.name


def _spec(
    *,
    old_failure_policy: FailurePolicy | None = None,
    generate_existing: bool = False,
    generate_existing_on_policy_update: bool = False,
    schema_validation: bool = False,
    webhook: WebhookConfiguration | None = None,
    **values: Any,
) -> Spec:
    configuration = webhook or WebhookConfiguration()
    chosen = configuration.failure_policy or old_failure_policy or FailurePolicy.FAIL
    if configuration.timeout_seconds is None and values.get("webhook_timeout_seconds") is not None:
        configuration = WebhookConfiguration(
            configuration.failure_policy, values["webhook_timeout_seconds"], configuration.match_conditions
        )
    return Spec(
        failure_policy=chosen,
        generate_existing=generate_existing or generate_existing_on_policy_update,
        webhook=configuration,
        **values,
    )


_WEBHOOK = Record(
    WebhookConfiguration,
    Field("failure_policy", choice(FailurePolicy)),
    Field("timeout_seconds", integer),
    Field("match_conditions", list_of(CEL_CONDITION)),
)

SPEC = Record(
    _spec,
    Field("rules", list_of(RULE)),
    Field("apply_rules", choice(ApplyRules)),
    Field("admission", boolean),
    Field("background", boolean),
    Field("emit_warning", boolean),
    Field("old_failure_policy", choice(FailurePolicy), json="failurePolicy"),
    Field("failure_action", FAILURE_ACTION, json="validationFailureAction"),
    Field("failure_action_overrides", list_of(OVERRIDE), json="validationFailureActionOverrides"),
    Field("webhook", _WEBHOOK, json="webhookConfiguration"),
    Field("webhook_timeout_seconds", integer),
    Field("use_server_side_apply", boolean),
    Field("generate_existing", boolean),
    # Kyverno 1.19 rejects this one; older policies still have it.
    Field("generate_existing_on_policy_update", boolean, deprecated="use `generate.generateExisting` of the rule"),
    Field("mutate_existing_on_policy_update", boolean),
    Field("schema_validation", boolean),
    extras=("raw",),
)

CLUSTER_POLICY = policy_record(ClusterPolicy, SPEC)
CLUSTER_POLICY_V2BETA1 = policy_record(ClusterPolicy, SPEC.replacing(Field("rules", list_of(RULE_V2BETA1))))


def decode_rule(raw: JSONObject, *, policy: ClusterPolicy, path: Path) -> Rule | None:
    """Decode one rule that was not written but made from another one, as autogen does.

    `path` is the place of the origin, which the copy and its problems point at; None when it is not a rule.
    """
    cursor = Cursor(Problems(policy.document), path)
    rule: Rule | None = RULE(raw, cursor)
    return rule
