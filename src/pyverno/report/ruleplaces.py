"""Locations of rules and their parts in the documents of policies, for results and explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyverno.compiler import Compilation
from pyverno.engine.result import CelDetail, RuleResult
from pyverno.engine.rule import RuleInfo
from pyverno.errors import Location
from pyverno.kube.json import JSON
from pyverno.kube.yaml.documents import Document

if TYPE_CHECKING:
    # results need no explanations
    from pyverno.engine.explain.nodes import FieldPath, RuleTrace

__all__ = ["RulePlaces"]

_TEMPLATES: Final = (("spec", "jobTemplate", "spec", "template"), ("spec", "template"))


class RulePlaces:
    """Finds places in the documents that policies were compiled from."""

    def __init__(self, compilation: Compilation) -> None:
        """Take the compiled policies with their documents."""
        self._sources = {id(item.policy.info): item.document for item in compilation.items if item.policy}
        self._named: dict[tuple[str, str], Document | None] = {}
        self._paths: dict[int, dict[JSON, FieldPath]] = {}
        for item in compilation.items:
            if item.policy:
                key = (item.policy.info.kind, item.policy.info.key)
                self._named[key] = None if key in self._named else item.document

    def find(self, trace: RuleTrace, place: FieldPath) -> Location | None:
        """Return the location of a part of a rule; None for a policy of other documents."""
        document = self._sources.get(id(trace.rule.policy))
        if document is None:
            return None
        root = self._rule_path(document, trace.rule)
        if not place and not root:
            return trace.rule.location
        return document.location((*root, *_without_template(place, is_copy=bool(trace.rule.origin))))

    def of_result(self, result: RuleResult) -> Location:
        """Return the location of a result's rule, or of the one validation in CEL that decided."""
        detail = result.detail
        if not isinstance(detail, CelDetail) or detail.position < 0:
            return result.rule.location
        policy = result.rule.policy
        # results of other processes have policies of their own
        document = self._sources.get(id(policy)) or self._named.get((policy.kind, policy.key))
        if document is None:
            return result.rule.location
        root = self._rule_path(document, result.rule)
        path = (*root, "validate", "cel", "expressions") if root else ("spec", "validations")
        return document.location((*path, detail.position))

    def _rule_path(self, document: Document, rule: RuleInfo) -> FieldPath:
        """Return the path of a rule in its document; () for policies that are one rule."""
        found = self._paths.get(id(document))  # the documents of the compilation live as long as this
        if found is None:
            found = self._paths[id(document)] = _rule_paths(document.value)
        return found.get(rule.origin or rule.name, ())


def _rule_paths(policy: JSON) -> dict[JSON, FieldPath]:
    """Return the paths of the rules of a document by name, none for policies that are one rule."""
    spec = policy.get("spec") if isinstance(policy, dict) else None
    rules = spec.get("rules") if isinstance(spec, dict) else None
    found: dict[JSON, FieldPath] = {}
    for number, rule in enumerate(rules if isinstance(rules, list) else ()):
        name = rule.get("name") if isinstance(rule, dict) else None
        if isinstance(name, str):
            found.setdefault(name, ("spec", "rules", number))
    return found


def _without_template(place: FieldPath, *, is_copy: bool) -> FieldPath:
    """Return the place in the author's rule for a place in its copy for kinds that create Pods."""
    if is_copy:
        for template in _TEMPLATES:
            for start in range(len(place) - len(template) + 1):
                if place[start : start + len(template)] == template:
                    return (*place[:start], *place[start + len(template) :])
    return place
