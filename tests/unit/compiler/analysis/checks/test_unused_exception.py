"""Exceptions that never apply."""

from __future__ import annotations

from tests.support.analysis import example_of, found


def test_an_exception_that_applies_to_some_object_is_used() -> None:
    """Though no generated object has such a name."""
    assert found(example_of("PA401"), "PA401")
    used = example_of("PA401").replace("CronJob", "Pod")
    assert [] == found(used, "PA401")


def test_exceptions_for_users_are_left_out() -> None:
    """The analysis has one user."""
    text = example_of("PA401").replace('batch-*"]}', 'batch-*"]}, subjects: [{kind: User, name: bob}]')
    text = text.replace("spec:\n  match", "spec:\n  background: false\n  match")
    assert [] == found(text, "PA401")
