# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards that keep an error an error (I5), and exceptions narrow (I6)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["FAILING"]

_MATCH: Final = "engine/match.py"
_ENGINE: Final = "engine/engine.py"
_EXISTING: Final = "compiler/rules/validating.py"
_DECISION: Final = "engine/decision.py"
_EXCEPTIONS: Final = "engine/rules/exceptions.py"

FAILING: Final = (
    guard(
        "I5", "an error of a rule is a result",
        "failing_closed::test_a_loader_that_fails_denies failing_closed::test_a_condition_that_errs_denies"
        " containment::test_one_poisoned_object_leaves_the_others_judged"
        " admission::test_a_world_that_is_away_denies_by_failure_policy",
        (_ENGINE, "return (error_verdict(error),)", "return ()"),
        ("engine/actions/deny.py",
         'return (Verdict(Status.ERROR, f"failed to check deny conditions: {error.message}"),)', "return ()"),
    ),
    guard(
        "I5", "an error denies where the policy enforces and fails",
        "failing_closed::test_a_loader_that_fails_denies failing_closed::test_a_condition_that_errs_denies"
        " failing_closed::test_a_lister_of_an_expression_that_fails_denies"
        " admission::test_a_world_that_is_away_denies_by_failure_policy",
        (_DECISION, "return result.status is Status.ERROR and _is_enforced(result)", "return False"),
    ),
    guard(
        "I5", "errors between us and the API server are typed", "admission::test_errors_of_the_host_are_typed",
        ("cluster/client.py",
         'raise HostError(f"the API server `{where}` cannot be reached for `{what}`: {fault}") from None', "raise"),
    ),
    guard(
        "I5", "a list that errs is an error beside lists that pass",
        "failing_closed::test_a_list_that_errs_denies_beside_lists_that_pass",
        ("engine/actions/foreach.py", "if list_error:  # also", "if list_error and not applied:  # also"),
    ),
    guard(
        "I5", "who asks excuses no update",
        "existing_violations::test_who_asks_is_no_violation_that_existed[user-deny]"
        " existing_violations::test_who_asks_is_no_violation_that_existed[service-account-context]"
        " existing_violations::test_who_asks_is_no_violation_of_a_pod_template",
        (_EXISTING, "return background or not any(", "return True or not any("),
    ),
    guard(
        "I5", "an object without a signature excuses no update",
        "existing_violations::test_an_object_without_a_signature_excuses_no_change_of_it",
        (_EXISTING, "if validate.cel is not None or validate.manifests is not None:", "if validate.cel is not None:"),
    ),
    guard(
        "I5", "what was wrong before is excused", "existing_violations::test_what_the_object_was_before_is_excused",
        (_EXISTING, "return background or not any(", "return background and not any("),
    ),
    guard(
        "I5", "nothing that a requester sets skips a rule",
        "failing_closed::test_no_value_of_any_metadata_skips_a_rule"
        " failing_closed::test_no_metadata_of_the_requester_skips_a_rule"
        " admission::test_no_field_that_a_user_sets_skips_evaluation",
        (_ENGINE, "for step in policies.plan(phases, key, deadline):",
         'for step in () if "deletionTimestamp" in request.subject["metadata"]'
         " else policies.plan(phases, key, deadline):"),
    ),
    guard(
        "I5", "an object of odd types is judged", "failing_closed::test_wrong_types_never_let_an_object_through",
        (_ENGINE, "for step in policies.plan(phases, key, deadline):",
         "for step in policies.plan(phases, key, deadline)"
         ' if isinstance(request.subject["metadata"], dict) else ():'),
    ),
    guard(
        "I5", "a projection absorbs no error of a function",
        "tests/unit/lang/jmespath/test_compiler.py::test_an_error_of_a_function_is_an_error_under_every_projection",
        ("lang/jmespath/compiler.py", "ABSORBED: Final = (UnknownKeyError, NullArgumentError)",
         "ABSORBED: Final = (EvaluationError,)"),
    ),
    guard(
        "I5", "a failed patch leaves the object",
        "failing_closed::test_a_failed_patch_leaves_the_object_as_it_was images::test_a_patch_that_fails_hides_no_image",
        ("engine/actions/mutate.py", "return (Verdict(Status.ERROR, error.message),)",
         "return (Verdict(Status.ERROR, error.message, patched={}),)"),
    ),
    guard(
        "I5", "a DELETE is judged by what is deleted", "failing_closed::test_a_delete_is_judged_too",
        (_ENGINE, "for step in policies.plan(phases, key, deadline):",
         "for step in policies.plan(phases, key, deadline) if request.object is not None else ():"),
    ),
    guard(
        "I7", "an image that cannot be verified is an error", "failing_closed::test_image_rules_without_a_registry_deny",
        ("engine/actions/verify_images.py",
         "            return (Verdict(Status.ERROR, self._failed(error.message)),), ImageStatus.FAIL\n",
         "            return (), ImageStatus.PASS\n"),
        ("engine/actions/verify_images.py",
         'return resource, "", Verdict(Status.ERROR, f"failed to update digest: {error.message}")',
         'return resource, "", None'),
    ),
    guard(
        "I7", "what does not compile is an error", "failing_closed::test_a_policy_whose_compilation_hits_a_bug_errs",
        ("engine/actions/unavailable.py", "return (Verdict(Status.ERROR, self.message),)", "return ()"),
    ),
    guard(
        "I6", "an exception is about what it matches", "exceptions::test_exceptions_are_never_merged",
        (_EXCEPTIONS, "if self.matcher.mismatch(run.request, resource) is not None:", "if False:"),
    ),
    guard(
        "I6", "what two exceptions allow together neither allows",
        "exceptions::test_pod_security_exceptions_are_never_merged",
        ("engine/actions/pod_security.py",
         "outcome = check(run.resource, run.request.gvk.kind, exemption.pod_security)",
         "outcome = self.check.check(\n"
         "                    run.resource, run.request.gvk.kind, [each for one in exemptions for each in one.pod_security]\n"
         "                )"),
    ),
    guard(
        "I6", "an exception for an image is for that image",
        "exceptions::test_an_exception_for_one_image_is_not_for_its_neighbour",
        ("podsecurity/excludes.py", "            if errors:\n", "            if False:\n"),
    ),
    guard(
        "I10", "a wildcard of an object neither excuses nor exempts",
        "tests/unit/engine/test_condition_sides.py::test_whose_wildcards_count",
        ("engine/rules/conditions.py", "if is_negated(name) is not excuse else BOTH_SIDES", "if False else BOTH_SIDES"),
    ),
    guard(
        "I10", "a wildcard of an object does not exempt it", "exceptions::test_a_wildcard_of_the_object_exempts_nothing",
        ("compiler/rules/exception.py", "blocks=True, excuse=True", "blocks=True"),
    ),
    guard(
        "I5", "the name of a request counts where its object has none",
        "subresources::test_names_of_a_match_look_at_the_request",
        (_MATCH, "resource.name or resource.generate_name or request.name", "resource.name or resource.generate_name"),
    ),
    guard(
        "I1", "an exception reads its own namespace", "cel_confinement::test_an_exception_reads_its_own_namespace_only",
        ("engine/cel/exceptions.py", "own = replace(run, broker=replace(run.broker, namespace=self.namespace or run.broker.namespace))", "own = run"),
    ),
    guard(
        "I6", "an exception for images or values is not for the whole policy",
        "exceptions::test_exceptions_for_policies_in_cel_are_never_merged"
        " images::test_an_exception_for_an_image_does_not_admit_another",
        ("engine/actions/cel/validate.py", "full = [exemption for exemption in exemptions if exemption.is_full]",
         "full = list(exemptions)"),
    ),
    guard(
        "I6", "an empty match exempts nothing", "exceptions::test_an_exception_with_an_empty_match_exempts_nothing",
        (_MATCH, "if not self.blocks:", "if False:"),
    ),
    guard(
        "I6", "exceptions count where they may live only",
        "exception_namespaces::test_an_exception_of_a_tenant_has_no_effect",
        ("controllers/state/policystore.py", 'return settings.namespace in ("*", item.written.namespace or "default")', "return True"),
        ("controllers/state/policystore.py", "if not settings.enabled or item.errors or item.written is None:",
         "if item.errors or item.written is None:"),
    ),
    guard(
        "I6", "twin: an exception in the namespace that was named counts",
        "exception_namespaces::test_an_exception_in_the_namespace_of_exceptions_counts",
        ("controllers/state/policystore.py", 'return settings.namespace in ("*", item.written.namespace or "default")', "return False"),
    ),
)  # fmt: skip
