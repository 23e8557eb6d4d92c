"""Policies that match no object."""

from __future__ import annotations

from tests.support.analysis import WITHOUT_LATEST, example_of, found, policy


def test_a_policy_that_matches_some_object_is_not_reported() -> None:
    """Names and labels that it mentions are tried."""
    text = policy("""
    - name: a
      match:
        any:
        - resources:
            {kinds: [ConfigMap], names: [this], namespaces: [there], selector: {matchLabels: {app: red, tier: gold}}}
      validate: {message: m, pattern: {data: {a: "?*"}}}
    """)
    assert [] == found(text, "PA402", count=60)


def test_given_objects_are_all_that_count() -> None:
    """A policy for Pods matches no ConfigMap."""
    given = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}]
    (finding,) = found(policy(WITHOUT_LATEST), "PA402", given=given, count=30)
    assert "p matched none of 1 given objects" == finding.observation.message
    assert "not matched: kind ConfigMap is not matched" == finding.observation.witnesses[0].text


def test_policies_for_users_are_left_out() -> None:
    """The analysis has one user."""
    text = example_of("PA402").replace("names: [b]}", "names: [b]}, subjects: [{kind: User, name: bob}]")
    assert [] == found(text, "PA402")
