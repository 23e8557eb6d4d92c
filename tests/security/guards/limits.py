# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards of the cost of a review: limits of each request (I9)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["LIMITS"]

_BUDGET: Final = "lang/runtime.py"
_SERVER: Final = "webhook/server.py"
_QUESTION: Final = "kube/admissionreview.py"
_BODIES: Final = "webhook/bodies.py"
_CONNECTIONS: Final = "webhook/connections.py"

LIMITS: Final = (
    guard(
        "I9", "a text has a size where it is made", "limits::test_texts_have_a_limit_where_they_are_made",
        (_BUDGET, "if size > self.text_bytes:", "if False:"),
    ),
    guard(
        "I9", "the context has a size", "limits::test_context_entries_are_counted_together",
        (_BUDGET, "if self.context_used > self.context_bytes:", "if False:"),
    ),
    guard(
        "I9", "texts and context have a size", "limits::test_forty_doublings_end_at_the_limit_of_the_context",
        (_BUDGET, "if size > self.text_bytes:", "if False:"),
        (_BUDGET, "if self.context_used > self.context_bytes:", "if False:"),
    ),
    guard(
        "I9", "elements are counted", "limits::test_foreach_elements_are_counted",
        (_BUDGET, "if self.elements < 0:", "if False:"),
    ),
    guard(
        "I9", "calls are counted", "limits::test_network_calls_are_counted",
        (_BUDGET, "if self.calls < 0:", "if False:"),
    ),
    guard(
        "I9", "steps are counted", "limits::test_steps_are_counted", (_BUDGET, "if self.steps < 0:", "if False:"),
    ),
    guard(
        "I9", "a review has a deadline", "limits::test_a_deadline_ends_a_review",
        (_BUDGET, "if self.deadline is not None and time.monotonic() > self.deadline:", "if False:"),
    ),
    guard(
        "I5", "a policy whose compilation hits a bug stays", "failing_closed::test_a_policy_whose_compilation_hits_a_bug_errs",
        ("compiler/compile.py", "return Compiled(document, written, _stand_in(document, written, fault), errors",
         "return Compiled(document, written, errors"),
    ),
    guard(
        "I5", "a policy whose decoding hits a bug stays",
        "failing_closed::test_a_policy_in_cel_whose_compilation_hits_a_bug_errs",
        ("compiler/compile.py", "    policy = None if fault is None else _stand_in(document, None, fault)\n",
         "    policy = None\n"),
    ),
    guard(
        "I9", "the deadline is looked at before each rule", "limits::test_a_rule_after_the_deadline_is_an_error",
        ("engine/engine.py", "            course.check_deadline()\n            if candidate", "            if candidate"),
    ),
    guard(
        "I9", "containers are charged before they are read", "limits::test_containers_are_charged_before_they_are_read",
        ("podsecurity/pod.py", "            self.meter.charge_steps(_STEPS_OF_OBJECT)\n", ""),
        ("podsecurity/pod.py", "        self.meter.charge_steps(len(value))\n", ""),
        ("podsecurity/evaluate.py", "            meter.charge_steps(price)\n", "            pass\n"),
    ),
    guard(
        "I9", "messages of the Pod Security Standards are bounded",
        "limits::test_a_message_of_the_pod_security_standards_lists_so_many_fields",
        ("podsecurity/finding.py", "for error in self.errors[:MAX_LISTED])", "for error in self.errors)"),
    ),
    guard(
        "I9", "regular expressions of policies run on RE2",
        "limits::test_regular_expressions_of_policies_are_linear",
        ("lang/regex/compiler.py", "return re2.compile(pattern, options)",
         'return __import__("re").compile(pattern.encode())'),
        may_hang=True,
    ),
    guard(
        "I9", "wildcards do not backtrack", "limits::test_wildcards_are_linear",
        ("kube/wildcard.py",
         "    return _compile(pattern)(text) if len(pattern) <= MAX_NAME else compile_wildcard(pattern)(text)\n",
         '    return __import__("re").fullmatch(pattern.replace("*", ".*"), text) is not None\n'),
        may_hang=True,
    ),
    guard(
        "I9", "bodies of requests have a size", "admission::test_a_body_beyond_the_limit_is_never_held",
        (_BODIES, "if size > self._max_bytes:", "if False:"),
    ),
    guard(
        "I9", "bodies without a length have a size", "admission::test_a_body_beyond_the_limit_is_never_held",
        (_BODIES, "if len(found) + len(part) > self._max_bytes:", "if False:"),
    ),
    guard(
        "I9", "large bodies arrive one after the other",
        "tests/unit/webhook/test_turns.py::test_an_iteration_goes_on_with_one_large_body_however_many_arrive",
        (_BODIES, "await self._parts.take(len(part))", "pass"),
    ),
    guard(
        "I9", "heavy reviews compute alone at first",
        "tests/unit/webhook/test_workers.py::test_heavy_work_runs_alone_unless_it_takes_long",
        ("webhook/workers.py", "return left <= 0", "return True"),
    ),
    guard(
        "I9", "encoded bodies are refused",
        "tests/unit/webhook/test_connections.py::test_a_body_in_another_form_is_refused_with_a_status[gzip]",
        (_BODIES, 'if any(coding.lower() != "identity" for coding in headers.getall("Content-Encoding", ())):',
         "if False:"),
    ),
    guard(
        "I9", "the parser inflates nothing",
        "tests/unit/webhook/test_connections.py::test_an_encoded_body_is_never_inflated",
        ("webhook/connections.py", '"auto_decompress": False', '"auto_decompress": True'),
    ),
    guard(
        "I9", "bodies that never arrive do not hold up the end",
        "tests/unit/webhook/test_connections.py"
        "::test_requests_whose_body_never_arrives_do_not_hold_up_the_end",
        (_SERVER, "        self._bodies.hurry(_LAST_BODY_SECONDS)\n", ""),
        may_hang=True,
    ),
    guard(
        "I9", "an incomplete request is no work",
        "tests/unit/webhook/test_connections.py::test_incomplete_requests_are_no_work_that_the_end_waits_for",
        (_SERVER, "        deadline = time.monotonic() + _time_limit(", "        self._begin()\n        deadline = time.monotonic() + _time_limit("),
        may_hang=True,
    ),
    guard(
        "I9", "the end waits for no rest of a rejected body",
        "tests/unit/webhook/test_connections.py::test_incomplete_requests_are_no_work_that_the_end_waits_for",
        (_CONNECTIONS, "        self._lingering_time = _LAST_LINGERING_SECONDS\n", "        self.number += 0\n"),
        may_hang=True,
    ),
    guard(
        "I9", "the end waits for no client that has everything",
        "tests/unit/webhook/test_connections.py::test_clients_that_never_agree_to_the_end_of_tls_are_closed_at_the_end",
        (_CONNECTIONS, " or not transport.get_write_buffer_size():", ":"),
        may_hang=True,
    ),
    guard(
        "I9", "handshakes are counted",
        "tests/unit/webhook/test_connections.py::test_a_handshake_too_many_ends_the_oldest",
        (_CONNECTIONS, "        if len(self._shaking) >= _MOST_HANDSHAKES:\n", "        if False:\n"),
        may_hang=True,
    ),
    guard(
        "I9", "names of servers write no tracebacks",
        "tests/unit/webhook/test_connections.py::test_a_server_name_that_is_no_text_is_a_handshake_that_fails",
        (_CONNECTIONS, "            _bear_server_names()\n", "            pass\n"),
    ),
    guard(
        "I9", "the buffers of TLS are small",
        "connection_memory::test_a_connection_takes_little_memory_beside_the_bodies_that_count[_say_nothing-0] "
        "connection_memory::test_a_connection_takes_little_memory_beside_the_bodies_that_count[_stay_after_an_answer-0]",
        (_CONNECTIONS, "            sslproto.SSLProtocol.max_size = _TLS_BYTES", "            pass"),
    ),
    guard(
        "I9", "what waits to be read is little",
        "connection_memory::test_a_connection_takes_little_memory_beside_the_bodies_that_count"
        "[_send_more_while_a_review_is_in_work-0]",
        (_CONNECTIONS, "            limit_unread(_UNREAD_BYTES)\n", "            pass\n"),
        (_CONNECTIONS, '            "read_bufsize": _UNREAD_BYTES,\n', ""),
    ),
    guard(
        "I9", "a connection has to ask something", "admission::test_a_connection_without_a_question_is_closed",
        ("webhook/connections.py", "in time\", transport)\n        transport.abort()\n", "in time\", transport)\n"),
    ),
    guard(
        "I9", "connections are counted", "admission::test_connections_beyond_the_limit_are_closed_and_the_others_served",
        ("webhook/connections.py", "if len(self.connections) > self._max_connections and not self._make_room(address):",
         "if False:"),
    ),
    guard(
        "I9", "idle connections make room", "admission::test_idle_connections_make_room_for_new_ones",
        ("webhook/connections.py", "if isinstance(connection, web.RequestHandler) and time", "if False and time"),
    ),
    guard(
        "I9", "one address cannot crowd out the others",
        "tests/unit/webhook/test_connections.py::test_one_address_cannot_crowd_out_the_others",
        ("webhook/connections.py", "if len(crowd) <= len(self._by_address.get(address, ())) + 1:", "if True:"),
        may_hang=True,
    ),
    guard(
        "I9", "a client with half of the places takes no more",
        "tests/unit/webhook/test_connections.py::test_one_address_cannot_crowd_out_the_others",
        ("webhook/connections.py", "self._by_address.get(address, ())) + 1:", "self._by_address.get(address, ())) - 1:"),
        may_hang=True,
    ),
    guard(
        "I9", "connections at work keep their place",
        "admission::test_a_connection_whose_request_is_in_work_is_not_idle",
        ("webhook/connections.py", " and time.monotonic() - since >= self._reclaim_seconds:", ":"),
    ),
    guard(
        "I9", "the slow decoder reads short texts",
        "tests/unit/kube/test_json.py::test_a_long_text_that_is_too_deep_or_no_json_is_refused_at_once",
        ("kube/json.py", "        if len(raw) > MAX_SCANNED_BYTES:\n", "        if False:\n"),
    ),
    guard(
        "I9", "reports about CEL show a hundred problems",
        "tests/unit/lang/cel/syntax/test_source.py::test_a_compile_error_shows_a_hundred_issues_and_counts_the_others",
        ("lang/cel/syntax/source.py", "self.issues[:MAX_ISSUES_SHOWN]", "self.issues"),
    ),
    guard(
        "I9", "image references have a length",
        "tests/unit/kube/imageref/test_reference.py::test_a_reference_of_more_than_4096_characters_is_refused",
        ("kube/imageref/reference.py", "    if len(text) > _MAX_REFERENCE:\n", "    if False:\n"),
    ),
    guard(
        "I9", "comparing versions costs by their identifiers",
        "tests/unit/lang/cel/test_prices.py::test_what_a_call_takes_is_charged",
        ("lang/cel/libraries/kubernetes/versions.py", "    return sum(len(each.prerelease) for", "    return sum(0 for"),
    ),
    guard(
        "I9", "brackets of YAML have a depth",
        "tests/unit/kube/yaml/test_documents.py::test_brackets_in_yaml_are_nested_a_few_hundred_levels_at_most",
        ("kube/yaml/events.py", "            if flow > MAX_FLOW_DEPTH:\n", "            if False:\n"),
    ),
    guard(
        "I9", "a review compiles for a moment only",
        "tests/unit/engine/test_policyset.py::test_a_review_with_a_deadline_compiles_for_a_moment_only",
        ("engine/timeslice.py", "                self.is_over = self._left <= 0\n", ""),
    ),
    guard(
        "I9", "handshakes have a time", "admission::test_who_begins_with_tls_and_does_not_go_on_is_sent_away",
        ("webhook/connections.py", "ssl_handshake_timeout=limit,", "ssl_handshake_timeout=limit and 300.0,"),
    ),
    guard(
        "I9", "a closed connection is forgotten", "connections::test_a_connection_that_is_gone_keeps_no_memory",
        ("webhook/connections.py", "            timer.cancel()\n", "            pass\n"),
    ),
    guard(
        "I9", "aliases of YAML have a size",
        "bad_input::test_a_bad_resource_is_one_error_and_the_others_are_judged[alias-bomb]",
        ("kube/yaml/events.py", "if self.spent > self.limit:", "if False:"),
        may_hang=True,
    ),
    guard(
        "I9", "reviews have so many values", "budgets::test_an_admission_review_has_so_many_values",
        (_QUESTION, "    if has_more_values(body, MAX_VALUES):\n", "    if False:\n"),
    ),
    guard(
        "I9", "denials have a length", "budgets::test_the_text_of_a_denial_has_a_length",
        (_QUESTION, "if len(raw) <= MAX_MESSAGE_BYTES:", "if True:"),
    ),
    guard(
        "I9", "random texts have a length", "budgets::test_random_text_has_a_length",
        ("lang/regex/generator.py", "if self._length > MAX_LENGTH:", "if False:"),
    ),
    guard(
        "I9", "regular expressions have a length", "budgets::test_a_regular_expression_has_a_length",
        ("lang/regex/compiler.py", 'if len(pattern.encode("utf-8", "replace")) > MAX_PATTERN:', "if False:"),
    ),
    guard(
        "I9", "what is unpacked has a length", "budgets::test_gzip_does_not_grow_without_end",
        ("lang/cel/libraries/kyverno/data.py", "min(MAX_DECOMPRESSED, max(len(data) * MAX_RATIO, 4096))", "MAX_DECOMPRESSED"),
    ),
    guard(
        "I9", "limits of the server are those of the reference", "budgets::test_the_server_accepts_what_the_reference_lists",
        (_SERVER, "body_bytes: int = 7 * 1024 * 1024", "body_bytes: int = 1 << 40"),
    ),
    guard(
        "I9", "reviews have a depth", "budgets::test_deep_objects_are_within_the_limit_of_reviews",
        ("kube/jsonscan.py", "if len(stack) >= MAX_DEPTH:", "if False:"),
    ),
    guard(
        "I4", "errors of CEL functions show no data", "cel_canaries::test_no_function_shows_an_operand_that_is_data",
        ("lang/cel/faults.py", "return with_operands(error) if is_written else error", "return with_operands(error)"),
    ),
    guard(
        "I4", "errors of CEL keys and indexes show no data",
        "cel_canaries::test_no_expression_shows_data_in_its_error",
        ("lang/cel/runtime/steps.py", "raise (with_operands(error) if is_written else error) from None", "raise with_operands(error) from None"),
    ),
    guard(
        "I4", "errors of patches in CEL show no data",
        "cel_canaries::test_no_patch_in_cel_shows_data_in_its_error"
        " cel_canaries::test_a_patch_in_cel_shows_what_the_policy_writes",
        ("engine/actions/cel/mutate.py", "text = redact_texts(error.message, to_json(value), mutation.program.text)", "text = error.message"),
    ),
    guard(
        "I4", "what is no image is not shown", "cel_canaries::test_what_is_no_image_shows_only_its_place",
        ("images/info.py", 'raise ValueSyntaxError(f"invalid image at `{place}` ({reason})") from None', "raise"),
    ),
    guard(
        "I4", "twin: what an expression writes is shown",
        "cel_canaries::test_what_the_policy_writes_is_shown_as_cel_go_shows_it",
        ("lang/cel/runtime/steps.py", "raise (with_operands(error) if is_written else error) from None", "raise"),
    ),
    guard(
        "I9", "expressions in CEL have a cost", "cel_limits::test_an_expression_costs_so_much_and_no_more",
        ("lang/cel/runtime/evaluation.py", "if cost > self.limit:", "if False:"),
        ("lang/cel/runtime/evaluation.py", "if self.frame[COST] + cost > self.limit:", "if False:"),
        may_hang=True,
    ),
    guard(
        "I9", "a runaway policy ends", "bad_input::test_a_runaway_policy_ends_quickly[doubling]",
        (_BUDGET, "if size > self.text_bytes:", "if False:"),
        (_BUDGET, "if self.context_used > self.context_bytes:", "if False:"),
        (_BUDGET, "if self.produced_bytes < 0:", "if False:"),
        may_hang=True,
    ),
)  # fmt: skip
