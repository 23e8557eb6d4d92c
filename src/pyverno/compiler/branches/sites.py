"""All branches of a policy document, in the order of the document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.compiler.branches.branch import FAIL, FALSE, FITS, NOT_FITTING, PASS, RUNS, TRUE, Branch
from pyverno.compiler.branches.expressions import deciding_parts
from pyverno.compiler.branches.patterns import pattern_branches
from pyverno.engine.explain.nodes import FieldPath
from pyverno.kube.json import JSON, JSONObject
from pyverno.policy.kinds import Family, find_kind

__all__ = ["branches_of"]

_KINDS_ONLY: Final = frozenset({"kinds"})
_WHOLE: Final = ("matchConditions", "validations")
"""Lists of expressions that are true or false; those of other lists count by their parts."""


def branches_of(policy: JSON) -> tuple[Branch, ...]:
    """Return the branches of a policy document; none for documents that hold no rules."""
    if not isinstance(policy, dict):
        return ()
    kind = find_kind(str(policy.get("apiVersion", "")).partition("/")[0], str(policy.get("kind", "")))
    spec = policy.get("spec")
    if kind is None or not isinstance(spec, dict):
        return ()
    found: Iterator[Branch]
    if kind.family is Family.RULES:
        found = (
            each
            for index, rule in enumerate(_maps(spec.get("rules")))
            for each in _of_rule(rule, ("spec", "rules", index))
        )
    elif kind.family in (Family.CEL, Family.ADMISSION):
        found = _of_cel(spec, ("spec",))
    else:
        return ()
    return tuple({branch.key: branch for branch in found}.values())


def _maps(value: JSON) -> list[JSONObject]:
    return [each if isinstance(each, dict) else {} for each in value] if isinstance(value, list) else []


def _of_rule(rule: JSONObject, place: FieldPath) -> Iterator[Branch]:
    name = str(rule.get("name", ""))
    outcomes = (PASS, FAIL) if "validate" in rule or "verifyImages" in rule else (PASS,)
    yield from (Branch(place, outcome, "rule", name, name) for outcome in outcomes)
    for word in ("match", "exclude"):
        yield from _of_blocks(rule.get(word), (*place, word), name, is_exclude=word == "exclude")
    yield from _of_conditions(rule.get("preconditions"), (*place, "preconditions"), name)
    validate = rule.get("validate")
    if isinstance(validate, dict):
        yield from _of_check(validate, (*place, "validate"), name)
        cel = validate.get("cel")
        if isinstance(cel, dict):
            for word in ("variables", "expressions"):
                for index, each in enumerate(_maps(cel.get(word))):
                    at = (*place, "validate", "cel", word, index, "expression")
                    yield from _of_expression(each.get("expression"), at, name, is_whole=word == "expressions")
    mutate = rule.get("mutate")
    if isinstance(mutate, dict):
        yield from _of_foreach(mutate, (*place, "mutate"), name)


def _of_blocks(selection: JSON, place: FieldPath, rule: str, *, is_exclude: bool) -> Iterator[Branch]:
    if not isinstance(selection, dict) or not selection:
        return
    groups = [group for group in ("any", "all") if selection.get(group)]
    blocks = [((*place, group, index), each) for group in groups for index, each in enumerate(_maps(selection[group]))]
    for at, block in blocks or [(place, selection)]:
        resources = block.get("resources")
        restricted = {*block, *(resources if isinstance(resources, dict) else ())} - {"resources"}
        yield Branch(at, FITS, str(place[-1]), "", rule)
        if is_exclude or restricted - _KINDS_ONLY:
            yield Branch(at, NOT_FITTING, str(place[-1]), "", rule)


def _of_conditions(conditions: JSON, place: FieldPath, rule: str) -> Iterator[Branch]:
    if isinstance(conditions, list):
        for index, each in enumerate(conditions):
            yield from _of_conditions(each, (*place, index), rule)
        return
    if not isinstance(conditions, dict):
        return
    if "key" in conditions or "operator" in conditions:
        text = " ".join(str(conditions.get(side, "")) for side in ("key", "operator", "value"))
        yield from (Branch(place, outcome, "condition", text, rule) for outcome in (TRUE, FALSE))
        return
    for group in ("any", "all"):
        for index, each in enumerate(_maps(conditions.get(group))):
            yield from _of_conditions(each, (*place, group, index), rule)


def _of_check(check: JSONObject, place: FieldPath, rule: str) -> Iterator[Branch]:
    """Yield the branches of a pattern, deny or foreach."""
    if "pattern" in check:
        yield from pattern_branches(check["pattern"], (*place, "pattern"), rule)
    alternatives = check.get("anyPattern")
    if isinstance(alternatives, list):
        for index, each in enumerate(alternatives):
            yield from pattern_branches(each, (*place, "anyPattern", index), rule)
    deny = check.get("deny")
    if isinstance(deny, dict):
        yield from _of_conditions(deny.get("conditions"), (*place, "deny", "conditions"), rule)
    yield from _of_foreach(check, place, rule)


def _of_foreach(owner: JSONObject, place: FieldPath, rule: str) -> Iterator[Branch]:
    for index, each in enumerate(_maps(owner.get("foreach"))):
        at = (*place, "foreach", index)
        yield Branch(at, RUNS, "foreach", str(each.get("list", "")), rule)
        yield from _of_conditions(each.get("preconditions"), (*at, "preconditions"), rule)
        yield from _of_check(each, at, rule)


def _of_cel(spec: JSONObject, place: FieldPath) -> Iterator[Branch]:
    outcomes = (PASS, FAIL) if "validations" in spec else (PASS,)
    yield from (Branch((), outcome, "rule") for outcome in outcomes)
    for name in ("matchConditions", "variables", "validations"):
        for index, each in enumerate(_maps(spec.get(name))):
            at = (*place, name, index, "expression")
            yield from _of_expression(each.get("expression"), at, "", is_whole=name in _WHOLE)


def _of_expression(text: JSON, place: FieldPath, rule: str, *, is_whole: bool) -> Iterator[Branch]:
    if not isinstance(text, str):
        return
    if is_whole:
        yield from (Branch(place, outcome, "expression", " ".join(text.split()), rule) for outcome in (TRUE, FALSE))
    for part in deciding_parts(text):
        for outcome in (TRUE, FALSE):
            yield Branch(place, outcome, "expression", " ".join(part.text.split()), rule, part.number, part.start)
