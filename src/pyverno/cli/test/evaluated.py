"""Whether Kyverno's command line evaluates a policy for an object that none of its rules judged.

It tells two cases apart: a policy that was evaluated and had no result excludes the object, which passes every row; a
policy that was not evaluated is not found, which fails them. Most kinds written in CEL are not evaluated for objects
outside of their match constraints. (Kyverno: cmd/cli/kubectl-kyverno/processor)
"""

from __future__ import annotations

from pyverno.compiler.compile import Compiled
from pyverno.engine.result import RuleType
from pyverno.policy.cel.admissionpolicy import MutatingAdmissionPolicy
from pyverno.policy.cel.blocks import EvaluationMode
from pyverno.policy.cel.constraints import MatchConstraints
from pyverno.policy.cel.imagepolicy import ImageValidatingPolicy
from pyverno.policy.cel.policies import DeletingPolicy, GeneratingPolicy, MutatingPolicy, ValidatingPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy

__all__ = ["is_evaluated"]


def is_evaluated(item: Compiled, *, is_payload: bool) -> bool:
    """Return whether a policy without a result counts as evaluated; `is_payload` tells a payload from a resource."""
    match item.written:
        case ClusterPolicy():
            rules = item.policy.rules if item.policy is not None else ()
            return any(rule.info.type is not RuleType.GENERATION for rule in rules)
        case ValidatingPolicy() as written:
            mode = written.spec.evaluation.mode
            if mode is EvaluationMode.JSON:
                return is_payload
            return mode is EvaluationMode.KUBERNETES and not is_payload and _restricts(written.spec.match_constraints)
        case MutatingPolicy() as written:
            return not is_payload and _restricts(written.spec.match_constraints)
        case ImageValidatingPolicy():
            return is_payload
        case GeneratingPolicy() | DeletingPolicy() | MutatingAdmissionPolicy():
            return False
    return True


def _restricts(constraints: MatchConstraints | None) -> bool:
    """Return whether constraints are more than one rule for resources: their policies are evaluated for any object."""
    if constraints is None or len(constraints.resource_rules) != 1:
        return True
    return bool(
        constraints.resource_rules[0].resource_names
        or constraints.exclude_resource_rules
        or constraints.namespace_selector
        or constraints.object_selector
    )
