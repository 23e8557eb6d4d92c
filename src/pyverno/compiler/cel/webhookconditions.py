"""Match conditions that an API server evaluates before it calls a webhook: those of CEL policies, and of rule policies.

They are only a sieve before the engine, which evaluates all conditions again. (Kyverno:
pkg/controllers/webhook/match_conditions.go, pkg/cel/autogen/match.go)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyverno.compiler.autogen.cel import copies_of, guarded_conditions, is_about_pods
from pyverno.compiler.cel.environment import CelCompiler
from pyverno.compiler.parser import Parser
from pyverno.engine.cel.matchconditions import MatchConditions
from pyverno.kube.labelsyntax import label_key_problems
from pyverno.kube.yaml.documents import Document
from pyverno.lang.cel import types
from pyverno.lang.cel.libraries.authorizer import AUTHORIZER_NAMES
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.policy.cel.copies import Target
from pyverno.policy.cel.policies import CelPolicy, GeneratingPolicy
from pyverno.policy.validate import NamedExpression
from pyverno.value import replace

__all__ = ["lower_webhook_conditions", "webhook_conditions"]

_POD = Target("", "v1", "pods", "Pod")
_WITHOUT_OBJECT = frozenset({"DELETE", "CONNECT", "*"})


def lower_webhook_conditions(written: Sequence[NamedExpression], parser: Parser) -> MatchConditions:
    """Compile `webhookConfiguration.matchConditions` of a ClusterPolicy or Policy for the engine."""
    compiler = CelCompiler(kubernetes_environment(), parser, names=AUTHORIZER_NAMES)
    return MatchConditions(compiler.conditions(written))


def webhook_conditions(policy: CelPolicy) -> tuple[NamedExpression, ...] | None:
    """Return the conditions for the policy's own webhook; None when an API server cannot evaluate one of them.

    It cannot evaluate the policy's variables or functions of Kyverno. Conditions on `namespaceObject`, which webhooks
    do not have, are left out. A policy that matches Pods has each condition once for every set of kinds.
    """
    written = policy.spec.match_conditions
    own = _judged_there(written)
    if own is None:
        return None
    if isinstance(policy, GeneratingPolicy) and policy.spec.evaluation.synchronize:
        # a trigger that stops to match must still be seen, because what it made goes then
        own = tuple(replace(each, expression=f"request.operation != 'CREATE' || ({each.expression})") for each in own)
    constraints = policy.spec.match_constraints
    if constraints is None or not is_about_pods(constraints):
        return own
    found = [*guarded_conditions(own, [_POD])]
    for copy in sorted(copies_of(policy), key=lambda each: each.name):
        found += guarded_conditions(
            _judged_there(copy.policy.spec.match_conditions) or (), copy.targets, config=copy.name
        )
    if any(label_key_problems(each.name) for each in found):
        return ()  # the names grew too long; the engine judges all of them anyway
    is_without = isinstance(policy, GeneratingPolicy) or _WITHOUT_OBJECT & {*constraints.resource_rules[0].operations}
    return tuple(_for_no_object(found)) if is_without else tuple(found)


def _judged_there(conditions: Iterable[NamedExpression]) -> tuple[NamedExpression, ...] | None:
    """Return the conditions that an API server can judge; None unless all compile there."""
    compiler = CelCompiler(kubernetes_environment(), Parser(Document({}, "")), names=AUTHORIZER_NAMES)
    found: list[NamedExpression] = []
    names: set[str] = set()
    for each in conditions:
        program = compiler.compile(each.expression.strip(), (*each.path, "expression"), expected=types.BOOL)
        if program is None or label_key_problems(each.name) or each.name in names:
            return None
        names.add(each.name)
        if "namespaceObject" not in program.variables:
            found.append(each)
    return tuple(found)


def _for_no_object(conditions: Iterable[NamedExpression]) -> Iterator[NamedExpression]:
    """Yield conditions that let pass what has no object: looking into it would be an error, which may deny."""
    for each in conditions:
        yield replace(each, expression=f"object == null || {each.expression}")
