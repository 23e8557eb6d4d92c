# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards that keep a fault in its rule, and a bad object to one answer (F4, I11, I12, I14)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["CONTAINMENT"]

_MATCH: Final = "engine/match.py"
_ENGINE: Final = "engine/engine.py"
_QUESTION: Final = "kube/admissionreview.py"
_TEMPLATE: Final = "lang/template/template.py"

CONTAINMENT: Final = (
    guard(
        "I5", "an object without namespace is in that of its request",
        "subresources::test_a_policy_of_a_namespace_judges_connections_in_it",
        (_MATCH, "return resource.namespace or request.namespace", "return resource.namespace"),
    ),
    guard(
        "I5", "rules for a namespace are chosen by that of the request",
        "subresources::test_namespaces_of_a_match_look_at_the_request",
        (_MATCH, "return any(test(key.namespace) for test in self.namespaces)", "return True"),
    ),
    guard(
        "I5", "a Namespace is an object of the cluster",
        "subresources::test_a_policy_of_a_namespace_does_not_judge_the_namespace_itself",
        (_MATCH, 'if request.gvk.kind == "Namespace":\n        return resource.namespace', "if False:\n        pass"),
    ),
    guard(
        "F4", "a bug is an error of its rule",
        "faults::test_a_bug_never_leaves_its_rule faults::test_a_bug_of_a_host_is_an_error_of_the_calling_rule"
        " faults::test_the_failure_policy_judges_a_bug",
        (_ENGINE, "except Exception as error:\n            return (error_verdict(error),)",
         "except PyvernoError as error:\n            return (error_verdict(error),)"),
    ),
    guard(
        "F4", "a bug in one target is an error of this target",
        "faults::test_a_bug_in_one_target_leaves_the_others",
        ("engine/actions/mutate.py", "except Exception as error:\n            return error_verdict(error, target=target)",
         "except PyvernoError as error:\n            return error_verdict(error, target=target)"),
    ),
    guard(
        "I4", "the text of a bug names no value", "faults::test_the_text_of_a_bug_names_no_value",
        ("engine/faults.py", 'text = f"internal error: {text} ({fault.code})"', "text = str(error)"),
    ),
    guard(
        "I4", "errors show variables as they are written", "canary::test_an_error_shows_nothing_that_a_rule_read",
        ("engine/redaction.py", "        message = _without(message, _forms(value), variable)\n", "        pass\n"),
    ),
    guard(
        "I11", "functions answer bad arguments with typed errors", "containment::test_no_expression_escapes_as_a_crash",
        ("lang/jmespath/functions/numbers.py", "    except ZeroDivisionError:\n", "    except FloatingPointError:\n"),
    ),
    guard(
        "I11", "keys of rendered documents are texts", "containment::test_no_value_at_any_position_is_a_crash",
        (_TEMPLATE, "    if not isinstance(name, str):\n", "    if False:\n"),
    ),
    guard(
        "I11", "deep objects are judged", "containment::test_deep_objects_are_judged_or_refused_but_never_fatal",
        (_ENGINE, "course = _Course(request,", 'import copy\n        copy.deepcopy(request.object)\n        course = _Course(request,'),
    ),
    guard(
        "I11", "documents have a depth", "containment::test_documents_deeper_than_the_limit_are_refused",
        ("kube/yaml/events.py", "if flow > MAX_FLOW_DEPTH:", "if False:"),
        ("kube/jsonscan.py", "if len(stack) >= MAX_DEPTH:", "if False:"),
    ),
    guard(
        "I11", "numbers and texts are read as Go reads them",
        "containment::test_numbers_that_are_none_are_refused containment::test_surrogates_never_break_the_writer",
        ("kube/json.py", "        return _decode_unusual(raw)\n", '        return __import__("json").loads(raw)\n'),
        ("kube/json.py", 'text = _SURROGATE.sub("\\ufffd", text)', "pass"),
    ),
    guard(
        "I11", "reviews that are none are refused",
        "admission::test_an_invalid_review_is_refused_and_disturbs_no_other",
        (_QUESTION, "        _check(request)\n", "        pass\n"),
    ),
    guard(
        "I11", "parts of reviews have their types", "fuzzed_reviews::test_damaged_reviews_are_answered_or_refused",
        (_QUESTION, "        _check(request)\n", "        pass\n"),
    ),
    guard(
        "I11", "one bad resource does not end a run",
        "bad_input::test_a_bad_resource_is_one_error_and_the_others_are_judged[duplicate-key]",
        ("kube/yaml/events.py", "        if key in frame.lines:\n", "        if False:\n"),
    ),
    guard(
        "I11", "an odd object is judged or is one error",
        "bad_input::test_an_unusual_resource_is_judged[9000-levels-with-null]",
        ("offline/resources.py", "    except RecursionError:\n", "    except ZeroDivisionError:\n"),
    ),
    guard(
        "I11", "a field that nobody knows is an error",
        "bad_input::test_a_bad_policy_is_an_error_and_the_others_judge[duplicate-key]",
        ("kube/yaml/events.py", "        if key in frame.lines:\n", "        if False:\n"),
    ),
    guard(
        "I11", "what cannot be read is said",
        "bad_input::test_what_is_not_there_is_said bad_input::test_a_folder_in_place_of_a_file_is_said"
        " bad_input::test_a_link_that_leads_nowhere_is_said",
        ("offline/files.py", "                is_large = len(content) > MAX_FILE_BYTES\n    except OSError as error:",
         "                is_large = len(content) > MAX_FILE_BYTES\n    except ZeroDivisionError as error:"),
    ),
    guard(
        "I11", "names of objects are no paths", "bad_input::test_generated_names_never_leave_the_output_folder",
        ("cli/apply/files.py", 'inside(path, file_name(name, ".yaml"))', 'path / f"{name}.yaml"'),
    ),
    guard(
        "I12", "inputs are not changed", "containment::test_a_review_never_changes_its_input",
        (_ENGINE, "course = _Course(request,", 'request.object and request.object.setdefault("x", 1)\n        course = _Course(request,'),
    ),
    guard(
        "I12", "a mutation of a mutation is nothing",
        "containment::test_mutating_twice_is_mutating_once admission::test_a_mutation_of_a_mutation_is_nothing",
        ("engine/actions/patches.py", "            resolved = overlay.resolve(document, meter=budget, followers=followers)\n",
         '            document = {**document, "x": document.get("x", 0) + 1}\n'
         "            resolved = overlay.resolve(document, meter=budget, followers=followers)\n"),
    ),
)  # fmt: skip
