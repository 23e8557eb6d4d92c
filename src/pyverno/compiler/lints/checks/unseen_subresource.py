"""A policy in CEL judges a field, and not all requests that change it.

Some fields are written through subresources: ephemeral containers by `pods/ephemeralcontainers`, the resources of
running containers by `pods/resize`, and the number of replicas by `scale` (`kubectl debug`, `kubectl scale`,
autoscalers). A policy for the object alone never sees these requests, so that what it refuses comes in through them. A
policy that reads the pod template as well is not reported for `scale`, whose requests do not carry it.

Example::

    resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [pods]
    validations:
    - expression: object.spec.?ephemeralContainers.orValue([]).size() == 0

Write instead::

    resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [pods, pods/ephemeralcontainers]
    validations:
    - expression: object.spec.?ephemeralContainers.orValue([]).size() == 0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pyverno.compiler.lints.checks.unknown_resource import constraints_of
from pyverno.compiler.lints.lint import Problem, Subject, Workspace
from pyverno.kube.json import JSON
from pyverno.lazyregex import regex
from pyverno.policy.cel.admissionpolicy import ValidatingAdmissionPolicy
from pyverno.policy.cel.constraints import MatchConstraints, ResourceRule
from pyverno.policy.cel.policies import ValidatingPolicy

__all__ = ["check"]

_SCALED: Final = ("deployments", "replicasets", "replicationcontrollers", "statefulsets")
_WRITTEN_BY: Final = (
    (("pods",), "ephemeralcontainers", regex(r"\bephemeralContainers\b"), "adds ephemeral containers"),
    (("pods",), "resize", regex(r"\bresources\b"), "changes the resources of running containers"),
    (_SCALED, "scale", regex(r"\breplicas\b"), "changes the number of replicas"),
)
"""Resources, the subresource that writes a field of them, the field, and what its requests do."""
_NOT_READ: Final = frozenset({"matchConstraints", "message", "autogen"})


def check(subject: Subject, _workspace: Workspace) -> Iterator[Problem]:
    """Yield the resources whose subresources a validating policy needs and does not match."""
    if not isinstance(subject.written, ValidatingPolicy | ValidatingAdmissionPolicy):
        return
    spec = subject.document.value.get("spec")
    texts = [*_texts(spec)]
    has_template = any("template" in text for text in texts)
    for constraints in constraints_of(subject):
        for names, subresource, field, does in _WRITTEN_BY:
            if not (has_template and subresource == "scale") and any(field.search(text) for text in texts):
                yield from _unseen(constraints, names, subresource, does)


def _unseen(constraints: MatchConstraints, names: Iterable[str], subresource: str, does: str) -> Iterator[Problem]:
    for rule in constraints.resource_rules:
        for index, name in enumerate(rule.resources):
            if name in names and _updates(rule) and not _matches(constraints.resource_rules, name, subresource):
                message = f"`{name}/{subresource}`, which {does}, is not matched: the policy does not see its requests"
                yield Problem((*rule.path, "resources", index), message)


def _matches(rules: Iterable[ResourceRule], name: str, subresource: str) -> bool:
    wanted = {f"{name}/{subresource}", f"{name}/*", f"*/{subresource}", "*/*"}
    return any(wanted.intersection(rule.resources) and _updates(rule) for rule in rules)


def _updates(rule: ResourceRule) -> bool:
    return not {"UPDATE", "*"}.isdisjoint(rule.operations)


def _texts(value: JSON) -> Iterator[str]:
    """Yield the texts that a policy evaluates; does not recurse."""
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            pending.extend(each for key, each in current.items() if key not in _NOT_READ)
        elif isinstance(current, list):
            pending.extend(current)
        elif isinstance(current, str):
            yield current
