# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards that the security tests are about, and how each is taken away: the text of a module, and another one.

Tests that hold a guard to let harmless questions pass ("twins") are proven by a guard that lets nothing pass. This
module must never import the package: what it says of the source is text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.security.imageguards import IMAGE_GUARDS

__all__ = ["GUARDS", "WITHOUT_GUARD", "Edit", "Guard"]


@dataclass(frozen=True, slots=True)
class Edit:
    """In a module (below `src/pyverno`) one text stands for another; it must be there exactly once."""

    module: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Guard:
    """What is taken away, for which row of the register, and the tests (node ids) that must then fail.

    `may_hang` says that a test which never ends has failed: that is what the guard is against.
    """

    row: str
    name: str
    tests: tuple[str, ...]
    edits: tuple[Edit, ...]
    may_hang: bool = False


def _guard(row: str, name: str, tests: str, *edits: tuple[str, str, str], may_hang: bool = False) -> Guard:
    """Make a guard of tests as `file::test` below tests/security, or as whole paths, one a line."""
    found = tuple(each if each.startswith("tests/") else f"tests/security/test_{each}" for each in tests.split())
    nodes = tuple(each.replace("::", ".py::", 1) if ".py" not in each else each for each in found)
    return Guard(row, name, nodes, tuple(Edit(*edit) for edit in edits), may_hang)


_BROKER, _APIPATH, _MATCH = "engine/broker.py", "kube/apipath.py", "engine/match.py"
_RULES, _EGRESS, _URL = "cluster/egressrules.py", "cluster/egress.py", "cluster/serviceurl.py"
_ENGINE, _DECISION, _EXCEPTIONS = "engine/engine.py", "engine/decision.py", "engine/rules/exceptions.py"
_BUDGET, _SERVER, _QUESTION = "lang/runtime.py", "webhook/server.py", "kube/admissionreview.py"
_BODIES: Final = "webhook/bodies.py"
_WORLD, _TEMPLATE = "engine/cel/world.py", "lang/template/template.py"
_FUNCTION: Final = "lang/jmespath/function.py"
_COST: Final = "lang/jmespath/cost.py"

_CONFINED: Final = (
    _guard(
        "I1", "API paths of other namespaces and of the cluster are refused",
        "confinement::test_a_namespaced_policy_calls_no_foreign_path"
        " admission::test_a_namespaced_policy_can_not_make_the_webhook_read_elsewhere",
        (_BROKER, "if path.namespace != self.namespace or path.is_namespace_object:", "if False:"),
    ),
    _guard(
        "I1", "twin: the own namespace is open", "confinement::test_a_namespaced_policy_reads_its_own_namespace",
        (_BROKER, "if path.namespace != self.namespace or path.is_namespace_object:", "if True:"),
    ),
    _guard(
        "I1", "policies of a namespace only read", "confinement::test_a_namespaced_policy_may_not_write",
        (_BROKER, "if method not in _READ_METHODS:", "if False:"),
    ),
    _guard(
        "I1", "objects and ConfigMaps are asked for in the own namespace only",
        "confinement::test_a_namespaced_policy_reads_no_foreign_config_map"
        " confinement::test_a_namespaced_policy_clones_nothing_from_elsewhere"
        " confinement::test_a_namespaced_policy_patches_no_foreign_target",
        (_BROKER, "if self.namespace and namespace != self.namespace:", "if False:"),
        ("compiler/validation/generate.py",
         'if problem:\n        findings.error("generate-scope", (*path, "namespace"), f"target',
         'if False:\n        findings.error("generate-scope", (*path, "namespace"), f"target'),
        ("compiler/validation/generate.py", 'if clones.namespace != (policy.namespace or ""):', "if False:"),
        ("compiler/validation/spec.py", "if target.namespace and target.namespace != policy.namespace:", "if False:"),
    ),
    _guard(
        "I1", "policies of a namespace read no cluster-scoped objects",
        "confinement::test_a_namespaced_policy_patches_no_cluster_scoped_target",
        (_BROKER,
         "if self.namespace and self.host.kinds.is_namespaced(GVK(*parse_api_version(api_version), kind)) is False:",
         "if False:"),
    ),
    _guard(
        "I1", "services are not for context entries of namespaced policies",
        "confinement::test_a_namespaced_policy_calls_no_service"
        " egress::test_policies_of_a_namespace_call_services_only_where_that_is_opened",
        (_BROKER, "        if self.namespace:\n", "        if False:\n"),
    ),
    _guard(
        "I1", "HTTP of expressions needs the flag",
        "egress::test_policies_of_a_namespace_call_services_only_where_that_is_opened"
        " cel_confinement::test_a_library_asks_nothing_beyond_the_namespace",
        (_BROKER,
         "if self.namespace and not (isinstance(self.host, NamespacedHttpHost) and self.host.allows_http_in_namespaces):",
         "if False:"),
        ("compiler/validation/cel.py", "    if policy.is_namespaced:\n", "    if False:\n"),
    ),
    _guard(
        "I1", "a namespaced policy is about objects of its namespace",
        "confinement::test_a_namespaced_policy_matches_no_other_namespace",
        (_MATCH, 'if self.policy_namespace and (key.namespace != self.policy_namespace or key.gvk.kind == "Namespace"):',
         "if False:"),
        (_MATCH, "if self.policy_namespace and self.policy_namespace != namespace_of(request, resource):", "if False:"),
    ),
    _guard(
        "I1", "owners do not cross namespaces", "confinement::test_clones_carry_no_owner_across_namespaces",
        ("engine/actions/generate.py", 'metadata.pop("ownerReferences", None)', "pass"),
    ),
    _guard(
        "I1", "CEL: the global context is closed to namespaced policies",
        "cel_confinement::test_a_library_asks_nothing_beyond_the_namespace",
        (_WORLD, 'if self.broker.namespace:\n            raise EvaluationError(f"a policy of namespace '
         '`{self.broker.namespace}` may not read the global context")', "if False:\n            pass"),
    ),
    _guard(
        "I1", "CEL: generated objects stay in the namespace",
        "cel_confinement::test_nothing_is_generated_beyond_the_namespace",
        (_WORLD, "if own and namespace != own:", "if False:"),
    ),
    _guard(
        "I1", "CEL: kinds of the whole cluster are refused",
        "cel_confinement::test_a_library_asks_nothing_beyond_the_namespace",
        (_WORLD, "if known is not None and not known.namespaced:", "if False:"),
        (_BROKER, "if path.namespace != self.namespace or path.is_namespace_object:", "if False:"),
    ),
    _guard(
        "I1", "CEL: the authorizer tells nothing of other namespaces",
        "cel_confinement::test_the_authorizer_is_not_asked_about_others",
        (_WORLD, "self._confine_authorization(check)", "pass"),
    ),
    _guard(
        "I1", "CEL: functions for other namespaces are not declared",
        "cel_confinement::test_other_namespaces_can_not_be_named",
        ("lang/cel/presets.py", "for each in (NAMESPACED_RESOURCE, NAMESPACED_GENERATOR)}",
         "for each in (NAMESPACED_GENERATOR,)}"),
    ),
    _guard(
        "I1", "CEL, twin: the own namespace answers", "cel_confinement::test_a_library_answers_for_the_own_namespace",
        (_BROKER, "if path.namespace != self.namespace or path.is_namespace_object:", "if True:"),
    ),
    _guard(
        "I2", "dot segments are refused",
        "confinement::test_odd_paths_are_refused_for_every_policy"
        " confinement::test_an_odd_path_that_variables_made_is_refused",
        (_APIPATH, 'if part in (".", ".."):', "if False:"),
    ),
    _guard(
        "I2", "encoded and odd characters are refused", "confinement::test_odd_paths_are_refused_for_every_policy",
        (_APIPATH, "if bad is not None:", "if False:"),
    ),
    _guard(
        "I2", "empty segments are refused", "confinement::test_odd_paths_are_refused_for_every_policy",
        (_APIPATH, "if not part:", "if False:"),
    ),
    _guard(
        "I2", "parameters are on a list", "confinement::test_odd_paths_are_refused_for_every_policy",
        (_APIPATH, "if key not in _QUERY_KEYS:", "if False:"),
    ),
    _guard(
        "I2", "the checked path is the one that is sent",
        "confinement::test_the_path_that_is_sent_is_the_one_that_was_checked",
        (_APIPATH, 'return f"{self.path}?{urlencode(self.query)}" if self.query else self.path', "return self.path"),
    ),
)  # fmt: skip

_EGRESS_GUARDS: Final = (
    _guard(
        "I3", "addresses are held against the ranges",
        "egress::test_this_machine_and_metadata_services_are_blocked_by_default"
        " egress::test_ranges_that_an_operator_blocks_are_blocked"
        " egress::test_a_name_with_one_bad_address_is_not_called"
        " egress::test_the_address_that_is_dialled_is_judged_by_itself",
        (_RULES, "if each in network:", "if False:"),
    ),
    _guard(
        "I3", "twin: other addresses are open",
        "egress::test_neighbours_of_blocked_ranges_are_open egress::test_without_the_guard_the_same_name_is_called",
        (_RULES, "if each in network:", "if True:"),
    ),
    _guard(
        "I3", "addresses inside of addresses are judged", "egress::test_an_address_inside_of_another_is_judged",
        (_RULES, "for each in (address, *embedded_addresses(address)):", "for each in (address,):"),
    ),
    _guard(
        "I3", "metadata services behind any translator are recognized",
        "tests/unit/cluster/test_egressrules.py"
        "::test_metadata_services_are_recognized_behind_translators_that_nothing_marks",
        (_RULES, "if carries_metadata(address):", "if False:"),
    ),
    _guard(
        "I3", "URLs with credentials are refused", "egress::test_what_can_be_read_in_two_ways_is_not_called",
        (_URL, 'if "@" in text:', "if False:"),
        (_URL, "if len(text) > 253 or not all(0 < len(label) <= 63 and _NAME.issuperset(label) for label in labels):",
         "if False:"),
    ),
    _guard(
        "I3", "addresses in other than the usual form are refused",
        "egress::test_what_can_be_read_in_two_ways_is_not_called",
        (_URL, 'return not (last.isdecimal() or last.startswith("0x"))', "return True"),
    ),
    _guard(
        "I3", "dot segments of services are refused", "egress::test_what_can_be_read_in_two_ways_is_not_called",
        (_URL, 'if any(segment in (".", "..") for segment in after.replace("\\\\", "/").split("/")):', "if False:"),
    ),
    _guard(
        "I3", "ports of other protocols are refused", "egress::test_what_can_be_read_in_two_ways_is_not_called",
        (_URL, "if port in _OTHER_PROTOCOLS:", "if False:"),
    ),
    _guard(
        "I3", "names on the list are blocked", "egress::test_names_of_metadata_services_are_blocked_in_every_spelling",
        (_RULES, "if url.name in self.hosts:", "if False:"),
    ),
    _guard(
        "I3", "all addresses of a name are judged", "egress::test_a_name_with_one_bad_address_is_not_called",
        (_EGRESS, "self._rules.check_address(address, host)", "pass"),
    ),
    _guard(
        "I3", "what was judged is what is dialled",
        "egress::test_a_name_is_resolved_once_and_what_was_judged_is_dialled",
        (_EGRESS, "        return [\n            ResolveResult(",
         "        addresses = [ip_address(text) for text in await self._lookup(host, port)]\n"
         "        return [\n            ResolveResult("),
    ),
    _guard(
        "I3", "a last look at the address of the socket",
        "egress::test_the_address_that_is_dialled_is_judged_by_itself",
        (_EGRESS, 'self._settings.rules.check_address(ip_address(str(place[0])), "the service")', "pass"),
    ),
    _guard(
        "I3", "no redirect is followed", "egress::test_no_redirect_is_followed",
        (_EGRESS, "allow_redirects=False", "allow_redirects=True"),
    ),
    _guard(
        "I3", "no proxy of the environment", "egress::test_no_proxy_is_taken_from_the_environment",
        (_EGRESS, "trust_env=False", "trust_env=True"),
    ),
    _guard(
        "I3", "answers have a size", "egress::test_an_endless_answer_is_cut_off",
        (_EGRESS, "if most and total > most:", "if total > 40_000_000:\n                break\n            if False:"),
    ),
    _guard(
        "I3", "answers are not unpacked", "egress::test_a_small_answer_does_not_become_a_large_one",
        (_EGRESS, "auto_decompress=False", "auto_decompress=True"),
    ),
    _guard(
        "I4", "no cookies", "egress::test_nothing_of_ours_goes_along",
        (_EGRESS, "cookie_jar=aiohttp.DummyCookieJar(),", ""),
    ),
    _guard(
        "I4", "our own token is no token for services",
        "tests/unit/cluster/test_egress.py::test_our_own_token_is_no_token_for_services",
        (_EGRESS, "if self.token_file is not None and self.token_file.absolute().is_relative_to(SERVICE_ACCOUNT):",
         "if False:"),
    ),
    _guard(
        "I4", "without the guard no service is called",
        "admission::test_our_credential_goes_to_the_api_server_only",
        ("cluster/host.py", "        if self._egress is None:\n", "        if False:\n"),
    ),
    _guard(
        "I4", "the body of a failed answer stays out of errors",
        "failing_closed::test_the_body_of_an_answer_never_shows",
        ("offline/host.py", 'raise HostError(f"HTTP {answer.status}")', 'raise HostError(f"HTTP {answer.body}")'),
    ),
    _guard(
        "I4", "what a broken API server says stays out of errors",
        "admission::test_what_a_broken_api_server_says_is_not_shown",
        ("cluster/client.py",
         'raise StatusError(status, "", f"the server answered `{method} {path}` with status {status}")',
         'raise StatusError(status, "", answer.decode())'),
    ),
)  # fmt: skip

_CLOSED: Final = (
    _guard(
        "I5", "an error of a rule is a result",
        "failing_closed::test_a_loader_that_fails_denies failing_closed::test_a_condition_that_errs_denies"
        " containment::test_one_poisoned_object_leaves_the_others_judged"
        " admission::test_a_world_that_is_away_denies_by_failure_policy",
        (_ENGINE, "return (error_verdict(error),)", "return ()"),
        ("engine/actions/deny.py",
         'return (Verdict(Status.ERROR, f"failed to check deny conditions: {error.message}"),)', "return ()"),
    ),
    _guard(
        "I5", "an error denies where the policy enforces and fails",
        "failing_closed::test_a_loader_that_fails_denies failing_closed::test_a_condition_that_errs_denies"
        " failing_closed::test_a_lister_of_an_expression_that_fails_denies"
        " failing_closed::test_image_rules_without_a_registry_deny"
        " admission::test_a_world_that_is_away_denies_by_failure_policy",
        (_DECISION, "return result.status is Status.ERROR and _is_enforced(result)", "return False"),
    ),
    _guard(
        "I5", "errors between us and the API server are typed", "admission::test_errors_of_the_host_are_typed",
        ("cluster/client.py",
         'raise HostError(f"the API server cannot be reached for `{what}`: {_why(error)}") from None', "raise"),
    ),
    _guard(
        "I5", "nothing that a requester sets skips a rule",
        "failing_closed::test_no_value_of_any_metadata_skips_a_rule"
        " failing_closed::test_no_metadata_of_the_requester_skips_a_rule"
        " admission::test_no_field_that_a_user_sets_skips_evaluation",
        (_ENGINE, "for step in policies.plan(phases, key, budget.deadline):",
         'for step in () if "deletionTimestamp" in request.subject["metadata"]'
         " else policies.plan(phases, key, budget.deadline):"),
    ),
    _guard(
        "I5", "an object of odd types is judged", "failing_closed::test_wrong_types_never_let_an_object_through",
        (_ENGINE, "for step in policies.plan(phases, key, budget.deadline):",
         "for step in policies.plan(phases, key, budget.deadline)"
         ' if isinstance(request.subject["metadata"], dict) else ():'),
    ),
    _guard(
        "I5", "a projection absorbs no error of a function",
        "tests/unit/lang/jmespath/test_compiler.py::test_an_error_of_a_function_is_an_error_under_every_projection",
        ("lang/jmespath/compiler.py", "ABSORBED: Final = (UnknownKeyError, NullArgumentError)",
         "ABSORBED: Final = (EvaluationError,)"),
    ),
    _guard(
        "I5", "a failed patch leaves the object", "failing_closed::test_a_failed_patch_leaves_the_object_as_it_was",
        ("engine/actions/mutate.py", "return (Verdict(Status.ERROR, error.message),)",
         "return (Verdict(Status.ERROR, error.message, patched={}),)"),
    ),
    _guard(
        "I5", "a DELETE is judged by what is deleted", "failing_closed::test_a_delete_is_judged_too",
        (_ENGINE, "for step in policies.plan(phases, key, budget.deadline):",
         "for step in policies.plan(phases, key, budget.deadline) if request.object is not None else ():"),
    ),
    _guard(
        "I7", "what cannot be verified is an error", "failing_closed::test_image_rules_without_a_registry_deny",
        ("engine/actions/unavailable.py", "return (Verdict(Status.ERROR, self.message),)", "return ()"),
    ),
    _guard(
        "I6", "an exception is about what it matches", "exceptions::test_exceptions_are_never_merged",
        (_EXCEPTIONS, "if self.matcher.mismatch(run.request, resource) is not None:", "if False:"),
    ),
    _guard(
        "I6", "what two exceptions allow together neither allows",
        "exceptions::test_pod_security_exceptions_are_never_merged",
        ("engine/actions/pod_security.py",
         "outcome = check(run.resource, run.request.gvk.kind, exemption.pod_security)",
         "outcome = self.check.check(\n"
         "                    run.resource, run.request.gvk.kind, [each for one in exemptions for each in one.pod_security]\n"
         "                )"),
    ),
    _guard(
        "I6", "an exception for an image is for that image",
        "exceptions::test_an_exception_for_one_image_is_not_for_its_neighbour",
        ("podsecurity/excludes.py", "            if errors:\n", "            if False:\n"),
    ),
    _guard(
        "I6", "an empty match exempts nobody", "exceptions::test_an_exception_with_an_empty_match_exempts_nobody",
        (_MATCH, "if not self.blocks:", "if False:"),
    ),
    _guard(
        "I6", "exceptions count where they may live only",
        "exception_namespaces::test_an_exception_of_a_tenant_has_no_effect",
        ("controllers/state/policystore.py", 'if settings.namespace in ("*", namespace):', "if True:"),
        ("controllers/state/policystore.py", "if not settings.enabled or item.errors or item.written is None:",
         "if item.errors or item.written is None:"),
    ),
    _guard(
        "I6", "twin: an exception in the namespace that was named counts",
        "exception_namespaces::test_an_exception_in_the_namespace_of_exceptions_counts",
        ("controllers/state/policystore.py", 'if settings.namespace in ("*", namespace):', "if False:"),
    ),
)  # fmt: skip

_LIMITED: Final = (
    _guard(
        "I9", "a text has a size where it is made", "limits::test_texts_have_a_limit_where_they_are_made",
        (_BUDGET, "if size > self.text_bytes:", "if False:"),
    ),
    _guard(
        "I9", "the context has a size", "limits::test_context_entries_are_counted_together",
        (_BUDGET, "if self.context_used > self.context_bytes:", "if False:"),
    ),
    _guard(
        "I9", "texts and context have a size", "limits::test_forty_doublings_end_at_the_limit_of_the_context",
        (_BUDGET, "if size > self.text_bytes:", "if False:"),
        (_BUDGET, "if self.context_used > self.context_bytes:", "if False:"),
    ),
    _guard(
        "I9", "elements are counted", "limits::test_foreach_elements_are_counted",
        (_BUDGET, "if self.elements < 0:", "if False:"),
    ),
    _guard(
        "I9", "calls are counted", "limits::test_network_calls_are_counted",
        (_BUDGET, "if self.calls < 0:", "if False:"),
    ),
    _guard(
        "I9", "steps are counted", "limits::test_steps_are_counted", (_BUDGET, "if self.steps < 0:", "if False:"),
    ),
    _guard(
        "I9", "a review has a deadline", "limits::test_a_deadline_ends_a_review",
        (_BUDGET, "if self.deadline is not None and time.monotonic() > self.deadline:", "if False:"),
    ),
    _guard(
        "I5", "a policy whose compilation hits a bug stays", "failing_closed::test_a_policy_whose_compilation_hits_a_bug_errs",
        ("compiler/compile.py", "return Compiled(document, written, _stand_in(document, written, fault), errors",
         "return Compiled(document, written, errors"),
    ),
    _guard(
        "I5", "a policy whose decoding hits a bug stays",
        "failing_closed::test_a_policy_in_cel_whose_compilation_hits_a_bug_errs",
        ("compiler/compile.py", "    policy = None if fault is None else _stand_in(document, None, fault)\n",
         "    policy = None\n"),
    ),
    _guard(
        "I9", "the deadline is looked at before each rule", "limits::test_a_rule_after_the_deadline_is_an_error",
        ("engine/engine.py", "            course.runtime.budget.check_deadline()\n            if candidate", "            if candidate"),
    ),
    _guard(
        "I9", "containers are charged before they are read", "limits::test_containers_are_charged_before_they_are_read",
        ("podsecurity/pod.py", "            self.meter.charge_steps(_STEPS_OF_OBJECT)\n", ""),
    ),
    _guard(
        "I9", "messages of the Pod Security Standards are bounded",
        "limits::test_a_message_of_the_pod_security_standards_lists_so_many_fields",
        ("podsecurity/evaluate.py", "if len(listed) > MAX_MESSAGE:", "if False:"),
    ),
    _guard(
        "I9", "regular expressions of policies run on RE2",
        "limits::test_regular_expressions_of_policies_are_linear",
        ("lang/regex/compiler.py", "return re2.compile(pattern, options)",
         'return __import__("re").compile(pattern.encode())'),
        may_hang=True,
    ),
    _guard(
        "I9", "wildcards do not backtrack", "limits::test_wildcards_are_linear",
        ("kube/wildcard.py", "    return _compiled(pattern)(text)",
         '    return __import__("re").fullmatch(pattern.replace("*", ".*"), text) is not None'),
        may_hang=True,
    ),
    _guard(
        "I9", "bodies of requests have a size", "admission::test_a_body_beyond_the_limit_is_never_held",
        (_BODIES, "if size > self._max_bytes:", "if False:"),
    ),
    _guard(
        "I9", "bodies without a length have a size", "admission::test_a_body_beyond_the_limit_is_never_held",
        (_BODIES, "if len(found) + len(part) > self._max_bytes:", "if False:"),
    ),
    _guard(
        "I9", "encoded bodies are refused",
        "tests/unit/webhook/test_connections.py::test_a_body_in_another_form_is_refused_with_a_status[gzip]",
        (_BODIES, 'if any(coding.lower() != "identity" for coding in headers.getall("Content-Encoding", ())):',
         "if False:"),
    ),
    _guard(
        "I9", "the parser inflates nothing",
        "tests/unit/webhook/test_connections.py::test_an_encoded_body_is_never_inflated",
        ("webhook/connections.py", '"auto_decompress": False', '"auto_decompress": True'),
    ),
    _guard(
        "I9", "bodies that never arrive do not hold up the end",
        "tests/unit/webhook/test_connections.py"
        "::test_requests_whose_body_never_arrives_do_not_hold_up_the_end",
        (_SERVER, "        self._bodies.hurry(_LAST_BODY_SECONDS)\n", ""),
        may_hang=True,
    ),
    _guard(
        "I9", "a connection has to ask something", "admission::test_a_connection_without_a_question_is_closed",
        ("webhook/connections.py", "        if handler in self._silent:\n", "        if False:\n"),
    ),
    _guard(
        "I9", "connections are counted", "admission::test_connections_beyond_the_limit_are_closed_and_the_others_served",
        ("webhook/connections.py", "if len(self.connections) > self._max_connections and not self._close_longest_idle():",
         "if False:"),
    ),
    _guard(
        "I9", "idle connections make room", "admission::test_connections_that_asked_once_make_room_for_new_ones",
        ("webhook/connections.py", " and not self._close_longest_idle():", ":"),
    ),
    _guard(
        "I9", "connections at work keep their place",
        "admission::test_a_connection_whose_request_is_in_work_is_not_idle",
        ("webhook/connections.py", " or time.monotonic() - since < self._reclaim_seconds:", ":"),
    ),
    _guard(
        "I9", "the slow decoder reads short texts",
        "tests/unit/kube/test_json.py::test_a_long_text_that_is_too_deep_or_no_json_is_refused_at_once",
        ("kube/json.py", "        if len(raw) > MAX_SCANNED_BYTES:\n", "        if False:\n"),
    ),
    _guard(
        "I9", "reports about CEL show a hundred problems",
        "tests/unit/lang/cel/syntax/test_source.py::test_a_compile_error_shows_a_hundred_issues_and_counts_the_others",
        ("lang/cel/syntax/source.py", "self.issues[:MAX_ISSUES_SHOWN]", "self.issues"),
    ),
    _guard(
        "I9", "image references have a length",
        "tests/unit/kube/test_imageref.py::test_a_reference_of_more_than_4096_characters_is_refused",
        ("kube/imageref.py", "    if len(text) > _MAX_REFERENCE:\n", "    if False:\n"),
    ),
    _guard(
        "I9", "comparing versions costs by their identifiers",
        "tests/unit/lang/cel/test_prices.py::test_what_a_call_takes_is_charged",
        ("lang/cel/libraries/kubernetes/versions.py", "    return sum(len(each.prerelease) for", "    return sum(0 for"),
    ),
    _guard(
        "I9", "brackets of YAML have a depth",
        "tests/unit/kube/yaml/test_documents.py::test_brackets_in_yaml_are_nested_a_few_hundred_levels_at_most",
        ("kube/yaml/events.py", "            if flow > MAX_FLOW_DEPTH:\n", "            if False:\n"),
    ),
    _guard(
        "I9", "a review compiles for a moment only",
        "tests/unit/engine/test_policyset.py::test_a_review_with_a_deadline_compiles_for_a_moment_only",
        ("engine/timeslice.py", "                self.is_over = self._left <= 0\n", ""),
    ),
    _guard(
        "I9", "handshakes have a time", "admission::test_who_begins_with_tls_and_does_not_go_on_is_sent_away",
        ("webhook/connections.py", "ssl_handshake_timeout=limit,", "ssl_handshake_timeout=limit and 300.0,"),
    ),
    _guard(
        "I9", "aliases of YAML have a size",
        "bad_input::test_a_bad_resource_is_one_error_and_the_others_are_judged[alias-bomb]",
        ("kube/yaml/events.py", "if self.spent > self.limit:", "if False:"),
        may_hang=True,
    ),
    _guard(
        "I9", "reviews have so many values", "budgets::test_an_admission_review_has_so_many_values",
        (_QUESTION, "    _check_count(body)\n", ""),
    ),
    _guard(
        "I9", "denials have a length", "budgets::test_the_text_of_a_denial_has_a_length",
        (_QUESTION, "if len(raw) <= MAX_MESSAGE_BYTES:", "if True:"),
    ),
    _guard(
        "I9", "random texts have a length", "budgets::test_random_text_has_a_length",
        ("lang/regex/generator.py", "if self._length > MAX_LENGTH:", "if False:"),
    ),
    _guard(
        "I9", "regular expressions have a length", "budgets::test_a_regular_expression_has_a_length",
        ("lang/regex/compiler.py", 'if len(pattern.encode("utf-8", "replace")) > MAX_PATTERN:', "if False:"),
    ),
    _guard(
        "I9", "what is unpacked has a length", "budgets::test_gzip_does_not_grow_without_end",
        ("lang/cel/libraries/kyverno/data.py", "min(MAX_DECOMPRESSED, max(len(data) * MAX_RATIO, 4096))", "MAX_DECOMPRESSED"),
    ),
    _guard(
        "I9", "limits of the server are those of the reference", "budgets::test_the_server_takes_what_the_reference_says",
        (_SERVER, "body_bytes: int = 7 * 1024 * 1024", "body_bytes: int = 1 << 40"),
    ),
    _guard(
        "I9", "reviews have a depth", "budgets::test_deep_objects_are_within_the_limit_of_reviews",
        ("kube/jsonscan.py", "if len(stack) >= MAX_DEPTH:", "if False:"),
    ),
    _guard(
        "I4", "errors of CEL functions show no data", "cel_canaries::test_no_function_shows_an_operand_that_is_data",
        ("lang/cel/faults.py", "return shown(error) if is_written else error", "return shown(error)"),
    ),
    _guard(
        "I4", "errors of CEL keys and indexes show no data",
        "cel_canaries::test_no_expression_shows_data_in_its_error",
        ("lang/cel/runtime/steps.py", "raise (shown(error) if is_written else error) from None", "raise shown(error) from None"),
    ),
    _guard(
        "I4", "twin: what an expression writes is shown",
        "cel_canaries::test_what_the_policy_writes_is_shown_as_cel_go_shows_it",
        ("lang/cel/runtime/steps.py", "raise (shown(error) if is_written else error) from None", "raise"),
    ),
    _guard(
        "I9", "expressions in CEL have a cost", "cel_limits::test_an_expression_costs_so_much_and_no_more",
        ("lang/cel/runtime/evaluation.py", "if cost > self.limit:", "if False:"),
        ("lang/cel/runtime/evaluation.py", "if self.frame[COST] + cost > self.limit:", "if False:"),
        may_hang=True,
    ),
    _guard(
        "I9", "a runaway policy ends", "bad_input::test_a_runaway_policy_ends_quickly[doubling]",
        (_BUDGET, "if size > self.text_bytes:", "if False:"),
        (_BUDGET, "if self.context_used > self.context_bytes:", "if False:"),
        may_hang=True,
    ),
)  # fmt: skip

_INERT: Final = (
    _guard(
        "I10", "values are never scanned again",
        "inert_data::test_text_of_an_object_is_inserted_as_it_is inert_data::test_text_of_an_answer_is_inserted_as_it_is"
        " inert_data::test_a_mutation_copies_text_without_reading_it",
        (_TEMPLATE, 'path: str = "", rescan: bool = False) -> Template:',
         'path: str = "", rescan: bool = True) -> Template:'),
    ),
    _guard(
        "I10", "a nested variable fills a hole", "inert_data::test_a_nested_variable_is_a_name_not_syntax",
        ("lang/template/slot.py",
         "return query.evaluate(scope, runtime, tuple([values[hole] for hole in self.holes]), prefix + self.path)",
         "filled = [values[hole] for hole in self.holes]\n"
         "        query = compile_query(_filled(query.text, filled)) if filled else query\n"
         "        return query.evaluate(scope, runtime, (), prefix + self.path)"),
    ),
    _guard(
        "I10", "wildcards stand in patterns only", "inert_data::test_an_objects_wildcards_match_only_themselves",
        (_ENGINE, "course = _Course(request,", "course = _Course(_widened(request),"),
        (_ENGINE, "def _passes(check:",
         "def _widened(request: Request) -> Request:\n"
         '    data = {key: "exact" if "*" in value else value for key, value in request.object["data"].items()}\n'
         '    return request.with_object({**request.object, "data": data})\n\n\n'
         "def _passes(check:"),
    ),
    _guard(
        "I10", "tags of YAML make no objects", "inert_data::test_yaml_tags_make_no_objects",
        ("kube/yaml/scalars.py", "if accepts is None:\n        return text", "if accepts is None:\n        return object()"),
    ),
    _guard(
        "I10", "what is shown is quoted", "inert_data::test_denials_quote_what_they_show",
        ("kube/yaml/writer.py", "return text if _is_plain(text) else _single_quoted(text)", "return text"),
    ),
)  # fmt: skip

_CONTAINED: Final = (
    _guard(
        "I5", "an object without namespace is in that of its request",
        "subresources::test_a_policy_of_a_namespace_judges_connections_in_it"
        " subresources::test_namespaces_of_a_match_look_at_the_request",
        (_MATCH, "return resource.namespace or request.namespace", "return resource.namespace"),
    ),
    _guard(
        "I5", "a Namespace is an object of the cluster",
        "subresources::test_a_policy_of_a_namespace_does_not_judge_the_namespace_itself",
        (_MATCH, 'if request.gvk.kind == "Namespace":\n        return resource.namespace', "if False:\n        pass"),
    ),
    _guard(
        "F4", "a bug is an error of its rule",
        "faults::test_a_bug_never_leaves_its_rule faults::test_a_host_with_a_bug_is_an_error_of_who_asks_it"
        " faults::test_the_failure_policy_judges_a_bug",
        (_ENGINE, "except Exception as error:\n            return (error_verdict(error),)",
         "except PyvernoError as error:\n            return (error_verdict(error),)"),
    ),
    _guard(
        "F4", "a bug in one target is an error of this target",
        "faults::test_a_bug_in_one_target_leaves_the_others",
        ("engine/actions/mutate.py", "except Exception as error:\n            return error_verdict(error, target=target)",
         "except PyvernoError as error:\n            return error_verdict(error, target=target)"),
    ),
    _guard(
        "I4", "the text of a bug names no value", "faults::test_the_text_of_a_bug_names_no_value",
        ("engine/faults.py", 'text = f"internal error: {text} ({fault.code})"', "text = str(error)"),
    ),
    _guard(
        "I4", "errors show variables as they are written", "canary::test_an_error_shows_nothing_that_a_rule_read",
        ("engine/redaction.py", "            message = _without(message, form, variable)\n", "            pass\n"),
    ),
    _guard(
        "I11", "functions answer bad arguments with typed errors", "containment::test_no_expression_escapes_as_a_crash",
        ("lang/jmespath/functions/numbers.py", "    except ZeroDivisionError:\n", "    except FloatingPointError:\n"),
    ),
    _guard(
        "I11", "keys of rendered documents are texts", "containment::test_no_value_at_any_position_is_a_crash",
        (_TEMPLATE, "    if not isinstance(name, str):\n", "    if False:\n"),
    ),
    _guard(
        "I11", "deep objects are judged", "containment::test_deep_objects_are_judged_or_refused_but_never_fatal",
        (_ENGINE, "course = _Course(request,", 'import copy\n        copy.deepcopy(request.object)\n        course = _Course(request,'),
    ),
    _guard(
        "I11", "documents have a depth", "containment::test_documents_deeper_than_the_limit_are_refused",
        ("kube/yaml/events.py", "if len(stack) >= MAX_DEPTH:", "if False:"),
        ("kube/jsonscan.py", "if len(stack) >= MAX_DEPTH:", "if False:"),
    ),
    _guard(
        "I11", "numbers and texts are read as Go reads them",
        "containment::test_numbers_that_are_none_are_refused containment::test_surrogates_never_break_the_writer",
        ("kube/json.py", "        return _decode_unusual(raw)\n", '        return __import__("json").loads(raw)\n'),
        ("kube/json.py", 'text = _SURROGATE.sub("\\ufffd", text)', "pass"),
    ),
    _guard(
        "I11", "reviews that are none are refused",
        "admission::test_a_review_that_is_none_is_refused_and_disturbs_nobody",
        (_QUESTION, "        _check(request)\n", "        pass\n"),
    ),
    _guard(
        "I11", "parts of reviews have their types", "fuzzed_reviews::test_damaged_reviews_are_answered_or_refused",
        (_QUESTION, "        _check(request)\n", "        pass\n"),
    ),
    _guard(
        "I11", "one bad resource does not end a run",
        "bad_input::test_a_bad_resource_is_one_error_and_the_others_are_judged[duplicate-key]",
        ("kube/yaml/events.py", "        if key in frame.lines:\n", "        if False:\n"),
    ),
    _guard(
        "I11", "an odd object is judged or is one error",
        "bad_input::test_an_unusual_resource_is_judged[9000-levels]",
        ("offline/resources.py", "    except RecursionError:\n", "    except ZeroDivisionError:\n"),
    ),
    _guard(
        "I11", "a field that nobody knows is an error",
        "bad_input::test_a_bad_policy_is_an_error_and_the_others_judge[duplicate-key]",
        ("kube/yaml/events.py", "        if key in frame.lines:\n", "        if False:\n"),
    ),
    _guard(
        "I11", "what cannot be read is said",
        "bad_input::test_what_is_not_there_is_said bad_input::test_a_folder_in_place_of_a_file_is_said"
        " bad_input::test_a_link_that_leads_nowhere_is_said",
        ("offline/files.py", "        return path.read_bytes()\n    except OSError as error:",
         "        return path.read_bytes()\n    except ZeroDivisionError as error:"),
    ),
    _guard(
        "I11", "names of objects are no paths", "bad_input::test_generated_names_never_leave_the_output_folder",
        ("cli/apply/files.py", 'if "/" in name or os.sep in name or "\\0" in name:', "if False:"),
    ),
    _guard(
        "I12", "inputs are not changed", "containment::test_a_review_never_changes_its_input",
        (_ENGINE, "course = _Course(request,", 'request.object and request.object.setdefault("x", 1)\n        course = _Course(request,'),
    ),
    _guard(
        "I12", "a mutation of a mutation is nothing",
        "containment::test_mutating_twice_is_mutating_once admission::test_a_mutation_of_a_mutation_is_nothing",
        ("engine/actions/patches.py", "            resolved = overlay.resolve(document, meter=budget)\n",
         '            document = {**document, "x": document.get("x", 0) + 1}\n'
         "            resolved = overlay.resolve(document, meter=budget)\n"),
    ),
)  # fmt: skip

_OTHERS: Final = (
    _guard(
        "I5", "conditions see the namespace", "namespace_object::test_conditions_see_the_namespace_of_the_request",
        ("engine/cel/session.py", '"namespaceObject": _namespace_object(request),', '"namespaceObject": None,'),
    ),
    _guard(
        "1F", "only the API server is answered", "admission::test_only_the_api_server_is_answered_when_that_is_asked_for",
        ("webhook/tls.py", "return self._clients.admit(certificate)", "return True"),
    ),
    _guard(
        "I15", "every kind has its path", "admission::test_every_kind_of_policy_that_is_watched_has_its_path",
        ("policy/kinds.py", 'routes=(("/validate", "validate"), ("/mutate", "mutate")),', "routes=(),"),
    ),
    _guard(
        "PSS", "ephemeral containers are containers",
        "pod_security::test_a_violation_in_any_kind_of_container_is_denied",
        ("podsecurity/pod.py", '*_containers(reader, spec, "ephemeralContainers", "v1.EphemeralContainer"),', ""),
    ),
    _guard(
        "PSS", "a check is asked at every version", "pod_security::test_restricted_holds_at_every_version",
        ("podsecurity/control.py", "        return chosen\n",
         "        return chosen if version.latest or version.minor > 7 else Variant(chosen.since, lambda _: None)\n"),
    ),
    _guard(
        "PSS", "namespaces of the host are denied", "pod_security::test_host_namespaces_are_denied",
        ("podsecurity/controls/host_namespaces.py", "if not pod.host_namespaces:", "if True:"),
    ),
    _guard(
        "TLS", "old protocols and ciphers are refused",
        "tests/unit/webhook/test_server.py::test_old_protocols_and_ciphers_are_refused"
        " tls::test_no_suite_but_the_six_is_spoken",
        ("webhook/tls.py", "context.set_ciphers(_CIPHERS)", 'context.set_ciphers("ALL:@SECLEVEL=0")'),
    ),
    _guard(
        "I14", "a cache that does not follow says so",
        "tests/unit/cluster/test_informer.py::test_a_cache_that_does_not_follow_says_so_and_recovers_without_an_event",
        ("cluster/informer.py", "            self._broken_since = self._heard if now - self._heard >= self._idle_seconds else now",
         "            pass"),
    ),
    _guard(
        "I14", "a watch without a word is no proof",
        "tests/unit/cluster/test_informer.py::test_a_watch_without_a_word_proves_nothing_and_is_listed_again",
        ("cluster/informer.py", "        self._is_silent = True", "        self._is_silent = False"),
    ),
    _guard(
        "I14", "entries that cannot be followed are errors",
        "tests/unit/controllers/state/test_staleentries.py::test_objects_that_cannot_be_followed_are_an_error_within_the_bound",
        ("controllers/state/globalentries.py", "        if self._informer.is_stale:", "        if False:"),
    ),
    _guard(
        "I14", "a replica whose caches do not follow is not ready",
        "tests/unit/controllers/state/test_stalecaches.py::test_a_replica_that_cannot_follow_a_resource_is_not_ready",
        ("controllers/state/clusterstate.py", "            problem = informer.problem()", '            problem = ""'),
    ),
    _guard(
        "I14", "a leaf names the address that serves",
        "tests/unit/controllers/certificates/test_secrets.py::test_a_leaf_that_does_not_name_what_is_asked_for_is_not_good",
        ("controllers/certificates/secrets.py", "        if is_ours and not set(_alternatives(settings)) <= set(names):", "        if False:"),
    ),
    _guard(
        "I14", "work ends before the lease does",
        "tests/unit/cluster/test_leases.py::test_work_ends_before_the_lease_does_when_the_server_is_away",
        ("cluster/leases.py", "            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)",
         "            await asyncio.wait((working,))"),
    ),
)  # fmt: skip

_BOUNDED: Final = (
    _guard(
        "I9", "elements of a patch are found by their names",
        "cost::test_twice_the_containers_cost_about_twice",
        ("kube/patch/mergedlists.py", "place = places.get(name)", "place = next((places[name] for each in (*had, *had, *had) if each == name[:0]), places.get(name))"),
    ),
    _guard(
        "I9", "named lists are not walked element by element",
        "cost::test_a_merge_for_each_element_executes_about_as_much_for_each cost::test_large_pods_are_changed_within_the_budget",
        ("kube/patch/mergedlists.py", "len(keys) == 1", "len(keys) == 9"),
    ),
    _guard(
        "I9", "anchors are charged for each element",
        "cost::test_anchors_for_each_element_of_a_long_list_use_up_the_budget",
        ("engine/actions/patches.py", "overlay.resolve(document, meter=budget)", "overlay.resolve(document)"),
        may_hang=True,
    ),
    _guard(
        "I9", "conditions are charged for wildcards of the request",
        "cost::test_wildcards_of_a_request_against_its_own_texts_are_counted",
        ("engine/rules/conditions.py", "            runtime.budget.charge_steps(steps)", "            pass"),
    ),
    _guard(
        "I9", "long wildcards are not kept",
        "caches::test_no_cache_keeps_a_text_that_is_longer_than_a_name",
        ("kube/wildcard.py", "if len(pattern) <= MAX_NAME else compile_wildcard(pattern)(text)", "if pattern else False"),
    ),
    _guard(
        "I9", "plans of long texts are not kept",
        "caches::test_plans_are_not_kept_for_texts_that_are_no_names",
        ("engine/policyset.py", "if key.is_short:", "if True:"),
    ),
    _guard(
        "I9", "what is longer than a name is kept nowhere",
        "caches::test_reviews_of_distinct_large_texts_leave_nothing_behind",
        ("kube/names.py", "MAX_NAME: Final = 253", "MAX_NAME: Final = 1 << 30"),
    ),
)  # fmt: skip

_PRICED: Final = (
    _guard(
        "I9", "a call is charged by the size of its arguments",
        "function_costs::test_the_work_of_a_call_is_within_its_price"
        " function_costs::test_a_call_on_large_arguments_is_refused_or_charged",
        (_COST, "budget.charge_steps(1 + weight // per_step)", "budget.charge_steps()"),
    ),
    _guard(
        "I9", "a function must declare its cost",
        "function_costs::test_a_function_that_declares_no_cost_can_not_be_registered",
        (_FUNCTION, "    returns: str,\n    cost: Cost,\n", "    returns: str,\n    cost: Cost = Cost(),\n"),
    ),
    _guard(
        "I9", "comparing long texts is charged",
        "function_costs::test_values_that_share_structure_are_refused_before_they_are_written_out",
        (_COST, "budget.charge_bytes(len(left), per_step=_LONG_TEXT)", "pass"),
    ),
    _guard(
        "I9", "ordinary calls are nearly free",
        "function_costs::test_ordinary_calls_are_nearly_free",
        (_COST, "ITEM: Final = 32\n", "ITEM: Final = 32_000\n"),
    ),
)  # fmt: skip

_SILENT: Final = (
    _guard(
        "I4", "errors of functions describe their arguments",
        "error_texts::test_no_function_shows_an_argument_in_its_error"
        " error_texts::test_no_result_of_a_rule_shows_what_a_context_entry_holds",
        (_FUNCTION, "text = f\"JMESPath function '{name}': argument #{number} ({describe(argument)}) is not {what}\"", "text = detailed or what"),
    ),
    _guard(
        "I4", "keys that come out of values are not shown",
        "error_texts::test_no_operator_and_no_nested_variable_shows_a_value_in_its_error"
        " error_texts::test_no_template_shows_a_value_in_its_error",
        ("errors.py", 'shown = f"Unknown key ({len(key)} characters of a nested variable) in path" if is_data else text', "shown = text"),
    ),
    _guard(
        "I4", "the text of a patch is not shown",
        "error_texts::test_no_patch_shows_a_value_in_its_error",
        ("lang/template/patchtext.py", 'problem = f"patchesJson6902 is not JSON ({len(rendered)} characters)"', 'problem = f"patchesJson6902 is not JSON: {rendered}"'),
    ),
    _guard(
        "I4", "the whole text of an error is kept apart",
        "error_texts::test_who_supplied_the_values_sees_them",
        (_FUNCTION, 'detailed=prefix + detailed if detailed else ""', 'detailed=""'),
    ),
)  # fmt: skip

_WRITES: Final = (
    _guard(
        "C7", "policies that undo each other are quarantined",
        "tests/unit/controllers/test_writeguard.py::test_ten_writes_without_a_pause_are_the_last"
        " tests/unit/controllers/test_applier.py::test_an_object_that_something_else_changes_back_is_quarantined",
        ("controllers/writeguard.py", "if window.writes >= max(settings.max_writes, len(window.triggers) + settings.max_writes // 2):", "if False:"),
    ),
    _guard(
        "C7", "policies that trigger each other are quarantined",
        "tests/unit/controllers/test_writeguard.py::test_a_chain_of_objects_that_trigger_each_other_ends",
        ("controllers/writeguard.py", "elif self._depth(key.trigger, now) >= self._settings.max_writes:", "elif False:"),
    ),
    _guard(
        "C7", "a deletion is of what was judged",
        "tests/unit/controllers/test_applier.py::test_a_deletion_is_of_the_object_that_was_judged",
        ("controllers/applier.py", 'options: JSONObject = {"preconditions": judged}', "options: JSONObject = {}"),
    ),
    _guard(
        "C7", "a patch is of the version that was read",
        "tests/unit/controllers/test_applier.py::test_a_patch_has_the_version_that_was_read_as_its_precondition",
        ("controllers/applier.py", '**after["metadata"], "resourceVersion": version}', '**after["metadata"], "resourceVersion": None}'),
    ),
)  # fmt: skip

_ADVISORIES: Final = (
    _guard(
        "1D", "files of other machines are not read", "advisories::test_no_file_of_another_machine_is_read",
        ("offline/files.py", 'if path[:2] in ("\\\\\\\\", "//", "\\\\/", "/\\\\"):', "if False:"),
    ),
    _guard(
        "1D", "what is printed is quoted", "advisories::test_a_policy_that_we_print_reads_back_the_same",
        ("kube/yaml/writer.py", "return text if _is_plain(text) else _single_quoted(text)", "return text"),
    ),
    _guard(
        "1F", "documents have a depth, in every style", "advisories::test_yaml_that_goes_deep_is_refused",
        ("kube/yaml/events.py", "if len(stack) >= MAX_DEPTH:", "if False:"),
    ),
    _guard(
        "1D", "expressions have a depth", "advisories::test_expressions_that_go_deep_are_refused",
        ("lang/jmespath/parser.py", "        if self.nesting > MAX_DEPTH:\n", "        if False:\n"),
        ("lang/cel/syntax/parser.py", "        if self._depth > MAX_DEPTH:\n", "        if False:\n"),
        ("lang/cel/syntax/parser.py", "    except RecursionError:\n        message", "    except ZeroDivisionError:\n        message"),
    ),
    _guard(
        "1F", "a path is one of the table", "advisories::test_a_path_is_one_of_the_table_or_nothing",
        ("webhook/routes.py", "return replace(route, names=names) if route is not None and names and all(names) else None",
         "return Route(WebhookType.VALIDATE, _LEGACY_KINDS)"),
    ),
    _guard(
        "1D", "reports are filtered", "advisories::test_reports_of_ours_are_left_alone",
        ("install/manifests.py", 'filters += ["[EphemeralReport,*,*]", "[ClusterEphemeralReport,*,*]"]', "filters += []"),
    ),
    _guard(
        "1F", "a review touches nothing outside", "advisories::test_nothing_is_made_of_an_object",
        (_ENGINE, "course = _Course(request,", 'open("/dev/null").close()\n        course = _Course(request,'),
    ),
    _guard(
        "1F", "the old object is the request's", "advisories::test_the_old_object_is_what_the_api_server_sent",
        ("engine/request.py", 'value["oldObject"] = self.old', 'value["oldObject"] = self.object'),
    ),
    _guard(
        "1F", "images of ephemeral containers are images", "advisories::test_no_kind_of_container_is_forgotten",
        ("images/extractors.py", 'groups = ("initContainers", "containers", "ephemeralContainers")',
         'groups = ("initContainers", "containers")'),
    ),
    _guard(
        "1F", "containers that are added later are judged",
        "advisories::test_the_subresource_that_adds_containers_is_judged_as_a_pod",
        ("engine/match.py", 'and subresource == "ephemeralcontainers"', 'and subresource == "none"'),
    ),
    _guard(
        "1D", "a bad regular expression is typed", "advisories::test_a_bad_regular_expression_is_an_error_of_its_rule",
        ("lang/regex/compiler.py", "    except re2.error as error:\n", "    except ZeroDivisionError as error:\n"),
    ),
    _guard(
        "1D", "targets of a namespaced policy are in it",
        "advisories::test_a_policy_of_a_namespace_generates_nothing_outside_of_one",
        ("compiler/validation/generate.py",
         'if problem:\n        findings.error("generate-scope", (*path, "namespace"), f"target',
         'if False:\n        findings.error("generate-scope", (*path, "namespace"), f"target'),
    ),
    _guard(
        "1D", "kinds are asked for by their plural", "advisories::test_every_kind_is_asked_for_by_its_plural",
        ("kube/kinds.py", "return GVR(self.group, self.version, self.plural)",
         "return GVR(self.group, self.version, self.kind.lower())"),
    ),
)  # fmt: skip

_IMAGES: Final = tuple(
    _guard(
        "I7",
        f"signatures: {name}",
        test,
        (module if module.startswith(("engine/", "images/")) else f"images/verification/{module}", text, other),
    )
    for name, test, module, text, other in IMAGE_GUARDS
)
_CLEANUP: Final = "tests/unit/controllers/cleanup"

_DELETIONS: Final = (
    _guard(
        "C9", "a time to live is over by the API server's clock",
        f"{_CLEANUP}/test_timestolive.py::test_a_label_can_be_changed_and_removed",
        ("controllers/cleanup/timestolive.py", "        if due > self._context.now():\n", "        if False:\n"),
        ("controllers/cleanup/agenda.py", "if when > now and self._times.get(key) == when:", "if False:"),
    ),
    _guard(
        "C9", "a server's time is its lower bound",
        "tests/unit/cluster/test_servertime.py::test_the_time_is_never_ahead_of_the_server",
        ("cluster/servertime.py", "lower, upper = moment - received, moment + 1 - sent",
         "lower, upper = moment + 1 - received, moment + 2 - sent"),
    ),
    _guard(
        "C9", "of clocks that disagree the slowest counts",
        "tests/unit/cluster/test_servertime.py::test_of_servers_that_disagree_the_slowest_counts",
        ("cluster/servertime.py", "return lower if lower <= upper else min(each.lowest for each in self._periods)",
         "return lower"),
    ),
    _guard(
        "C9", "what is protected is not deleted",
        f"{_CLEANUP}/test_protection.py::test_the_reason_to_keep_an_object_is_named",
        ("controllers/cleanup/protection.py", "name in (*_SYSTEM_NAMESPACES, own_namespace)", "name == own_namespace"),
    ),
    _guard(
        "C9", "many deletions wait for a confirmation",
        f"{_CLEANUP}/test_scheduled.py::test_too_many_objects_wait_for_a_confirmation",
        ("controllers/cleanup/run.py", "if limit and count > max(limit, self._confirmed):", "if False:"),
    ),
)  # fmt: skip

_VERIFY: Final = "tests/unit/engine/actions/test_verify_images.py"
_CEL_IMAGES: Final = "tests/unit/engine/actions/cel/test_images.py"
_VERIFIED: Final = (
    _guard(
        "I8",
        "a tag is resolved once in a review",
        f"{_VERIFY}::test_a_tag_is_resolved_once_in_a_review",
        (
            "engine/imageverification/verifier.py",
            "found: ResolvedImage | HostError | None = self.runtime.memory.get(key)",
            "found = None",
        ),
    ),
    _guard(
        "I8",
        "verifications are kept by digest",
        f"{_VERIFY}::test_the_second_look_is_answered_from_the_cache_until_the_tag_moves",
        (
            "engine/actions/verify_images.py",
            "return PassKey(self.at_work.repository, self.at_work.resolve().digest, constraints)",
            'return PassKey(self.at_work.repository, "", constraints)',
        ),
    ),
    _guard(
        "I7",
        "an attestation without attestors is no proof",
        f"{_VERIFY}::test_an_attestation_without_attestors_is_no_proof",
        ("engine/actions/verify_images.py", "if not demand.attestors:", "if False:"),
    ),
    _guard(
        "I7",
        "keyless without an identity is refused",
        f"{_VERIFY}::test_what_cannot_be_verified_is_an_error_of_the_policy",
        ("images/verification/written.py", "if not issuers and not subjects and not roots:", "if False:"),
    ),
    _guard(
        "I7",
        "an image that no policy checked is refused",
        f"{_CEL_IMAGES}::test_every_image_must_have_been_checked",
        ("engine/actions/cel/images.py", "if text not in verified:", "if False:"),
    ),
)

GUARDS: Final = (
    *_CONFINED,
    *_EGRESS_GUARDS,
    *_CLOSED,
    *_LIMITED,
    *_INERT,
    *_CONTAINED,
    *_OTHERS,
    *_BOUNDED,
    *_SILENT,
    *_ADVISORIES,
    *_WRITES,
    *_DELETIONS,
    *_PRICED,
    *_IMAGES,
    *_VERIFIED,
)
"""Every guard; `python -m tests.security.mutants` takes each away."""

WITHOUT_GUARD: Final = {
    "test_source.py": "looks at the source; its own test plants what it must find",
    "test_guards.py": "looks at this table",
    "test_most_of_these_rules_err": "looks at the other test of its file",
    "test_a_call_on_large_arguments_ends_soon": "takes the time, at night only; its twins count steps",
    "test_every_site_was_hit": "looks at the other tests of its file",
    "test_register.py": "looks at the register",
    "test_external_addresses_of_services_are_denied": "its guard is a policy of the library, which is no module",
    "test_an_unreadable_folder_is_said": "does not run for root, who can read every folder",
}
"""Tests that no guard can be named for, by file or node id, with the reason."""
