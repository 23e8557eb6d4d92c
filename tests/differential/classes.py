"""Classes of differences: each is a rule that recognises one paragraph of docs/differences.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from pyverno.kube.json import JSON
from tests.differential.compare import ABSENT, Difference
from tests.differential.documents import has_empty_process, keeps_anchors, reorders

__all__ = ["CLASSES", "DifferenceClass", "classify"]

Holds = Callable[[Difference], bool]


@dataclass(frozen=True, slots=True)
class DifferenceClass:
    """A class; `paragraph` is a text that docs/differences.md contains."""

    name: str
    paragraph: str
    holds: Holds


def classify(difference: Difference) -> DifferenceClass | None:
    """Return the first class that explains a difference; None for one that nothing explains."""
    return next((each for each in CLASSES if each.holds(difference)), None)


# --- conditions of classes --------------------------------------------------------------------------------------------


def _texts(*, ours: str, theirs: str) -> Holds:
    """Hold where the status is the same and both texts contain a pattern."""
    mine, other = re.compile(ours), re.compile(theirs)

    def holds(found: Difference) -> bool:
        if found.aspect != "text" or found.key.kind == "object":
            return False
        return bool(mine.search(found.ours.text)) and bool(other.search(found.theirs.text))

    return holds


def _all(*several: Holds) -> Holds:
    return lambda found: all(each(found) for each in several)


def _ours_fails(text: str) -> Holds:
    """Hold where the statuses differ and ours is an error with such a text."""
    wanted = re.compile(text)
    return lambda found: (
        found.aspect == "status" and found.ours.status == "error" and bool(wanted.search(found.ours.text))
    )


def _family(*names: str) -> Holds:
    return lambda found: found.batch.family in names


def _has_loop(found: Difference) -> bool:
    return "foreach" in found.rule.get("validate", {})


def _has_pattern(found: Difference) -> bool:
    validate = found.rule.get("validate", {})
    return any(key in part for part in (validate, *validate.get("foreach", ())) for key in ("pattern", "anyPattern"))


def _projects(found: Difference) -> bool:
    return _has_projection(f"{found.key.rule} {found.ours.text} {json.dumps(found.rule)}")


def _has_projection(text: str) -> bool:
    return bool(_PROJECTION.search(text))


def _fails_at_an_integer(found: Difference) -> bool:
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


def _compares_durations(found: Difference) -> bool:
    return bool(re.search(r"[<>=] ?\d+(ms|s|m|h)\b", json.dumps(found.rule.get("validate"))))


_PROJECTION = re.compile(r"\[\?|\[\]|\[\*\]|\.\*|map\(&|\[1:\]")


def _same_reasons(found: Difference) -> bool:
    mine, other = (sorted(text.split("(Forbidden reason: ")) for text in (found.ours.text, found.theirs.text))
    return len(mine) > 1 and [part.rstrip() for part in mine] == [part.rstrip() for part in other]


def _without(found: Difference, name: str) -> bool:
    """Hold where the details are equal but for one property that ours have."""
    if found.aspect != "details" or " + " in found.ours.details:
        return False
    mine, other = json.loads(found.ours.details), json.loads(found.theirs.details)
    return mine.get("properties", {}).pop(name, None) is not None and mine == other


def _is_unchanged(found: Difference) -> bool:
    return found.key.kind == "object" and found.ours == ABSENT and json.loads(found.theirs.text) == found.resource


def _is_selected(found: Difference) -> bool:
    """Hold for an admission policy with an object selector, which Kyverno leaves out."""
    spec = found.policy.get("spec", {})
    return "objectSelector" in spec.get("matchConstraints", {}) or "resourceRules" in spec.get("matchConstraints", {})


def _is_later_rule(found: Difference) -> bool:
    rules = found.policy.get("spec", {}).get("rules", ())
    return found.key.kind == "result" and found.theirs == ABSENT and found.rule in rules[1:]


def _both_refuse(found: Difference) -> bool:
    return found.key.kind == "policy" and ABSENT not in (found.ours, found.theirs)


_ADMISSION = ("admission", "parameters")


def _projects_maps_twice(found: Difference) -> bool:
    """Hold for two truth values of a rule that compares the values of maps, which Kyverno reads in random order."""
    texts = (found.ours.text, found.theirs.text)
    return (
        found.aspect == "text"
        and all(text in ("true", "false") for text in texts)
        and len(re.findall(r"\.\*|values\(|keys\(|items\(", json.dumps(found.rule.get("validate", {}).get("message"))))
        > 1
    )


def _looks_for_parameters(found: Difference) -> bool:
    """Hold where a binding of the policy selects its parameters by labels, or names no namespace."""
    return any(
        "paramRef" in item["spec"]
        and ("selector" in item["spec"]["paramRef"] or "namespace" not in item["spec"]["paramRef"])
        for item in found.batch.policies
        if item["metadata"]["name"] == found.key.policy
    )


def _has_foreign_exception(found: Difference) -> bool:
    """Hold for a GeneratingPolicy beside an exception for another one."""
    return found.policy.get("kind") == "GeneratingPolicy" and any(
        item["spec"]["policyRefs"][0]["name"] != found.key.policy for item in found.batch.exceptions
    )


# --- the classes ------------------------------------------------------------------------------------------------------

_DESCRIBED = (
    r"\((a|an|the) \w+( of [\d,]+ \w+)?\)|argument #\d|a list|an object|a string|a number|a boolean|invalid operand"
)

CLASSES: tuple[DifferenceClass, ...] = (
    DifferenceClass(
        "every problem of a policy is reported",
        "Every problem of a policy is reported, with file, line, column and field path",
        _both_refuse,
    ),
    DifferenceClass(
        "expressions that do not compile",
        "An expression of `validate.cel` or of a ValidatingAdmissionPolicy that does not compile",
        lambda found: (
            found.key.kind == "policy"
            and found.theirs == ABSENT
            and found.ours.text.startswith("ERROR: <input>")
            and (
                found.policy.get("kind") == "ValidatingAdmissionPolicy"
                or any("cel" in rule.get("validate", {}) for rule in found.policy.get("spec", {}).get("rules", ()))
            )
        ),
    ),
    DifferenceClass(
        "expressions that end the run",
        "Operators and functions that get a value of another type than they expect are an error of the rule",
        lambda found: found.key.kind == "policy" and found.theirs.text.startswith("panic:"),
    ),
    DifferenceClass(
        "errors of functions describe operands",
        "Errors of JMESPath functions, nested variables and patches name the function",
        _texts(ours=_DESCRIBED, theirs="JMESPath query failed|JMESPath function|Invalid type for"),
    ),
    DifferenceClass(
        "errors of patches describe values",
        "Errors of JMESPath functions, nested variables and patches name the function",
        _texts(ours="failed to patch resource", theirs="failed to patch resource"),
    ),
    DifferenceClass(
        "pattern mismatches name only the path",
        "The message of a pattern mismatch names only the path",
        _all(
            _has_pattern, _texts(ours="does not match|failed to resolve|different structures", theirs="does not match")
        ),
    ),
    DifferenceClass(
        "messages of patterns that cannot be resolved",
        "if the message of a `pattern` cannot be resolved, it names the variable without a value",
        _all(_has_pattern, _texts(ours="failed to resolve", theirs="variables substitution error in rule")),
    ),
    DifferenceClass(
        "preconditions of an element that fail",
        "An element of `validate.foreach` whose preconditions cannot be evaluated is an error of the rule",
        _all(_has_loop, _ours_fails("failed to evaluate preconditions")),
    ),
    DifferenceClass(
        "lists of a loop that cannot be read",
        "If the `list` of a `validate.foreach` reads an entry with an error",
        _all(_has_loop, _ours_fails("failed to evaluate list|failed to load context")),
    ),
    DifferenceClass(
        "errors under projections",
        "In JMESPath, an error of a function is an error under `[]`, `[?…]` and `.*` as well",
        _all(
            _projects,
            lambda found: found.ours.status == "error" and found.aspect != "details" and "JMESPath" in found.ours.text,
        ),
    ),
    DifferenceClass(
        "denials without a message",
        "A failed `deny` whose message cannot be resolved has the message",
        lambda found: found.ours.status == "fail" == found.theirs.status and found.theirs.text == "",
    ),
    DifferenceClass(
        "order of the reasons of podSecurity",
        "The reasons of a `podSecurity` failure are in the order of the controls",
        lambda found: found.aspect == "text" and _same_reasons(found),
    ),
    DifferenceClass(
        "generated objects in results",
        "Results of generation name the generated objects, and why a rule was skipped",
        lambda found: (
            _without(found, "generated-resources")
            or (found.batch.family == "generate" and found.ours.status == "skip" == found.theirs.status)
        ),
    ),
    DifferenceClass(
        "objects of GeneratingPolicies",
        "Objects of a GeneratingPolicy are printed once, with the labels that they get in a cluster",
        lambda found: found.key.resource == "generated" and found.policy.get("kind") == "GeneratingPolicy",
    ),
    DifferenceClass(
        "objects whose mutation fails",
        "An object whose mutation fails is neither printed nor written",
        lambda found: (found.key.kind == "object" and found.theirs.text == "{}") or _is_later_rule(found),
    ),
    DifferenceClass(
        "objects that no MutatingPolicy changes",
        "An object that no policy in CEL changes is neither printed nor written",
        lambda found: found.batch.family == "celmutate" and _is_unchanged(found),
    ),
    DifferenceClass(
        "constraints of admission policies with bindings",
        "Offline, a ValidatingAdmissionPolicy with bindings applies to objects that its `matchConstraints` select",
        lambda found: found.batch.family in _ADMISSION and found.ours == ABSENT and _is_selected(found),
    ),
    DifferenceClass(
        "denials behind ignored errors",
        "a validation of a ValidatingAdmissionPolicy that is false is a fail, whatever errors come before it",
        lambda found: (
            found.batch.family in _ADMISSION
            and found.policy.get("spec", {}).get("failurePolicy") == "Ignore"
            and (found.ours.status, found.theirs.status) == ("fail", "error")
        ),
    ),
    DifferenceClass(
        "parameters that labels select",
        "Parameters that a binding selects by labels are evaluated one by one",
        lambda found: found.batch.family == "parameters" and _looks_for_parameters(found),
    ),
    DifferenceClass(
        "images that are skipped",
        "An image of `skipImageReferences` needs no verification",
        lambda found: "unverified image" in found.theirs.text and "skipImageReferences" in json.dumps(found.rule),
    ),
    DifferenceClass(
        "order of images",
        "Images are evaluated in the order of their containers",
        _texts(
            ours=r"^(missing digest for|unverified image) \S+$", theirs=r"^(missing digest for|unverified image) \S+$"
        ),
    ),
    DifferenceClass(
        "exceptions for other GeneratingPolicies",
        "An exception counts for the policies that its `policyRefs` name",
        _has_foreign_exception,
    ),
    DifferenceClass(
        "objects of other namespaces",
        "A NamespacedDeletingPolicy has no result for an object of another namespace",
        lambda found: (
            found.policy.get("kind") == "NamespacedDeletingPolicy"
            and found.ours == ABSENT
            and found.resource["metadata"].get("namespace") != found.policy["metadata"]["namespace"]
        ),
    ),
    DifferenceClass(
        "processes and exceptions of deletions",
        "Results of deletions have no empty `process`, and name the exception that kept the object",
        has_empty_process,
    ),
    DifferenceClass(
        "requests of manifests",
        "Offline, `request.oldObject` is null in a CREATE, and `request` has the kind and resource of the object",
        lambda found: (
            found.batch.family == "users"
            and "JMESPath query failed: Unknown key" in found.theirs.text
            and "request." in found.theirs.text
        ),
    ),
    DifferenceClass(
        "numbers of resources",
        "Integers stay integers",
        _texts(ours=r"types\.Int|int64|\(int\)", theirs=r"types\.Double|float64|\(double\)"),
    ),
    DifferenceClass(
        "integers and durations in patterns",
        "Integers stay integers",
        _all(_has_pattern, _compares_durations, lambda found: found.aspect == "status"),
    ),
    DifferenceClass(
        "integers and texts in patterns",
        "Integers stay integers",
        _all(_has_pattern, _fails_at_an_integer),
    ),
    DifferenceClass(
        "messages with errors under projections",
        "In JMESPath, an error of a function is an error under `[]`, `[?…]` and `.*` as well",
        _all(_projects, _texts(ours=r"^validation error: rule \S+ failed$", theirs=r"^(null|\[.*\]|false|true|\d+)$")),
    ),
    DifferenceClass(
        "objects generated with errors under projections",
        "In JMESPath, an error of a function is an error under `[]`, `[?…]` and `.*` as well",
        lambda found: (
            found.key.resource == "generated" and found.ours == ABSENT and _has_projection(json.dumps(found.policy))
        ),
    ),
    DifferenceClass(
        "generating rules and admission policies that fail",
        "A generating rule whose object cannot be made, and a MutatingAdmissionPolicy that fails, are errors",
        lambda found: (
            found.ours.status == "error"
            and (found.batch.family, found.theirs.status) in (("generate", "pass"), ("celmutate", "none"))
        ),
    ),
    DifferenceClass(
        "texts of JSON patches",
        "`patchesJson6902` texts are parsed once",
        lambda found: found.ours.status == "pass" and "failed to decode patches" in found.theirs.text,
    ),
    DifferenceClass(
        "order of the values of a map",
        "`keys` and `values` are in the order of sorted keys",
        lambda found: (
            found.aspect == "text"
            and bool(re.search(r"\.\*|values\(|keys\(|items\(", json.dumps(found.rule)))
            and sorted(found.ours.text) == sorted(found.theirs.text)
        ),
    ),
    DifferenceClass(
        "comparisons of the values of a map",
        "`keys` and `values` are in the order of sorted keys, and so are the values of `.*`",
        _projects_maps_twice,
    ),
    DifferenceClass(
        "order of items of a strategic merge",
        "Items of lists that a strategic merge patch does not touch stay as they are, in their order",
        reorders,
    ),
    DifferenceClass(
        "conditions written as fields",
        "A condition around a whole part of a strategic merge patch, such as `(metadata)`, is never written",
        keeps_anchors,
    ),
    DifferenceClass(
        "indexes of a wrong type",
        "An index of a wrong type is named by its CEL type",
        _texts(ours=r"unsupported index type '\w+' in list", theirs=r"invalid qualifier type: \*?types\.\w+"),
    ),
    DifferenceClass(
        "audit annotations that fail",
        "An audit annotation of a ValidatingAdmissionPolicy that cannot be evaluated is an error",
        lambda found: (
            found.batch.family == "admission"
            and found.ours.status == "error"
            and any(
                found.ours.text.startswith(f"expression '{each['valueExpression']}'")
                for each in found.policy.get("spec", {}).get("auditAnnotations", ())
            )
        ),
    ),
    DifferenceClass(
        "items without a merge key",
        "Items of lists that a strategic merge patch does not touch stay as they are",
        lambda found: (
            found.batch.family == "mutate"
            and "patchStrategicMerge" in found.rule.get("mutate", {})
            and ((found.ours.status, found.theirs.status) == ("skip", "pass") or "wrong node kind" in found.theirs.text)
        ),
    ),
)
