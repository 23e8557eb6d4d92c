"""Classes of differences: each is a rule that recognises one paragraph of docs/differences.md."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tests.differential.compare import ABSENT, Difference
from tests.differential.conditions import (
    ADMISSION,
    Holds,
    both,
    both_refuse,
    compares_durations,
    describes_request,
    fails_at_an_integer,
    fails_under_projections,
    has_exception_for_other_operations,
    has_fewer_objects,
    has_foreign_exception,
    has_loop,
    has_pattern,
    has_projection,
    has_values_of_others,
    have_texts,
    is_later_rule,
    is_unchanged,
    lacks,
    looks_for_parameters,
    may_have_failed,
    names_a_field_twice,
    ours_fails,
    projects,
    projects_maps_twice,
    same_reasons,
)
from tests.differential.documents import (
    drops_items,
    has_empty_process,
    is_unselected,
    keeps_anchors,
    loses_items,
    reorders,
    replaces_lists,
)

__all__ = ["CLASSES", "DifferenceClass", "classify"]


@dataclass(frozen=True, slots=True)
class DifferenceClass:
    """A class; `paragraph` is a text that docs/differences.md contains."""

    name: str
    paragraph: str
    holds: Holds


def classify(difference: Difference) -> DifferenceClass | None:
    """Return the first class that explains a difference; None for an unexplained one."""
    return next((each for each in CLASSES if each.holds(difference)), None)


_DESCRIBED = (
    r"\((a|an|the) \w+( of [\d,]+ \w+)?\)|argument #\d|a list|an object|a string|a number|a boolean|invalid operand"
)

CLASSES: tuple[DifferenceClass, ...] = (
    DifferenceClass(
        "answers that change from run to run",
        "The same input gives the same answer",
        lambda found: found.again is not None and found.again == found.ours,
    ),
    DifferenceClass(
        "cleanup policies that a cluster refuses",
        "Offline, a cleanup policy that a cluster refuses is refused",
        lambda found: (
            found.key.kind == "policy"
            and found.theirs == ABSENT
            and found.policy.get("kind") in ("CleanupPolicy", "ClusterCleanupPolicy")
            and bool(re.search("not allowed in namespaced polic|matching an empty set", found.ours.text))
        ),
    ),
    DifferenceClass(
        "operations of exceptions",
        "`operations` in the match of a PolicyException count",
        has_exception_for_other_operations,
    ),
    DifferenceClass(
        "lists of configurations that are applied",
        "Offline, an `ApplyConfiguration` of a MutatingAdmissionPolicy merges lists as the API server does",
        replaces_lists,
    ),
    DifferenceClass(
        "operands of functions in CEL",
        "Errors of functions, indexes and keys describe operands by type or length",
        have_texts(ours=r"index out of range$", theirs=r"index out of range: \d+$"),
    ),
    DifferenceClass(
        "every problem of a policy is reported",
        "Every problem of a policy is reported, with file, line, column and field path",
        both_refuse,
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
        have_texts(ours=_DESCRIBED, theirs="JMESPath query failed|JMESPath function|Invalid type for"),
    ),
    DifferenceClass(
        "suggestions behind unknown functions",
        "The error of an unknown function in `jp query` names what was probably meant",
        lambda found: (
            found.key.kind == "query"
            and found.ours.status == "error" == found.theirs.status
            and re.sub(r"(unknown function: \w+): did you mean `\w+`\?$", r"\1", found.ours.text) == found.theirs.text
        ),
    ),
    DifferenceClass(
        "errors of patches describe values",
        "Errors of JMESPath functions, nested variables and patches name the function",
        have_texts(ours="failed to patch resource", theirs="failed to patch resource"),
    ),
    DifferenceClass(
        "pattern mismatches name only the path",
        "The message of a pattern mismatch names only the path",
        both(
            has_pattern,
            have_texts(ours="does not match|failed to resolve|different structures", theirs="does not match"),
        ),
    ),
    DifferenceClass(
        "messages of patterns that cannot be resolved",
        "if the message of a `pattern` cannot be resolved, it names the variable without a value",
        both(has_pattern, have_texts(ours="failed to resolve", theirs="variables substitution error in rule")),
    ),
    DifferenceClass(
        "preconditions of an element that fail",
        "An element of `validate.foreach` whose preconditions cannot be evaluated is an error of the rule",
        both(has_loop, ours_fails("failed to evaluate preconditions")),
    ),
    DifferenceClass(
        "conditions of mutations that are not evaluated",
        "A variable without value in a part of a mutate rule that is not evaluated",
        lambda found: (
            found.batch.family == "mutate"
            and "variable substitution failed" not in found.ours.text
            and bool(re.search(r"^variable substitution failed: .* at path /preconditions/a\w\w/", found.theirs.text))
        ),
    ),
    DifferenceClass(
        "lists of a loop that cannot be read",
        "If the `list` of a `validate.foreach` cannot be evaluated, the rule is an error",
        both(has_loop, ours_fails("failed to evaluate list|failed to load context")),
    ),
    DifferenceClass(
        "errors under projections",
        "In JMESPath, an error of a function is an error under `[]`, `[?…]` and `.*` as well",
        both(
            projects,
            lambda found: found.ours.status == "error" and found.aspect != "details" and "JMESPath" in found.ours.text,
        ),
    ),
    DifferenceClass(
        "denials without a message",
        "A failed `deny` whose message cannot be resolved has the message",
        # the second text is that of an element of a loop
        lambda found: (
            found.ours.status == "fail" == found.theirs.status and found.theirs.text in ("", "validation failure: ")
        ),
    ),
    DifferenceClass(
        "order of the reasons of podSecurity",
        "The reasons of a `podSecurity` failure are in the order of the controls",
        lambda found: found.aspect == "text" and same_reasons(found),
    ),
    DifferenceClass(
        "generated objects in results",
        "Results of generation name the generated objects, and why a rule was skipped",
        lambda found: (
            lacks(found, "generated-resources")
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
        lambda found: (
            (found.key.kind == "object" and found.theirs.text == "{}") or is_later_rule(found) or may_have_failed(found)
        ),
    ),
    DifferenceClass(
        "objects that no MutatingPolicy changes",
        "An object that no policy in CEL changes is neither printed nor written",
        lambda found: found.batch.family == "celmutate" and is_unchanged(found),
    ),
    DifferenceClass(
        "constraints of admission policies with bindings",
        "Offline, an admission policy with bindings applies to objects that its `matchConstraints` select",
        lambda found: found.batch.family in (*ADMISSION, "celmutate") and found.ours == ABSENT and is_unselected(found),
    ),
    DifferenceClass(
        "denials behind ignored errors",
        "a validation of a ValidatingAdmissionPolicy that is false is a fail, whatever errors come before it",
        lambda found: (
            found.batch.family in ADMISSION
            and found.policy.get("spec", {}).get("failurePolicy") == "Ignore"
            and (found.ours.status, found.theirs.status) == ("fail", "error")
        ),
    ),
    DifferenceClass(
        "parameters that labels select",
        "Parameters that a binding selects by labels are evaluated one by one",
        lambda found: found.batch.family == "parameters" and looks_for_parameters(found),
    ),
    DifferenceClass(
        "images that are skipped",
        "An image of `skipImageReferences` needs no verification",
        lambda found: "unverified image" in found.theirs.text and "skipImageReferences" in json.dumps(found.rule),
    ),
    DifferenceClass(
        "order of images",
        "Images are evaluated in the order of their containers",
        have_texts(
            ours=r"^(missing digest for|unverified image) \S+$", theirs=r"^(missing digest for|unverified image) \S+$"
        ),
    ),
    DifferenceClass(
        "exceptions for other GeneratingPolicies",
        "An exception counts for the policies that its `policyRefs` name",
        has_foreign_exception,
    ),
    DifferenceClass(
        "objects of other namespaces",
        "A namespaced policy in CEL has no result for an object of another namespace",
        lambda found: (
            str(found.policy.get("kind")).startswith("Namespaced")
            and found.ours == ABSENT
            and found.resource["metadata"].get("namespace") != found.policy["metadata"]["namespace"]
        ),
    ),
    DifferenceClass(
        "processes and exceptions of deletions",
        "Results have no empty `process`, and those of deletions name the exception that kept the object",
        has_empty_process,
    ),
    DifferenceClass(
        "requests of manifests",
        "Offline, `request.oldObject` is null in a CREATE, and `request` has the kind and resource of the object",
        lambda found: (
            found.batch.family == "users"
            and (
                (
                    re.search("JMESPath query failed: (Unknown key|Invalid type for: <nil>)", found.theirs.text)
                    and "request." in found.theirs.text
                )
                or describes_request(found)
            )
        ),
    ),
    DifferenceClass(
        "numbers of resources",
        "Integers stay integers",
        have_texts(ours=r"types\.Int|int64|\(int\)", theirs=r"types\.Double|float64|\(double\)"),
    ),
    DifferenceClass(
        "integers and durations in patterns",
        "Integers stay integers",
        # the message of an `anyPattern` names the patterns that failed
        both(
            has_pattern,
            compares_durations,
            lambda found: found.aspect == "status" or "anyPattern" in found.rule.get("validate", {}),
        ),
    ),
    DifferenceClass(
        "integers and texts in patterns",
        "Integers stay integers",
        both(has_pattern, fails_at_an_integer),
    ),
    DifferenceClass(
        "messages with errors under projections",
        "In JMESPath, an error of a function is an error under `[]`, `[?…]` and `.*` as well",
        both(
            projects, have_texts(ours=r"^validation error: rule \S+ failed$", theirs=r"^(null|\[.*\]|false|true|\d+)$")
        ),
    ),
    DifferenceClass(
        "fields beside conditions on them",
        "A strategic merge patch may hold a field and a condition on it",
        names_a_field_twice,
    ),
    DifferenceClass(
        "values for other policies",
        "Values of a file count for the policy that they are given for",
        has_values_of_others,
    ),
    DifferenceClass(
        "objects unchanged after errors under projections",
        "In JMESPath, an error of a function is an error under `[]`, `[?…]` and `.*` as well",
        fails_under_projections,
    ),
    DifferenceClass(
        "objects generated with errors under projections",
        "In JMESPath, an error of a function is an error under `[]`, `[?…]` and `.*` as well",
        lambda found: (
            found.key.resource == "generated" and has_fewer_objects(found) and has_projection(json.dumps(found.policy))
        ),
    ),
    DifferenceClass(
        "generating rules and admission policies that fail",
        "A generating rule whose object cannot be made, a MutatingPolicy whose patch cannot be applied, and a "
        "MutatingAdmissionPolicy that fails, are errors",
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
        projects_maps_twice,
    ),
    DifferenceClass(
        "order of items of a strategic merge",
        "Items of lists that a strategic merge patch does not touch stay as they are, in their order",
        reorders,
    ),
    DifferenceClass(
        "items that a strategic merge removes",
        "Each element of a list in a strategic merge patch changes the items that its conditions select",
        drops_items,
    ),
    DifferenceClass(
        "conditions written as fields",
        "A condition around a whole part of a strategic merge patch, such as `(metadata)`, is never written",
        keeps_anchors,
    ),
    DifferenceClass(
        "indexes of a wrong type",
        "An index of a wrong type is named by its CEL type",
        have_texts(ours=r"unsupported index type '\w+' in list", theirs=r"invalid qualifier type: \*?types\.\w+"),
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
        "items without a merge key in objects",
        "Items of lists that a strategic merge patch does not touch stay as they are",
        loses_items,
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
