"""The guards of I20: all of many are judged."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard, guard

__all__ = ["MANY"]

_KEYS: Final = "all_of_many::test_a_wildcard_key_of_a_pattern_judges_every_key"

MANY: Final[tuple[Guard, ...]] = (
    guard(
        "I20",
        "a wildcard key stands for every key",
        f"{_KEYS}[=-labels] {_KEYS}[-annotations] all_of_many::test_a_second_annotation_does_not_hide_a_profile",
        ("lang/pattern/metadata.py", "min(filter(matches, labels), default=None) and [min(filter(matches, labels))]"),
    ),
    guard(
        "I20",
        "a condition holds by any of its keys",
        f"{_KEYS}[(-labels] {_KEYS}[<-labels]",
        ("lang/pattern/checks.py", "[anchored[0]]"),
    ),
    guard(
        "I20",
        "what no rule judged excuses nothing",
        "existing_violations::test_what_came_by_a_request_that_no_rule_saw_is_no_excuse",
        ("engine/engine.py",),
    ),
    guard(
        "I20",
        "twin: other fields are excused",
        "existing_violations::test_an_update_of_other_fields_is_excused",
        ("engine/request.py", "True"),
    ),
    guard(
        "I20",
        "twin: a rule that sees scale excuses",
        "existing_violations::test_a_rule_that_judges_the_subresource_excuses_as_before",
        ("policy/subresources.py",),
    ),
    guard(
        "I20",
        "rules about resources judge resizes",
        "subresources::test_a_resize_is_judged_by_rules_about_resources",
        ("policy/subresources.py", "EPHEMERAL_CONTAINERS"),
    ),
    guard(
        "I20",
        "twin: an exclusion covers resizes",
        "subresources::test_an_excluded_pod_may_be_resized",
        (
            "compiler/rules/matching.py",
            "exclude_any=lowered(exclude_any, pod_subresources and POD_SUBRESOURCES)",
            "exclude_any=lowered(exclude_any, EPHEMERAL_CONTAINERS)",
        ),
    ),
    guard(
        "I20",
        "twin: a resize is for rules about resources",
        "subresources::test_other_rules_and_subresources_see_no_more_than_before",
        ("policy/subresources.py", "any(word in text for text in _texts(rule) for word in _RESIZED)", "True"),
    ),
    guard(
        "I20",
        "twin: copies are made beside subresources",
        "all_of_many::test_a_policy_for_pods_and_their_subresources_has_copies_for_controllers",
        ("compiler/autogen/cel.py", "False"),
    ),
)
