"""Conditions of classes on the texts, statuses and documents of a difference."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from pyverno.kube.json import JSON
from tests.differential.compare import ABSENT, Difference
from tests.differential.runs import excepted_policy

__all__ = [
    "ADMISSION",
    "Holds",
    "both",
    "both_refuse",
    "compares_durations",
    "describes_request",
    "fails_at_an_integer",
    "fails_under_projections",
    "has_exception_for_other_operations",
    "has_fewer_objects",
    "has_foreign_exception",
    "has_loop",
    "has_pattern",
    "has_projection",
    "has_values_of_others",
    "have_texts",
    "is_later_rule",
    "is_unchanged",
    "lacks",
    "looks_for_parameters",
    "may_have_failed",
    "names_a_field_twice",
    "ours_fails",
    "projects",
    "projects_maps_twice",
    "same_reasons",
]

Holds = Callable[[Difference], bool]


def have_texts(*, ours: str, theirs: str) -> Holds:
    """Hold where the status is the same and both texts contain a pattern."""
    mine, other = re.compile(ours), re.compile(theirs)

    def holds(found: Difference) -> bool:
        if found.aspect != "text" or found.key.kind == "object":
            return False
        return bool(mine.search(found.ours.text)) and bool(other.search(found.theirs.text))

    return holds


def both(*several: Holds) -> Holds:
    return lambda found: all(each(found) for each in several)


def ours_fails(text: str) -> Holds:
    """Hold where the statuses differ and ours is an error with such a text."""
    wanted = re.compile(text)
    return lambda found: (
        found.aspect == "status" and found.ours.status == "error" and bool(wanted.search(found.ours.text))
    )


def _family(*names: str) -> Holds:
    return lambda found: found.batch.family in names


def has_loop(found: Difference) -> bool:
    return "foreach" in found.rule.get("validate", {})


def has_pattern(found: Difference) -> bool:
    validate = found.rule.get("validate", {})
    return any(key in part for part in (validate, *validate.get("foreach", ())) for key in ("pattern", "anyPattern"))


def projects(found: Difference) -> bool:
    return has_projection(f"{found.key.rule} {found.ours.text} {json.dumps(found.rule)}")


def has_fewer_objects(found: Difference) -> bool:
    """Hold where we generate none, or only some, of the objects that Kyverno generates."""
    mine, other = ({*answer.text.split("\n")} - {""} for answer in (found.ours, found.theirs))
    return mine < other


def has_projection(text: str) -> bool:
    return bool(_PROJECTION.search(text))


def fails_at_an_integer(found: Difference) -> bool:
    """Hold where the place at which Kyverno's pattern fails is an integer of the resource."""
    return any(
        isinstance(_value_at(found.resource, path), int)
        for path in re.findall(r"at path (/\S*?)/?(?:\s|$)", found.theirs.text)
    )


def _value_at(value: JSON, path: str) -> JSON:
    for part in path.strip("/").split("/"):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return None if isinstance(value, bool) else value


def compares_durations(found: Difference) -> bool:
    return bool(re.search(r"[<>=] ?\d+(ms|s|m|h)\b", json.dumps(found.rule.get("validate"))))


_PROJECTION = re.compile(r"\[\?|\[\]|\[\*\]|\.\*|map\(&|\[1:\]")


def same_reasons(found: Difference) -> bool:
    mine, other = (sorted(text.split("(Forbidden reason: ")) for text in (found.ours.text, found.theirs.text))
    return len(mine) > 1 and [part.rstrip() for part in mine] == [part.rstrip() for part in other]


def lacks(found: Difference, name: str) -> bool:
    """Hold where the details are equal but for one property that ours have."""
    if found.aspect != "details" or " + " in found.ours.details:
        return False
    mine, other = json.loads(found.ours.details), json.loads(found.theirs.details)
    return mine.get("properties", {}).pop(name, None) is not None and mine == other


def fails_under_projections(found: Difference) -> bool:
    """Hold for an object that lacks the changes of a rule, which may have failed under a projection."""
    if found.batch.family != "mutate" or found.key.kind != "object" or ABSENT in (found.ours, found.theirs):
        return False
    mine, other = json.loads(found.ours.text), json.loads(found.theirs.text)
    return has_projection(json.dumps(found.policy)) and (mine == found.resource or _is_within(mine, other))


def _is_within(mine: JSON, other: JSON) -> bool:
    """Hold where two values are equal but for fields that the other one has beside."""
    if isinstance(mine, dict) and isinstance(other, dict):
        return mine.keys() <= other.keys() and all(_is_within(each, other[key]) for key, each in mine.items())
    return mine == other


def may_have_failed(found: Difference) -> bool:
    """Hold for an object that our rules left as it was, where one of several mutations reads a value that may fail."""
    rules = found.policy.get("spec", {}).get("rules", ())
    return (
        found.batch.family == "mutate"
        and found.key.kind == "object"
        and found.ours != ABSENT
        and json.loads(found.ours.text) == found.resource
        and len(rules) > 1
        and "{{" in json.dumps(rules)
    )


def has_values_of_others(found: Difference) -> bool:
    """Hold where the values file gives another policy a field of the same object."""
    return any(
        key.startswith("request.object.")
        for policy in (found.batch.values or {}).get("policies", ())
        if policy["name"] != found.key.policy
        for resource in policy.get("resources", ())
        if resource["name"] == found.resource_name
        for key in resource.get("values", {})
    )


def names_a_field_twice(found: Difference) -> bool:
    """Hold for an object changed by a patch with a field and a condition on it: `labels` beside `(labels)`.

    Hold for a result as well, where Kyverno changes nothing, since the field is what it lost.
    """
    if found.key.kind == "result":
        is_lost = (found.ours.status, found.theirs.text) == ("pass", "no patches applied")
        return found.batch.family == "mutate" and is_lost and _has_twins(found.rule.get("mutate"))
    return found.batch.family == "mutate" and found.key.kind == "object" and _has_twins(found.policy.get("spec"))


def _has_twins(value: JSON) -> bool:
    if isinstance(value, dict):
        return any(f"({key})" in value for key in value) or any(_has_twins(each) for each in value.values())
    return isinstance(value, list) and any(_has_twins(each) for each in value)


def is_unchanged(found: Difference) -> bool:
    return found.key.kind == "object" and found.ours == ABSENT and json.loads(found.theirs.text) == found.resource


def is_later_rule(found: Difference) -> bool:
    rules = found.policy.get("spec", {}).get("rules", ())
    return found.key.kind == "result" and found.theirs == ABSENT and found.rule in rules[1:]


def both_refuse(found: Difference) -> bool:
    return found.key.kind == "policy" and ABSENT not in (found.ours, found.theirs)


ADMISSION = ("admission", "parameters")


def projects_maps_twice(found: Difference) -> bool:
    """Hold for two truth values of a rule that compares the values of maps, which Kyverno reads in random order."""
    texts = (found.ours.text, found.theirs.text)
    return (
        found.aspect == "text"
        and all(text in ("true", "false") for text in texts)
        and len(re.findall(r"\.\*|values\(|keys\(|items\(", json.dumps(found.rule.get("validate", {}).get("message"))))
        > 1
    )


def describes_request(found: Difference) -> bool:
    """Hold for a message that shows fields of the request beside its object and user."""
    message = json.dumps(found.rule.get("validate", {}).get("message"))
    return found.aspect == "text" and bool(re.search(r"request\.(?!object|userInfo|operation)", message))


def has_exception_for_other_operations(found: Difference) -> bool:
    """Hold where Kyverno skips by an exception whose match lists operations without CREATE."""
    return "due to policy exceptions" in found.theirs.text and any(
        operations and "CREATE" not in operations
        for item in found.batch.exceptions
        if excepted_policy(item) == found.key.policy
        for part in (item["spec"].get("match") or {}).values()
        for entry in part
        if (operations := entry.get("resources", {}).get("operations"))
    )


def looks_for_parameters(found: Difference) -> bool:
    """Hold where a binding of the policy selects its parameters by labels, or names no namespace."""
    return any(
        "paramRef" in item["spec"]
        and ("selector" in item["spec"]["paramRef"] or "namespace" not in item["spec"]["paramRef"])
        for item in found.batch.policies
        if item["metadata"]["name"] == found.key.policy
    )


def has_foreign_exception(found: Difference) -> bool:
    """Hold for a GeneratingPolicy beside an exception for another one."""
    return found.policy.get("kind") == "GeneratingPolicy" and any(
        item["spec"]["policyRefs"][0]["name"] != found.key.policy for item in found.batch.exceptions
    )
