"""An expression in CEL reads a field that no matched object has.

`object.spec.replica` ends with an error for every Deployment, and with `has(...)` or `.?` it is never there. The
expressions are compared with Kubernetes' schemas of all versions, and with the definitions that `--crd` gives, for all
kinds that the policy names without wildcards.

Example::

    validations:
    - expression: object.spec.replica > 1

Write instead::

    validations:
    - expression: object.spec.replicas > 1
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.fieldaccess import Access, FieldReader, Types
from pyverno.compiler.lints.lint import Problem, Subject, Workspace
from pyverno.kube.gvk import GVK
from pyverno.policy.cel.admissionpolicy import MutatingAdmissionPolicy, ValidatingAdmissionPolicy
from pyverno.policy.cel.blocks import EvaluationMode, Expression, named_expressions, validation_expressions
from pyverno.policy.cel.policies import CelPolicy, MutatingPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.validate import NamedExpression, Validate
from pyverno.spelling import did_you_mean

__all__ = ["check"]


def check(subject: Subject, workspace: Workspace) -> Iterator[Problem]:
    """Yield the fields that expressions read and no matched object has."""
    table = workspace.fields()
    for expression, access, kinds in _accesses(subject, workspace):
        names = {name for parent in access.parents for name in table.names(parent)}
        text = f"{', '.join(kinds)} {'has' if len(kinds) == 1 else 'have'} no field `{access.name}` here"
        yield Problem(expression.path, text + did_you_mean(access.name, names), access.offset)


def _accesses(subject: Subject, workspace: Workspace) -> Iterator[tuple[Expression, Access, tuple[str, ...]]]:
    for kinds, variables, expressions in _blocks(subject, workspace):
        table = workspace.fields()
        found = [table.type_of(gvk) for gvk in kinds]
        types: Types = frozenset(each for each in found if each is not None)
        if not types or None in found:
            continue
        names = tuple(dict.fromkeys(gvk.kind for gvk in kinds))
        reader = FieldReader(table, types)
        for variable in variables:
            reader.declare(variable.name, variable.expression)
        for expression in expressions:
            for access in reader.unknown(expression.text):
                yield expression, access, names


Block = tuple[tuple[GVK, ...], tuple[NamedExpression, ...], tuple[Expression, ...]]


def _blocks(subject: Subject, workspace: Workspace) -> Iterator[Block]:
    from pyverno.compiler.cel.typechecking import kinds_to_check, matched_kinds  # loaded with the policies in CEL

    match subject.written:
        case ClusterPolicy() as policy:
            for rule in policy.spec.rules:
                if isinstance(rule.action, Validate) and rule.action.cel is not None:
                    cel = rule.action.cel
                    expressions = (
                        *named_expressions(rule.cel_preconditions),
                        *named_expressions(cel.variables),
                        *validation_expressions(cel.expressions),
                    )
                    yield matched_kinds(rule.match.kinds(), workspace.kinds), cel.variables, expressions
        case CelPolicy() as policy:
            is_plain = policy.spec.evaluation.mode is EvaluationMode.KUBERNETES
            if is_plain and not (isinstance(policy, MutatingPolicy) and policy.spec.target_match_constraints):
                kinds = kinds_to_check(policy.spec.match_constraints, workspace.kinds)
                yield kinds, policy.spec.variables, tuple(policy.spec.expressions())
        case ValidatingAdmissionPolicy() | MutatingAdmissionPolicy() as policy:
            kinds = kinds_to_check(policy.spec.match_constraints, workspace.kinds)
            yield kinds, policy.spec.variables, tuple(policy.spec.expressions())
