"""`mutate.targets`: rules that change existing objects, as MutatingPolicies with targets of their own.

In a policy in CEL `object` is the trigger in match conditions and the target in mutations; the trigger is
`request.object` there. Names, namespaces and labels of targets become conditions on each object of the kind.
"""

from __future__ import annotations

from typing import Final

from pyverno.compiler.migration.conditions import conditions
from pyverno.compiler.migration.expressions import Names, names_of
from pyverno.compiler.migration.expressions.value import of_reference
from pyverno.compiler.migration.frame import frame_of, policy_head
from pyverno.compiler.migration.mutations.place import Place
from pyverno.compiler.migration.mutations.reading import RuleExpressions
from pyverno.compiler.migration.mutations.rule import convert_mutate
from pyverno.compiler.migration.mutations.values import has_variable, write_text
from pyverno.compiler.migration.outcome import Converted, Note, UnconvertibleError
from pyverno.compiler.migration.patterns.wildcards import text_matches
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.scope import ADMITTED
from pyverno.compiler.migration.text import Cel, Reference, all_of, compare, literal
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.schemas import MergeField, merge_table
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.rule import Rule
from pyverno.value import replace

__all__ = ["convert_targets"]

_NO_OLD: Final[dict[tuple[str, ...], tuple[str, str, str]]] = {
    ("request", "oldObject"): ("old-object", "targets are changed after the request", "use `request.object`")
}


def convert_targets(policy: ClusterPolicy, rule: Rule, book: SchemaBook, name: str) -> Converted:
    """Return the MutatingPolicy of a rule with targets; raises UnconvertibleError."""
    mutate = rule.raw["mutate"]
    if len(mutate["targets"]) != 1:
        reason = "the rule has several targets"
        raise UnconvertibleError("several-targets", "mutate.targets", reason, "write a rule for each target")
    target, path = mutate["targets"][0], "mutate.targets[0]"
    frame = frame_of(policy, rule, book, operations=ADMITTED, allowed=ADMITTED)
    if frame.has_pods:
        reason = "copies of the rule for pod controllers have no targets"
        raise UnconvertibleError("autogen-targets", "match", reason, "switch autogen off with the annotation")
    if len(frame.roots) != 1:
        raise UnconvertibleError("several-kinds", "match", "the rule has triggers of several kinds", "split the rule")
    trigger = frame.roots[0][1]
    table = book.schemas.kinds
    if any(has_variable(target.get(each) or "") for each in ("apiVersion", "kind")):
        raise UnconvertibleError("computed-kind", path, "the kind of the target is computed", "name the kind")
    kind, _, subresource = str(target.get("kind") or "").partition("/")
    info = table.find(GVK(*parse_api_version(str(target.get("apiVersion") or "")), kind))
    if info is None:
        raise UnconvertibleError("unknown-kind", path, f"kind `{kind}` is not known", "give its definition with --crd")
    if target.get("context") or rule.raw.get("context"):
        reason = "variables are evaluated once, and would have to be for the trigger and for each target"
        raise UnconvertibleError("target-context", f"{path}.context", reason, "write the values out")
    schema = book.of(info.group, info.version, info.kind)
    place = Place(
        Reference("object", schema if schema.is_known else book.any_object()),
        merge=MergeField(type=merge_table().type_of(info.group, info.version, info.kind)),
    )
    # in mutations and conditions of targets, `object` is the target
    names = names_of(Reference("request.object", trigger.root_schema))
    names = replace(names, refused={**names.refused, **_NO_OLD})
    inner = _with_target(names, place)
    found = convert_mutate(mutate, place, RuleExpressions(inner, conditions))
    tests = [*_select(target, place, RuleExpressions(names, conditions), path), *found.conditions]
    gate = conditions(target.get("preconditions"), inner, f"{path}.preconditions")
    if gate.text != "true":
        tests.append(gate)
    match = [{"name": each.name, "expression": each.expression.text} for each in frame.scope.conditions]
    own = names_of(Reference(frame.scope.subject, trigger.root_schema), Reference("oldObject", trigger.root_schema))
    test = conditions(rule.raw.get("preconditions"), own, "preconditions")
    if test.text != "true":
        match.append({"name": "preconditions", "expression": test.text})
    resource = f"{info.plural}/{subresource}" if subresource else info.plural
    spec: JSONObject = {"matchConstraints": frame.scope.constraints}
    if match:
        spec["matchConditions"] = match
    spec["targetMatchConstraints"] = {
        "resourceRules": [
            {"apiGroups": [info.group], "apiVersions": [info.version], "operations": ["*"], "resources": [resource]}
        ]
    }
    if tests:
        spec["targetMatchConditions"] = [
            {"name": f"target-{number}", "expression": each.text} for number, each in enumerate(tests, 1)
        ]
    if mutate.get("mutateExistingOnPolicyUpdate"):
        spec["evaluation"] = {"mutateExisting": {"enabled": True}}
    spec["mutations"] = list(found.entries)
    document = {**policy_head(policy, "MutatingPolicy", name), "spec": spec}
    text = "all objects of the target's kind are listed, and the conditions choose among them"
    notes = (*frame.scope.notes, *found.notes, *names.notes, Note("targets-listed", path, text))
    return Converted((document,), tuple(dict.fromkeys(notes)))


def _with_target(names: Names, place: Place) -> Names:
    refused = {path: reason for path, reason in names.refused.items() if path != ("target",)}
    return replace(names, refused=refused).with_values({("target",): of_reference(place.value)})


def _select(target: JSONObject, place: Place, expressions: RuleExpressions, path: str) -> list[Cel]:
    """Return the tests of name, namespace and labels of a target."""
    tests = []
    metadata = place.value.field("metadata")
    for name in ("name", "namespace"):
        wanted = str(target.get(name) or "")
        if not wanted:
            continue
        value = metadata.field(name).or_value(literal(""))
        if has_variable(wanted):
            tests.append(compare(value, "==", write_text(wanted, expressions, f"{path}.{name}")))
        else:
            tests.append(text_matches(value, wanted))
    selector = target.get("selector") or {}
    if selector.get("matchExpressions"):
        reason = "expressions of the selector have no form here"
        raise UnconvertibleError("target-selector", f"{path}.selector", reason, "select by matchLabels")
    for key, wanted in (selector.get("matchLabels") or {}).items():
        if has_variable(key) or has_variable(wanted):
            raise UnconvertibleError("target-selector", f"{path}.selector", "the selector is computed", "write it out")
        value = metadata.field("labels").field(key).or_value(literal(""))
        tests.append(all_of([metadata.field("labels").field(key).is_present(), text_matches(value, wanted)]))
    return tests
