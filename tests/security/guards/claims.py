"""The guards of I18: a claim that somebody stored is no proof."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard, guard

__all__ = ["CLAIMS"]

_STORE: Final = "tests/security/strangers/test_tampered_store.py"
_RECORDS: Final = "engine/imageverification/records.py"
_ANNOTATIONS: Final = "engine/imageverification/annotations.py"

CLAIMS: Final[tuple[Guard, ...]] = (
    guard(
        "I18",
        "a record counts with a seal of ours",
        f"{_STORE}::test_no_record_that_a_stranger_wrote_admits_an_image",
        (_ANNOTATIONS, "record"),
    ),
    guard(
        "I18",
        "a record of a live object counts with a seal of ours",
        f"{_STORE}::test_no_record_that_a_stranger_wrote_counts_in_a_scan",
        (
            _ANNOTATIONS,
            "return record if is_ours else NO_RECORD  # guard: a record counts with a seal of ours",
            "return record",
        ),
    ),
    guard(
        "I18",
        "a request brings no record",
        f"{_STORE}::test_a_request_brings_no_record_along",
        (_RECORDS, "True"),
    ),
    guard(
        "I18",
        "a record of ours is counted",
        f"{_STORE}::test_a_record_of_ours_saves_the_registry",
        (_RECORDS, "if found.content == content:", "if not content:"),
    ),
    guard(
        "I18",
        "a record holds for the rule as it was",
        f"{_STORE}::test_a_policy_that_changed_verifies_anew",
        (_RECORDS, "True"),
    ),
    guard(
        "I18",
        "a record holds for the same demands",
        f"{_STORE}::test_a_record_holds_for_the_demands_that_variables_gave",
        (_RECORDS, "found"),
    ),
    guard(
        "I18",
        "a foreign record is removed",
        f"{_STORE}::test_a_foreign_record_is_removed_from_what_passes",
        ("webhook/admission.py", "request"),
    ),
    guard(
        "I18",
        "a foreign ephemeral report is not merged",
        f"{_STORE}::test_a_report_that_a_stranger_writes_or_changes_is_written_anew",
        ("controllers/reports/ephemerals.py", "True"),
    ),
    guard(
        "I18",
        "a foreign result is not kept",
        f"{_STORE}::test_a_report_that_a_stranger_writes_or_changes_is_written_anew",
        ("controllers/reports/reconciler.py", "list(self.existing.values())"),
    ),
    guard(
        "I18",
        "an object falls with the trigger that it names",
        f"{_STORE}::test_forged_labels_of_generated_objects_take_nothing_from_others",
        ("controllers/background/generating/generator.py",),
    ),
    guard(
        "I18",
        "a report that we sealed long ago is not merged again",
        "tests/unit/controllers/reports/test_ephemerals.py::"
        "test_a_report_that_was_kept_and_written_again_does_not_count",
        ("controllers/reports/ephemerals.py",),
    ),
)
