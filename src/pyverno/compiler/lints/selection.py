"""Rules as comparable texts: their match blocks and their actions."""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.lint import Subject
from pyverno.kube.json import JSONObject, encode
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.value import dataclass

__all__ = ["NamedRule", "cel_rules", "written_rules"]

_SELECTING = ("match", "exclude", "preconditions", "celPreconditions", "context", "skipBackgroundRequests")
_NOT_COMPARED = frozenset({"message", "failureAction", "failureActionOverrides", "messageExpression", "reason"})


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A rule for comparison: equal texts of `selection` select the same requests, equal `action` do the same."""

    subject: Subject
    name: str
    path: Path
    selection: str
    action: str

    def is_comparable(self, other: NamedRule) -> bool:
        """Return whether both are rules that can exist side by side: two files with one policy are versions of it."""
        return self.subject is other.subject or self.subject.name != other.subject.name

    def qualified_name(self, other: NamedRule) -> str:
        """Return the name of this rule, with that of its policy where it is another one."""
        return self.name if self.subject is other.subject else f"{self.name} of {self.subject.name}"


def written_rules(subject: Subject) -> Iterator[NamedRule]:
    """Yield the rules of a policy of rules."""
    policy = subject.written
    if not isinstance(policy, ClusterPolicy):
        return
    for rule in policy.spec.rules:
        selection = {key: rule.raw[key] for key in _SELECTING if rule.raw.get(key)}
        action = {
            key: _compared(value) if isinstance(value, dict) else value
            for key, value in rule.raw.items()
            if key not in (*_SELECTING, "name", "reportProperties")
        }
        key = encode([policy.kind, policy.namespace, policy.spec.background, policy.spec.admission, selection])
        yield NamedRule(subject, f"rule `{rule.name}`", rule.path, key, encode(action))


def _compared(action: JSONObject) -> JSONObject:
    return {key: value for key, value in action.items() if key not in _NOT_COMPARED}


def cel_rules(subject: Subject) -> Iterator[NamedRule]:
    """Yield the validations of a policy in CEL."""
    policy = subject.written
    if isinstance(policy, ClusterPolicy):
        return
    from pyverno.policy.cel.admissionpolicy import ValidatingAdmissionPolicy  # loaded with such policies
    from pyverno.policy.cel.policies import ValidatingPolicy

    if not isinstance(policy, (ValidatingPolicy, ValidatingAdmissionPolicy)):
        return
    raw = policy.spec.raw
    rest = {key: value for key, value in raw.items() if key not in ("validations", "validationActions", "autogen")}
    key = encode([policy.kind, policy.namespace, rest])
    for index, each in enumerate(policy.spec.validations):
        yield NamedRule(subject, f"validation {index + 1}", each.path, key, " ".join(each.expression.split()))
