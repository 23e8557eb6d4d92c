"""A policy in CEL matches a resource that no API has.

`matchConstraints` name resources as URLs do: plural and in lower case. A policy for `Deployment` or `pod`, or for
`deployments` in the core group, matches no request. Reported are kinds, singular and short names in place of resources,
misspelt resources, and resources in groups that do not have them, where all groups of the rule are Kubernetes' own.

Example::

    resourceRules:
    - apiGroups: [apps]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [Deployment]

Write instead::

    resourceRules:
    - apiGroups: [apps]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [deployments]
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.lint import Edit, Problem, Subject, Workspace
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.cel.admissionpolicy import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from pyverno.policy.cel.constraints import MatchConstraints, ResourceRule
from pyverno.policy.cel.policies import CelPolicy, MutatingPolicy
from pyverno.spelling import nearest

__all__ = ["check", "constraints_of"]


def check(subject: Subject, workspace: Workspace) -> Iterator[Problem]:
    """Yield the resources of all rules that cannot exist."""
    for constraints in constraints_of(subject):
        for rule in (*constraints.resource_rules, *constraints.exclude_resource_rules):
            yield from _problems(rule, workspace.kinds)


def constraints_of(subject: Subject) -> Iterator[MatchConstraints]:
    """Yield the constraints of a policy in CEL, or of a binding."""
    match subject.written:
        case CelPolicy() as policy:
            if policy.spec.match_constraints is not None:
                yield policy.spec.match_constraints
            if isinstance(policy, MutatingPolicy) and policy.spec.target_match_constraints is not None:
                yield policy.spec.target_match_constraints.constraints
        case ValidatingAdmissionPolicy() | MutatingAdmissionPolicy() as policy:
            if policy.spec.match_constraints is not None:
                yield policy.spec.match_constraints
        case ValidatingAdmissionPolicyBinding() | MutatingAdmissionPolicyBinding() as binding:
            if binding.spec.match_resources is not None:
                yield binding.spec.match_resources


def _problems(rule: ResourceRule, kinds: KindTable) -> Iterator[Problem]:
    for index, written in enumerate(rule.resources):
        path = (*rule.path, "resources", index)
        name = written.partition("/")[0]
        if "*" in name or not name:
            continue
        served = [info for info in kinds.named(name) if info.plural == name]
        if not served:
            problem = _unknown(name, path, kinds)
            if problem is not None:
                yield problem
        elif rule.api_groups and not _has_group(served, rule.api_groups, kinds):
            groups = " or ".join(dict.fromkeys(f"`{info.group}`" if info.group else '`""`' for info in served))
            yield Problem(path, f"`{name}` is not in the API groups of this rule, but in {groups}")


def _unknown(name: str, path: Path, kinds: KindTable) -> Problem | None:
    named = kinds.named(name)
    plural = named[0].plural if named else nearest(name, {info.plural for info in kinds}, is_certain=True)
    if not plural:
        return None
    text = f"no API has the resource `{name}`: did you mean `{plural}`?"
    return Problem(path, text, edit=Edit(path, name, plural) if named else None)


def _has_group(served: list[KindInfo], groups: tuple[str, ...], kinds: KindTable) -> bool:
    """Return whether a group of the rule serves the resource, or is one that we do not know."""
    known = {info.group for info in kinds}
    return any(group == "*" or group not in known or any(info.group == group for info in served) for group in groups)
