"""Lowering of CleanupPolicy and ClusterCleanupPolicy: one rule that wants objects deleted."""

from __future__ import annotations

from pyverno.compiler.parser import Parser, lower_conditions
from pyverno.compiler.rules.context import data_names, lower_context
from pyverno.compiler.rules.matching import lower_matcher
from pyverno.engine.actions.delete import DeleteRule
from pyverno.engine.actions.unavailable import Unavailable
from pyverno.engine.result import RuleType
from pyverno.engine.rule import Action, CompiledPolicy, CompiledRule, Family, PolicyInfo, RuleInfo, Stage
from pyverno.errors import PolicyError
from pyverno.kube.yaml.fieldpath import locate
from pyverno.policy.cleanup import CleanupPolicy

__all__ = ["lower_cleanup_policy"]


def lower_cleanup_policy(policy: CleanupPolicy) -> tuple[CompiledPolicy, tuple[PolicyError, ...]]:
    """Compile a cleanup policy; returns it with everything that does not parse."""
    parser = Parser(policy.document)
    spec = policy.spec
    location = locate(policy.document, ("metadata", "name"))
    info = PolicyInfo(
        kind=policy.kind,
        api_version=policy.api_version,
        name=policy.name,
        family=Family.CLEANUP,
        namespace=(policy.namespace or "default") if policy.is_namespaced else "",
        labels=policy.labels,
        annotations=policy.annotations,
        location=location,
    )
    parser.data = data_names(spec.context)
    conditions = lower_conditions(spec.conditions, parser, ("spec", "conditions"))
    bindings = lower_context(spec.context, parser)
    propagation = spec.deletion_propagation_policy.value if spec.deletion_propagation_policy else ""
    action: Action = DeleteRule(conditions, propagation)
    if parser.errors:
        action = Unavailable("; ".join(str(error) for error in parser.errors))
    rule = CompiledRule(
        info=RuleInfo(info, policy.name, RuleType.DELETION, location),
        stage=Stage.CLEANUP,
        matcher=lower_matcher(
            spec.match, spec.exclude, policy_namespace=info.namespace, for_rule=False, pod_subresources=frozenset()
        ),
        action=action,
        bindings=bindings,
    )
    return CompiledPolicy(info, (rule,)), tuple(parser.errors)
