"""An exception or a binding names a policy, or a rule, that is not there.

An exception for a policy that does not exist exempts nothing, and a binding to one enforces nothing; both are accepted.
Reported where other policies of the same kind are among the files that are linted together: a file with exceptions
alone does not describe the policies.

Example::

    kind: PolicyException
    spec:
      exceptions:
      - policyName: require-label     # the policy is called require-labels
        ruleNames: [check-for-labels]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyverno.compiler.autogen.patterns import expand
from pyverno.compiler.lints.lint import Problem, Subject, Workspace
from pyverno.kube.wildcard import match as fits
from pyverno.policy.cel.admissionpolicy import MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBinding
from pyverno.policy.cel.exception import CelException
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.exception import PolicyException
from pyverno.spelling import did_you_mean

__all__ = ["check"]


def check(subject: Subject, workspace: Workspace) -> Iterator[Problem]:
    """Yield the references of an exception or a binding that name nothing."""
    match subject.written:
        case PolicyException() as exception:
            yield from _of_exception(exception, workspace)
        case CelException() as exception:
            for reference in exception.spec.policy_refs:
                known = _names(workspace, (reference.kind,))
                if known and reference.name not in known:
                    text = f"there is no {reference.kind} `{reference.name}` among the given policies"
                    yield Problem((*reference.path, "name"), text + did_you_mean(reference.name, known))
        case ValidatingAdmissionPolicyBinding() | MutatingAdmissionPolicyBinding() as binding:
            kind = binding.kind.removesuffix("Binding")
            known = _names(workspace, (kind,))
            name = binding.spec.policy_name
            if known and name not in known:
                text = f"there is no {kind} `{name}` among the given policies"
                yield Problem(("spec", "policyName"), text + did_you_mean(name, known))


def _names(workspace: Workspace, kinds: Iterable[str]) -> set[str]:
    return {each.written.name for each in workspace.subjects if each.written.kind in kinds}


def _of_exception(exception: PolicyException, workspace: Workspace) -> Iterator[Problem]:
    policies = {
        each.written.key: each.written for each in workspace.subjects if isinstance(each.written, ClusterPolicy)
    }
    if not policies:
        return
    for reference in exception.spec.exceptions:
        policy = policies.get(reference.policy_name)
        if policy is None:
            if "*" in reference.policy_name:
                continue
            text = f"there is no policy `{reference.policy_name}` among the given policies"
            yield Problem((*reference.path, "policyName"), text + did_you_mean(reference.policy_name, policies))
            continue
        rules = [rule.name for rule in expand(policy)]
        for index, name in enumerate(reference.rule_names):
            if not any(fits(name, rule) for rule in rules):
                text = f"the policy `{reference.policy_name}` has no rule `{name}`"
                yield Problem((*reference.path, "ruleNames", index), text + did_you_mean(name, rules))
