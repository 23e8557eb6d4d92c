"""Mutate rules as MutatingPolicies: the frame of the rule around its mutations.

Preconditions become match conditions, or the variable `applies` where they read variables, which match conditions
cannot. A rule for Pods and their controllers reads `variables.pod` and writes below `variables.podPath`. Variables keep
the value that they had in the first mutation that reads them, so a later mutation of such a rule has one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.compiler.migration.conditions import conditions
from pyverno.compiler.migration.expressions import Names, Value, names_of
from pyverno.compiler.migration.expressions.value import of_reference
from pyverno.compiler.migration.frame import Frame, frame_of, home_of, policy_head
from pyverno.compiler.migration.mutations.changes import Pointer
from pyverno.compiler.migration.mutations.place import Place
from pyverno.compiler.migration.mutations.reading import RuleExpressions
from pyverno.compiler.migration.mutations.rule import Mutations, convert_mutate, empty_fields
from pyverno.compiler.migration.outcome import Converted, Note, UnconvertibleError
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.scope import ADMITTED
from pyverno.compiler.migration.scopetests import Target, one_of
from pyverno.compiler.migration.text import Cel, CelType, Level, Reference, all_of
from pyverno.compiler.migration.variables import Variable, variables_of
from pyverno.kube.json import JSONObject
from pyverno.kube.schemas import MergeField, merge_table
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.mutate import Mutate
from pyverno.policy.rule import Rule
from pyverno.policy.subresources import WHOLE_PODS
from pyverno.value import dataclass, field, replace

__all__ = ["convert_mutating", "names_of_any", "rule_names", "settings_of"]

_POD_PATH: Final = "variables.podPath"
_KIND: Final = Cel("request.kind.kind", CelType.STRING)


def convert_mutating(policy: ClusterPolicy, rule: Rule, book: SchemaBook, name: str) -> Converted:
    """Return the MutatingPolicy of one rule; raises UnconvertibleError."""
    mutate = rule.action
    assert isinstance(mutate, Mutate)  # noqa: S101 - asked of mutate rules only
    if mutate.targets:
        from pyverno.compiler.migration.mutations.targets import convert_targets  # few rules have targets

        return convert_targets(policy, rule, book, name)
    frame = frame_of(policy, rule, book, operations=ADMITTED, allowed=ADMITTED)
    return _Converter(policy, rule, frame, name).convert()


@dataclass(frozen=True, slots=True)
class _Converter:
    policy: ClusterPolicy
    rule: Rule
    frame: Frame
    name: str
    notes: list[Note] = field(default_factory=list)

    def convert(self) -> Converted:
        self.notes.extend(self.frame.scope.notes)
        found = [(targets, *self._of_root(targets[0], root)) for targets, root in self.frame.roots]
        variables = found[0][2]
        if any(_texts(each) != _texts(variables) for _, _, each in found):
            reason = "the context has other types for other kinds"
            raise UnconvertibleError("context-by-kind", "context", reason, "split the rule by kind")
        match = [{"name": each.name, "expression": each.expression.text} for each in self.frame.scope.conditions]
        entries, gate = _join([(targets, mutations) for targets, mutations, _ in found])
        if gate.text != "true":
            if "variables." in gate.text:
                variables = (*variables, Variable("applies", gate))
                entries = [_guard(entry, "variables.applies") for entry in entries]
            else:
                match.append({"name": "preconditions", "expression": gate.text})
        entries, pods = self._with_pods(entries, variables)
        spec: JSONObject = {**settings_of(self.policy, self.rule), "matchConstraints": self.frame.scope.constraints}
        if WHOLE_PODS.issuperset(each.resource for each in self.frame.scope.targets):
            spec["autogen"] = {"podControllers": {"controllers": []}}
        if match:
            spec["matchConditions"] = match
        written = [*pods, *({"name": each.name, "expression": each.expression.text} for each in variables)]
        if written:
            spec["variables"] = written
        spec["mutations"] = entries
        document = {**policy_head(self.policy, "MutatingPolicy", self.name), "spec": spec}
        return Converted((document,), tuple(dict.fromkeys(self.notes)))

    def _of_root(self, target: Target, root: Reference) -> tuple[Mutations, tuple[Variable, ...]]:
        names = rule_names(self.frame, root)
        names = replace(names, home=home_of(self.policy))
        names, variables = variables_of(self.rule.raw.get("context") or (), names, "context")
        expressions = RuleExpressions(names, conditions)
        place = self._place(target, root)
        mutate = self.rule.raw["mutate"]
        preconditions = self.rule.raw.get("preconditions")
        empty = frozenset() if self.frame.has_pods else empty_fields(preconditions)
        found = convert_mutate(mutate, place, expressions, empty=empty)
        gate = conditions(preconditions, names, "preconditions")
        self.notes.extend((*found.notes, *names.notes))
        return Mutations(found.entries, (gate, *found.conditions)), variables

    def _place(self, target: Target, root: Reference) -> Place:
        if self.frame.has_pods:
            pointer = Pointer((Cel(_POD_PATH, CelType.STRING),))
            return Place(root, pointer, MergeField(type="io.k8s.api.core.v1.PodTemplateSpec"))
        kind = merge_table().type_of(target.group, target.version, target.kind)
        return Place(root, merge=MergeField(type=kind) if kind else None)

    def _with_pods(
        self, entries: list[JSONObject], variables: Sequence[Variable]
    ) -> tuple[list[JSONObject], list[JSONObject]]:
        """Return the entries, each with a variable of its own for the Pod, and these variables."""
        if not self.frame.has_pods:
            return entries, []
        texts = [_expression(each) for each in entries] + [each.expression.text for each in variables]
        found = [{"name": each.name, "expression": each.expression} for each in self.frame.pod_variables(texts)]
        pod = next((each["expression"] for each in found if each["name"] == "pod"), "")
        changed = []
        for number, entry in enumerate(entries, 1):
            text = _expression(entry)
            if number > 1 and "variables.pod." in text:
                found.append({"name": f"pod{number}", "expression": pod})
                text = text.replace("variables.pod.", f"variables.pod{number}.")
            changed.append({"patchType": "JSONPatch", "jsonPatch": {"expression": text}})
        if any(_POD_PATH in text for text in texts):
            found.append({"name": "podPath", "expression": self._pod_path()})
        return changed, found

    def _pod_path(self) -> str:
        kinds = {target.kind for target in self.frame.scope.targets}
        cases = []
        if "Pod" in kinds:
            cases.append("request.kind.kind == 'Pod' ? ''")
        if "CronJob" in kinds:
            cases.append("request.kind.kind == 'CronJob' ? '/spec/jobTemplate/spec/template'")
        return " : ".join([*cases, "'/spec/template'"])


def rule_names(frame: Frame, root: Reference) -> Names:
    """Return the names that expressions of a rule may use; those of a Pod are those of the template of a controller."""
    if not frame.has_pods:
        return names_of(root, Reference("oldObject", root.root_schema), book=frame.book)
    places: dict[tuple[str, ...], Value] = {
        ("request", "object", "spec"): of_reference(root.field("spec")),
        ("request", "object", "metadata"): of_reference(root.field("metadata")),
    }
    return names_of(Reference("object"), Reference("oldObject"), places, book=frame.book)


def names_of_any(root: str, book: SchemaBook) -> Names:
    """Return the names for objects of several kinds, of which only the metadata have known types."""
    metadata = Reference(root, book.any_object()).field("metadata")
    places: dict[tuple[str, ...], Value] = {("request", "object", "metadata"): of_reference(metadata)}
    return names_of(Reference(root), Reference("oldObject"), places, book=book)


def settings_of(policy: ClusterPolicy, rule: Rule) -> JSONObject:
    """Return the fields of a policy's spec that have the same meaning in a policy in CEL."""
    written = policy.raw.get("spec") or {}
    found: JSONObject = {}
    webhook = written.get("webhookConfiguration") or {}
    if (webhook.get("failurePolicy") or written.get("failurePolicy")) == "Ignore":
        found["failurePolicy"] = "Ignore"
    timeout = webhook.get("timeoutSeconds") or written.get("webhookTimeoutSeconds")
    if timeout:
        found["webhookConfiguration"] = {"timeoutSeconds": timeout}
    if webhook.get("matchConditions"):
        reason = "the webhook has match conditions of its own"
        raise UnconvertibleError("webhook-conditions", "spec.webhookConfiguration", reason, "add them by hand")
    evaluation: JSONObject = {}
    if written.get("admission") is False:
        evaluation["admission"] = {"enabled": False}
    if rule.raw.get("skipBackgroundRequests") is False:
        evaluation["skipBackgroundRequests"] = False
    if evaluation:
        found["evaluation"] = evaluation
    return found


def _texts(variables: Sequence[Variable]) -> list[tuple[str, str]]:
    return [(each.name, each.expression.text) for each in variables]


def _expression(entry: JSONObject) -> str:
    return str((entry.get("jsonPatch") or entry["applyConfiguration"])["expression"])


def _join(found: Sequence[tuple[Sequence[Target], Mutations]]) -> tuple[list[JSONObject], Cel]:
    """Return the mutations of all kinds, each under a test of its kind where they differ, and the common condition."""
    groups: dict[str, tuple[list[Target], Mutations]] = {}
    for targets, mutations in found:
        key = repr((mutations.entries, [each.text for each in mutations.conditions]))
        groups.setdefault(key, ([], mutations))[0].extend(targets)
    if len(groups) == 1:
        mutations = found[0][1]
        return list(mutations.entries), all_of(mutations.conditions)
    entries = []
    for targets, mutations in groups.values():
        test = all_of([one_of(_KIND, [each.kind for each in targets]), *mutations.conditions])
        entries += [_guard(entry, test.within(Level.OR)) for entry in mutations.entries]
    return entries, all_of([])


def _guard(entry: JSONObject, test: str) -> JSONObject:
    if "jsonPatch" in entry:
        text = entry["jsonPatch"]["expression"]
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": f"{test} ? {_within(text)} : []"}}
    text = f"{test} ? {entry['applyConfiguration']['expression']} : Object{{}}"
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}


def _within(text: str) -> str:
    return text if " ? " not in text else f"({text})"
