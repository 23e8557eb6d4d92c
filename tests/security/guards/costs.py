# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards of how costs grow: linear merges, and a price for every function (I9)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["ANSWERS", "GROWTH", "PATTERNS", "PRICES"]

_FUNCTION: Final = "lang/jmespath/function.py"
_COST: Final = "lang/jmespath/cost.py"

GROWTH: Final = (
    guard(
        "I9", "elements of a patch are found by their names",
        "cost::test_twice_the_containers_cost_about_twice",
        ("kube/patch/mergedlists.py", "place = places.get(name)", "place = next((places[name] for each in (*had, *had, *had) if each == name[:0]), places.get(name))"),
    ),
    guard(
        "I9", "named lists are not walked element by element",
        "cost::test_a_merge_for_each_element_executes_about_as_much_for_each cost::test_large_pods_are_changed_within_the_budget",
        ("kube/patch/mergedlists.py", "len(keys) == 1", "len(keys) == 9"),
    ),
    guard(
        "I9", "anchors are charged for each element",
        "cost::test_anchors_for_each_element_of_a_long_list_use_up_the_budget",
        ("engine/actions/patches.py", "overlay.resolve(document, meter=budget, followers=followers)", "overlay.resolve(document, followers=followers)"),
        may_hang=True,
    ),
    guard(
        "I9", "conditions are charged for wildcards of the request",
        "cost::test_wildcards_of_a_request_against_its_own_texts_are_counted",
        ("engine/rules/conditions.py", "            runtime.budget.charge_steps(steps)", "            pass"),
    ),
    guard(
        "I9", "long wildcards are not kept",
        "caches::test_no_cache_keeps_a_text_that_is_longer_than_a_name",
        ("kube/wildcard.py", "if len(pattern) <= MAX_NAME else compile_wildcard(pattern)(text)", "if pattern else False"),
    ),
    guard(
        "I9", "plans of long texts are not kept",
        "caches::test_plans_are_not_kept_for_texts_that_are_no_names",
        ("engine/policyset.py", "if key.is_short:", "if True:"),
    ),
    guard(
        "I9", "what is longer than a name is kept nowhere",
        "caches::test_reviews_of_distinct_large_texts_leave_nothing_behind",
        ("kube/names.py", "MAX_NAME: Final = 253", "MAX_NAME: Final = 1 << 30"),
    ),
)  # fmt: skip

PATTERNS: Final = (
    guard(
        "I9", "patterns have little memory",
        "caches::test_regular_expressions_of_requests_leave_little_memory",
        ("lang/regex/compiler.py", "_USUAL_MEMORY: Final = 1024 * 1024", "_USUAL_MEMORY: Final = 8 * 1024 * 1024"),
    ),
    guard(
        "I9", "the library keeps no patterns",
        "caches::test_regular_expressions_of_requests_leave_little_memory",
        ("lang/regex/compiler.py", "        re2.purge()", "        pass"),
    ),
    guard(
        "I9", "large patterns are not kept",
        "caches::test_regular_expressions_of_requests_leave_little_memory",
        ("lang/regex/compiler.py", "if compiled(made).options.max_mem > _USUAL_MEMORY:", "if compiled(made).options.max_mem < 0:"),
    ),
)  # fmt: skip

ANSWERS: Final = (
    guard(
        "I9", "twin: a target counts for what it gains", "answer_sizes::test_a_large_target_is_changed_by_a_small_patch",
        ("engine/engine.py", "if verdict.patched is not None and verdict.target is None:", "if verdict.patched is not None:"),
    ),
    guard(
        "I9", "an object grows no further than a produced value",
        "answer_sizes::test_a_patch_that_repeats_a_text_for_each_container_ends_as_an_error"
        " answer_sizes::test_existing_objects_grow_no_further_than_the_object_of_the_request",
        ("engine/engine.py", "if any(growth(before, after, most, budget) > most", "if any(growth(before, after, most, budget) < 0"),
    ),
    guard(
        "I9", "what grows a little is changed",
        "answer_sizes::test_a_patch_that_repeats_an_ordinary_text_is_made",
        ("engine/engine.py", "if any(growth(before, after, most, budget) > most", "if any(growth(before, after, most, budget) >= 0"),
    ),
    guard(
        "I9", "texts of results are cut",
        "answer_sizes::test_the_texts_of_results_and_denials_are_bounded answer_sizes::test_warnings_are_bounded",
        ("engine/result.py", "        if len(verdict[1]) > MAX_MESSAGE:", "        if len(verdict[1]) < 0:"),
        ("engine/result.py", "    def result(message: str, detail: Detail = None, /) -> RuleResult:\n        if len(message) > MAX_MESSAGE:", "    def result(message: str, detail: Detail = None, /) -> RuleResult:\n        if len(message) < 0:"),
    ),
    guard(
        "I9", "texts of events are cut before they wait",
        "answer_sizes::test_events_that_wait_are_as_short_as_those_that_are_written",
        ("controllers/runtime/events.py", "note=event.note[: _LONGEST_NOTE + 1]", "note=event.note"),
    ),
    guard(
        "I9", "patches in CEL are charged",
        "answer_sizes::test_the_copies_of_a_patch_in_cel_are_charged",
        ("engine/actions/cel/mutate.py", "apply_patch(document, operations, meter=meter)", "apply_patch(document, operations)"),
    ),
)  # fmt: skip

PRICES: Final = (
    guard(
        "I9", "a call is charged by the size of its arguments",
        "function_costs::test_the_work_of_a_call_is_within_its_price"
        " function_costs::test_a_call_on_large_arguments_is_refused_or_charged",
        (_COST, "budget.charge_steps(1 + weight // per_step)", "budget.charge_steps()"),
    ),
    guard(
        "I9", "a function must declare its cost",
        "function_costs::test_a_function_that_declares_no_cost_can_not_be_registered",
        (_FUNCTION, "    returns: str,\n    cost: Cost,\n", "    returns: str,\n    cost: Cost = Cost(),\n"),
    ),
    guard(
        "I9", "comparing long texts is charged",
        "function_costs::test_values_that_share_structure_are_refused_before_they_are_written_out",
        (_COST, "budget.charge_bytes(len(left), per_step=_LONG_TEXT)", "pass"),
    ),
    guard(
        "I9", "ordinary calls are nearly free",
        "function_costs::test_ordinary_calls_are_nearly_free",
        (_COST, "weight += ITEM * len(argument)", "weight += 32_000 * len(argument)"),
    ),
)  # fmt: skip
