"""The webhooks and policies of the second round of mutation."""

from __future__ import annotations

from kubesandbox.admission.webhooks.rounds import Rounds


def test_webhooks_called_before_a_change_are_due():
    """Webhooks that ran after the last change, or not in the first round, are skipped."""
    rounds = Rounds()
    rounds.begin(rounds.webhooks, {"a": 1})
    assert not rounds.is_skipped(rounds.webhooks, "first")
    rounds.webhooks.called.add("first")
    rounds.changed(rounds.webhooks)
    rounds.webhooks.called.add("second")
    rounds.webhooks.left = {"a": 2}
    assert rounds.is_due
    rounds.number = 1
    rounds.begin(rounds.webhooks, {"a": 2})
    assert [False, True, True] == [rounds.is_skipped(rounds.webhooks, key) for key in ("first", "second", "third")]


def test_a_change_between_the_rounds_makes_all_webhooks_due():
    """Webhooks and policies keep separate accounts."""
    rounds = Rounds(number=1)
    rounds.webhooks.called.add("first")
    rounds.begin(rounds.webhooks, {"a": 2})
    assert not rounds.is_skipped(rounds.webhooks, "first")
    assert rounds.is_skipped(rounds.policies, "first")
