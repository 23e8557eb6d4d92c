"""Findings of a run of lints: their places."""

from __future__ import annotations

from tests.support.linting import cel_policy, found


def test_many_findings_in_one_text_are_all_reported() -> None:
    """The character is looked up for the first hundred; the others have the place of the text."""
    text = cel_policy(f"validations:\n- expression: {' || '.join(['object.sepc == 1'] * 150)}")
    places = [line.partition(" ")[0] for line in found(text, "PV105")]
    first, last = places[0], places[99]
    assert (150, 101, first != last) == (len(places), len(set(places)), True)
