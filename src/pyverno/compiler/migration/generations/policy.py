"""Generate rules as GeneratingPolicies, those of a Policy as NamespacedGeneratingPolicies.

This module writes the frame of the rule around its generations.

Both dialects judge the trigger as it is after the request. A rule that is triggered by deletions reads the old object.
"""

from __future__ import annotations

from pyverno.compiler.migration.conditions import conditions
from pyverno.compiler.migration.expressions import names_of
from pyverno.compiler.migration.frame import frame_of, home_of, policy_head
from pyverno.compiler.migration.generations.calls import convert_generate
from pyverno.compiler.migration.mutations.policy import names_of_any, settings_of
from pyverno.compiler.migration.outcome import Converted, UnconvertibleError
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.scope import ADMITTED
from pyverno.compiler.migration.text import Reference
from pyverno.compiler.migration.variables import variables_of
from pyverno.kube.json import JSONObject
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.rule import Rule
from pyverno.value import replace

__all__ = ["convert_generating"]


def convert_generating(policy: ClusterPolicy, rule: Rule, book: SchemaBook, name: str) -> Converted:
    """Return the GeneratingPolicy of one rule; raises UnconvertibleError."""
    frame = frame_of(policy, rule, book, operations=ADMITTED)
    if "DELETE" in frame.scope.operations:
        reason = "the rule is triggered by deletions, and the two dialects read another object then"
        raise UnconvertibleError("generate-on-delete", "match", reason, "write operations CREATE and UPDATE")
    roots = {root.root_schema for _, root in frame.roots}
    root = frame.roots[0][1]
    names = names_of(root, Reference("oldObject", root.root_schema), book=book)
    if len(roots) > 1:
        names = names_of_any(frame.scope.subject, book)
    names = replace(names, home=home_of(policy))
    names, variables = variables_of(rule.raw.get("context") or (), names, "context")
    found = convert_generate(rule.raw["generate"], names, table=book.schemas.kinds)
    match = [{"name": each.name, "expression": each.expression.text} for each in frame.scope.conditions]
    test = conditions(rule.raw.get("preconditions"), names, "preconditions")
    entries = list(found.entries)
    if test.text != "true":
        if "variables." in test.text:
            reason = "the preconditions read the context, which match conditions cannot"
            raise UnconvertibleError("preconditions-with-context", "preconditions", reason, "write the values out")
        match.append({"name": "preconditions", "expression": test.text})
    spec: JSONObject = settings_of(policy, rule)
    spec.pop("failurePolicy", None)
    evaluation = {**spec.pop("evaluation", {}), **found.evaluation}
    if evaluation:
        spec["evaluation"] = evaluation
    if (policy.raw.get("spec") or {}).get("useServerSideApply"):
        spec["useServerSideApply"] = True
    spec["matchConstraints"] = frame.scope.constraints
    if match:
        spec["matchConditions"] = match
    if variables:
        spec["variables"] = [{"name": each.name, "expression": each.expression.text} for each in variables]
    spec["generate"] = entries
    document = {**policy_head(policy, "GeneratingPolicy", name), "spec": spec}
    return Converted((document,), tuple(dict.fromkeys((*frame.scope.notes, *found.notes, *names.notes))))
