"""All mutants of a policy document, in the order of the document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.compiler.mutants.conditions import condition_changes
from pyverno.compiler.mutants.expressions import expression_changes
from pyverno.compiler.mutants.matching import constraint_changes, selection_changes
from pyverno.compiler.mutants.mutant import Change, Changes, Mutant, removed, replaced
from pyverno.compiler.mutants.patterns import overlay_changes, pattern_changes
from pyverno.engine.explain.nodes import FieldPath
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.policy.kinds import Family, find_kind

__all__ = ["mutants_of"]

_LEVELS: Final = {"restricted": "baseline", "baseline": "privileged"}
_EXPRESSIONS: Final = ("matchConditions", "variables", "validations", "conditions", "mutations", "generate")


def mutants_of(policy: JSON) -> tuple[Mutant, ...]:
    """Return the mutants of a policy document; changes that give the same document twice count once."""
    seen = {encode(policy)}
    found: list[Mutant] = []
    for change in _changes(policy):
        document = change.apply(policy)
        text = encode(document)
        if text not in seen:
            seen.add(text)
            found.append(Mutant(change.place, change.title, document, change.offset))
    return tuple(found)


def _changes(policy: JSON) -> Iterator[Change]:
    if not isinstance(policy, dict):
        return
    kind = find_kind(str(policy.get("apiVersion", "")).partition("/")[0], str(policy.get("kind", "")))
    spec = policy.get("spec")
    if kind is None or not isinstance(spec, dict):
        return
    if kind.family is Family.RULES:
        for index, rule in enumerate(_maps(spec.get("rules"))):
            yield from _of_rule(rule, ("spec", "rules", index))
    elif kind.family in (Family.CEL, Family.ADMISSION):
        yield from constraint_changes(spec.get("matchConstraints"), ("spec", "matchConstraints"))
        yield from _of_expressions(spec, ("spec",), _EXPRESSIONS)


def _maps(value: JSON) -> list[JSONObject]:
    return [each if isinstance(each, dict) else {} for each in value] if isinstance(value, list) else []


def _of_expressions(owner: JSONObject, place: FieldPath, names: tuple[str, ...]) -> Changes:
    for name in names:
        entries = _maps(owner.get(name))
        for index, each in enumerate(entries):
            at = (*place, name, index)
            if name == "matchConditions" or (name in ("validations", "expressions") and len(entries) > 1):
                yield removed(at, f"an entry of `{name}` is dropped")
            yield from expression_changes(each.get("expression"), (*at, "expression"))
            for word in ("applyConfiguration", "jsonPatch"):
                inner = each.get(word)
                if isinstance(inner, dict):
                    yield from expression_changes(inner.get("expression"), (*at, word, "expression"))


def _of_rule(rule: JSONObject, place: FieldPath) -> Changes:
    yield from selection_changes(rule, place)
    if rule.get("preconditions"):
        yield removed((*place, "preconditions"), "preconditions are dropped")
        yield from condition_changes(rule["preconditions"], (*place, "preconditions"))
    validate, mutate, generate = (rule.get(word) for word in ("validate", "mutate", "generate"))
    if isinstance(validate, dict):
        yield from _of_check(validate, (*place, "validate"))
    if isinstance(mutate, dict):
        yield from _of_mutation(mutate, (*place, "mutate"))
    if isinstance(generate, dict):
        yield from overlay_changes(generate.get("data"), (*place, "generate", "data"))


def _of_check(check: JSONObject, place: FieldPath) -> Changes:
    yield from pattern_changes(check.get("pattern"), (*place, "pattern"))
    alternatives = check.get("anyPattern")
    if isinstance(alternatives, list):
        for index, each in enumerate(alternatives):
            if len(alternatives) > 1:
                yield removed((*place, "anyPattern", index), "an alternative of `anyPattern` is dropped")
            yield from pattern_changes(each, (*place, "anyPattern", index))
    deny, cel, security = (check.get(word) for word in ("deny", "cel", "podSecurity"))
    if isinstance(deny, dict):
        yield from condition_changes(deny.get("conditions"), (*place, "deny", "conditions"))
    if isinstance(cel, dict):
        yield from _of_expressions(cel, (*place, "cel"), ("variables", "expressions"))
    if isinstance(security, dict):
        level = _LEVELS.get(str(security.get("level")))
        if level:
            title = f"level `{security['level']}` becomes `{level}`"
            yield replaced((*place, "podSecurity", "level"), level, title)
        for index, _ in enumerate(_maps(security.get("exclude"))):
            yield removed((*place, "podSecurity", "exclude", index), "an exclude is dropped")
    for index, each in enumerate(_maps(check.get("foreach"))):
        at = (*place, "foreach", index)
        if each.get("preconditions"):
            yield removed((*at, "preconditions"), "preconditions are dropped")
            yield from condition_changes(each["preconditions"], (*at, "preconditions"))
        yield from _of_check(each, at)


def _of_mutation(mutate: JSONObject, place: FieldPath) -> Changes:
    yield from overlay_changes(mutate.get("patchStrategicMerge"), (*place, "patchStrategicMerge"))
    for index, each in enumerate(_maps(mutate.get("foreach"))):
        at = (*place, "foreach", index)
        if each.get("preconditions"):
            yield removed((*at, "preconditions"), "preconditions are dropped")
            yield from condition_changes(each["preconditions"], (*at, "preconditions"))
        yield from _of_mutation(each, at)
