"""A whole ClusterPolicy or Policy as policies in CEL: which rules share a policy, names, actions, what is left behind.

Rules with the same scope, action and conditions become one policy, the others one each (`NAME-RULE`). Where the action
differs by namespace, there is a policy for each action (`NAME-audit`). Rules that cannot be converted stay behind in
the old policy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pyverno.compiler.autogen.patterns import ANNOTATION, autogen_controllers
from pyverno.compiler.migration.frame import policy_head
from pyverno.compiler.migration.generations.policy import convert_generating
from pyverno.compiler.migration.images import convert_images
from pyverno.compiler.migration.lexical import scan
from pyverno.compiler.migration.mutations.policy import convert_mutating
from pyverno.compiler.migration.outcome import Converted, Note, Refused, UnconvertibleError
from pyverno.compiler.migration.patterns.wildcards import text_matches
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.scope import Condition
from pyverno.compiler.migration.scopetests import one_of
from pyverno.compiler.migration.text import TRUE, Cel, CelType, Reference, all_of, any_of, literal
from pyverno.compiler.migration.validating import RulePart, convert_validate
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.wildcard import has_wildcard
from pyverno.policy.clusterpolicy import ApplyRules, ClusterPolicy, FailurePolicy
from pyverno.policy.failureaction import FailureAction
from pyverno.policy.generate import Generate
from pyverno.policy.mutate import Mutate
from pyverno.policy.rule import Rule, VerifyImages
from pyverno.policy.subresources import WHOLE_PODS
from pyverno.policy.validate import Validate
from pyverno.value import dataclass, field, replace

__all__ = ["MIGRATED_FROM", "SOURCE_DIGEST", "PolicyConversion", "RuleOutcome", "convert_policy", "digest_of"]

MIGRATED_FROM: Final = "policies.pyverno.io/migrated-from"
SOURCE_DIGEST: Final = "policies.pyverno.io/source-digest"
_MAX_NAME: Final = 63
_ACTIONS: Final = {FailureAction.ENFORCE: ["Deny"], FailureAction.AUDIT: ["Audit"]}


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """The conversion of one rule: the names of the policies that hold it, or why it stays.

    `counts` are the validations that it has in each of them.
    """

    rule: str
    policies: tuple[str, ...] = ()
    refused: Refused | None = None
    notes: tuple[Note, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolicyConversion:
    """The conversion of a policy: new documents, and the old policy with the rules that are left, if any are."""

    source: JSONObject
    documents: tuple[JSONObject, ...]
    remaining: JSONObject | None
    rules: tuple[RuleOutcome, ...]

    @property
    def is_complete(self) -> bool:
        """Whether nothing of the old policy is left."""
        return self.remaining is None


def digest_of(document: JSONObject) -> str:
    """Return the digest of a policy's content: its spec, whatever its comments, order of fields and annotations.

    >>> digest_of({"spec": {"a": 1, "b": 2}}) == digest_of({"metadata": {}, "spec": {"b": 2, "a": 1}})
    True
    """
    return "sha256:" + hashlib.sha256(encode(_sort(document.get("spec"))).encode()).hexdigest()


def _sort(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {key: _sort(value[key]) for key in sorted(value)}
    return [_sort(each) for each in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True, eq=False)
class _Variant:
    """One policy of a rule: an action and the conditions under which it is the one."""

    action: FailureAction
    suffix: str
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    """Rules that become one document: its spec without validations, and the parts in order."""

    key: str
    spec: JSONObject
    suffix: str
    rules: list[str]
    parts: list[RulePart]


def convert_policy(
    policy: ClusterPolicy,
    book: SchemaBook,
    *,
    assumes_types: bool = False,
    selected: Callable[[str], bool] = lambda _: True,
) -> PolicyConversion:
    """Convert a policy rule by rule; `selected` chooses the rules to convert by their names."""
    outcomes: dict[str, RuleOutcome] = {}
    drafts: dict[str, _Draft] = {}
    others: dict[str, tuple[JSONObject, ...]] = {}
    for rule in policy.spec.rules:
        if not selected(rule.name):
            outcomes[rule.name] = RuleOutcome(rule.name, (), Refused("not-selected", "", "the rule is not selected"))
            continue
        try:
            _refuse_policy(policy)
            if isinstance(rule.action, Validate):
                part = convert_validate(policy, rule, book, assumes_types=assumes_types)
                for variant in _variants(policy, rule, rule.action):
                    _add(drafts, policy, rule, part, variant)
                outcomes[rule.name] = RuleOutcome(rule.name, notes=part.notes)
            else:
                others[rule.name], notes = _convert_other(policy, rule, book)
                outcomes[rule.name] = RuleOutcome(rule.name, notes=notes)
        except UnconvertibleError as error:
            outcomes[rule.name] = RuleOutcome(rule.name, (), error.refused)
    documents, names = _documents(policy, list(drafts.values()), others)
    rules = tuple(
        replace(each, policies=tuple(names.get(each.rule, {})), counts=names.get(each.rule, {}))
        for each in outcomes.values()
    )
    left = [each.rule for each in rules if each.refused is not None]
    return PolicyConversion(policy.raw, documents, _remaining(policy, left), rules)


def _refuse_policy(policy: ClusterPolicy) -> None:
    if policy.spec.apply_rules is ApplyRules.ONE and len(policy.spec.rules) > 1:
        raise UnconvertibleError(
            "apply-one",
            "spec.applyRules",
            "a policy in CEL evaluates all its validations, not only up to the first rule that applies",
            "write the conditions of the earlier rules into exclude of the later ones",
        )


def _convert_other(
    policy: ClusterPolicy, rule: Rule, book: SchemaBook
) -> tuple[tuple[JSONObject, ...], tuple[Note, ...]]:
    convert = _OTHER_RULES[type(rule.action)]
    converted = convert(policy, rule, book, f"{policy.name}-{rule.name}")
    return converted.documents, converted.notes


_OTHER_RULES: Final[Mapping[type, Callable[[ClusterPolicy, Rule, SchemaBook, str], Converted]]] = {
    Mutate: convert_mutating,
    Generate: convert_generating,
    VerifyImages: convert_images,
}
"""Rules that become a policy of their own."""


# -------------------------------------------------------------------------------------------------------------- actions


def _variants(policy: ClusterPolicy, rule: Rule, validate: Validate) -> Sequence[_Variant]:
    """Return the actions of a rule: one, or one for each action that some namespaces have."""
    action = validate.failure_action or policy.spec.failure_action
    overrides = validate.failure_action_overrides or policy.spec.failure_action_overrides
    chosen: dict[FailureAction, list[Cel]] = {}
    earlier: list[Cel] = []
    for index, each in enumerate(overrides):
        path = f"validate.failureActionOverrides[{index}]"
        if each.namespace_selector is not None:
            raise UnconvertibleError(
                "override-selector", path, "conditions cannot read the labels of a namespace", "name the namespaces"
            )
        if each.action is None:
            continue
        here = _namespaces(each.namespaces)
        chosen.setdefault(each.action, []).append(all_of([here, *(before.not_() for before in earlier)]))
        earlier.append(here)
    if all(each is action for each in chosen):
        return [_Variant(action, "")]
    chosen.setdefault(action, []).append(all_of(each.not_() for each in earlier))
    return [
        _Variant(each, f"-{each.value.lower()}", (Condition("namespace", any_of(tests)),))
        for each, tests in chosen.items()
    ]


def _namespaces(patterns: Sequence[str]) -> Cel:
    if not patterns:
        return TRUE
    namespace = Reference("request").field("namespace").or_value(literal(""))
    plain = [each for each in patterns if not has_wildcard(each)]
    tests = [one_of(namespace, plain)] if plain else []
    return any_of([*tests, *(text_matches(namespace, each) for each in patterns if has_wildcard(each))])


# ------------------------------------------------------------------------------------------------------------ documents


def _add(drafts: dict[str, _Draft], policy: ClusterPolicy, rule: Rule, part: RulePart, variant: _Variant) -> None:
    spec = _spec(policy, part, variant)
    if part.frame.has_pods or part.variables:
        # variables of one name must mean the same within a policy
        names = dict(part.variables)
        key = encode([spec, variant.suffix, sorted(names.items()) if set(names) - {"pod", "oldPod"} else []])
    else:
        key = encode([spec, variant.suffix, []])
    draft = drafts.setdefault(key, _Draft(key, spec, variant.suffix, [], []))
    draft.rules.append(rule.name)
    draft.parts.append(part)


def _spec(policy: ClusterPolicy, part: RulePart, variant: _Variant) -> JSONObject:
    """Return the spec of a policy without its variables and validations."""
    written, scope = policy.spec, part.frame.scope
    actions = [*_ACTIONS[variant.action], *(["Warn"] if written.emit_warning else [])]
    spec: JSONObject = {"validationActions": actions}
    if written.failure_policy is FailurePolicy.IGNORE:
        spec["failurePolicy"] = "Ignore"
    if written.webhook.timeout_seconds is not None:
        spec["webhookConfiguration"] = {"timeoutSeconds": written.webhook.timeout_seconds}
    evaluation: JSONObject = {}
    if not written.admission:
        evaluation["admission"] = {"enabled": False}
    if not written.background or scope.reads_users:
        evaluation["background"] = {"enabled": False}
    if evaluation:
        spec["evaluation"] = evaluation
    spec["matchConstraints"] = scope.constraints
    given = [Condition(each.name, Cel(each.expression, CelType.BOOL)) for each in written.webhook.match_conditions]
    conditions = _with_unique_names([*given, *variant.conditions, *part.conditions])
    if conditions:
        spec["matchConditions"] = conditions
    if WHOLE_PODS.issuperset(each.resource for each in scope.targets) and not part.frame.has_pods:
        spec["autogen"] = {"podControllers": {"controllers": []}}
    return spec


def _with_unique_names(conditions: Iterable[Condition]) -> list[JSONObject]:
    found: dict[str, str] = {}
    for each in conditions:
        name, number = each.name, 2
        while name in found:
            name, number = f"{each.name}-{number}", number + 1
        found[name] = each.expression.text
    return [{"name": name, "expression": expression} for name, expression in found.items()]


def _documents(
    policy: ClusterPolicy, drafts: Sequence[_Draft], others: dict[str, tuple[JSONObject, ...]]
) -> tuple[tuple[JSONObject, ...], dict[str, dict[str, int]]]:
    """Return the documents, and by rule the names of those that hold it with the number of its validations."""
    documents: list[JSONObject] = []
    names: dict[str, dict[str, int]] = {}
    taken: set[str] = set()
    is_only = len({tuple(draft.rules) for draft in drafts}) == 1 and not others
    for draft in drafts:
        stem = policy.name if is_only else f"{policy.name}-{draft.rules[0]}"
        name = _free_name(stem, draft.suffix, taken)
        spec = dict(draft.spec)
        variables = _merged_variables(draft.parts)
        if variables:
            spec["variables"] = [{"name": key, "expression": text} for key, text in variables.items()]
        spec["validations"] = [entry for part in draft.parts for entry in part.validations]
        audits = [entry for part in draft.parts for entry in part.audit_annotations]
        if audits:
            spec["auditAnnotations"] = audits
        spec = _with_pod_spec(spec)
        documents.append({**_mark(policy_head(policy, "ValidatingPolicy", name), policy, draft.rules), "spec": spec})
        for rule, part in zip(draft.rules, draft.parts, strict=True):
            names.setdefault(rule, {})[name] = len(part.validations)
    for rule, made in others.items():
        for document in made:
            metadata = document["metadata"]
            metadata["name"] = _free_name(
                policy.name if len(others) == 1 and not drafts else metadata["name"], "", taken
            )
            documents.append(_mark(document, policy, [rule]))
            names.setdefault(rule, {})[metadata["name"]] = 0
    return tuple(documents), names


def _merged_variables(parts: Sequence[RulePart]) -> dict[str, str]:
    return {name: expression for part in parts for name, expression in part.variables}


def _with_pod_spec(spec: JSONObject) -> JSONObject:
    """Let the variable hold the spec of the Pod where nothing else of it is read."""
    for name, short in (("pod", "podSpec"), ("oldPod", "oldPodSpec")):
        text = encode({key: value for key, value in spec.items() if key != "matchConstraints"})
        if f"variables.{name}." not in text or f"variables.{name}.spec" not in text:
            continue
        rest = text.replace(f"variables.{name}.spec", "")
        if f"variables.{name}." in rest:
            continue
        spec = _replace(spec, f"variables.{name}.spec", f"variables.{short}")
        for variable in spec["variables"]:
            if variable["name"] == name:
                variable["name"] = short
                variable["expression"] = _spec_of(variable["expression"])
    return spec


def _spec_of(expression: str) -> str:
    """Return the variable of a Pod as that of its spec.

    >>> _spec_of("request.kind.kind == 'Pod' ? object : object.spec.template")
    "request.kind.kind == 'Pod' ? object.spec : object.spec.template.spec"
    """
    places, depth = [0], 0
    for index, character, is_quoted in scan(expression):
        depth += 0 if is_quoted else (character == "(") - (character == ")")
        if not is_quoted and not depth and expression.startswith(" : ", index):
            places.append(index)
    cases = [expression[start:end] for start, end in zip(places, [*places[1:], len(expression)], strict=True)]
    return "".join(f"{case}.spec" for case in cases)


def _replace(value: JSON, old: str, new: str) -> JSON:
    match value:
        case str():
            return value.replace(old, new)
        case list():
            return [_replace(each, old, new) for each in value]
        case dict():
            return {key: _replace(each, old, new) for key, each in value.items()}
    return value


def _free_name(stem: str, suffix: str, taken: set[str]) -> str:
    name = stem[: _MAX_NAME - len(suffix)].rstrip("-.") + suffix
    number = 2
    while name in taken:
        end = f"-{number}{suffix}"
        name, number = stem[: _MAX_NAME - len(end)].rstrip("-.") + end, number + 1
    taken.add(name)
    return name


def _mark(document: JSONObject, policy: ClusterPolicy, rules: Sequence[str]) -> JSONObject:
    """Return a document that names its source: kind, name, rules, and the digest of its content."""
    metadata = dict(document["metadata"])
    annotations = dict(metadata.get("annotations") or {})
    annotations[MIGRATED_FROM] = f"{policy.kind}/{policy.key}: {', '.join(rules)}"
    annotations[SOURCE_DIGEST] = digest_of(policy.raw)
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def _remaining(policy: ClusterPolicy, rules: Sequence[str]) -> JSONObject | None:
    """Return the old policy with the rules that are left; autogen makes the same copies of them as before."""
    if not rules:
        return None
    raw = policy.raw
    kept = [each for each in raw["spec"]["rules"] if each.get("name") in rules]
    remaining: JSONObject = {**raw, "spec": {**raw["spec"], "rules": kept}}
    before = autogen_controllers(policy)
    smaller = replace(
        policy, spec=replace(policy.spec, rules=tuple(each for each in policy.spec.rules if each.name in rules)),
        expanded=None,
    )  # fmt: skip
    if autogen_controllers(smaller) != before:
        metadata = dict(remaining["metadata"])
        annotations = {**(metadata.get("annotations") or {}), ANNOTATION: ",".join(before) or "none"}
        remaining["metadata"] = {**metadata, "annotations": annotations}
    return remaining
