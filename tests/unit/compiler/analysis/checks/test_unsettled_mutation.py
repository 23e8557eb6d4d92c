"""Mutations that change their own result."""

from __future__ import annotations

from tests.support.analysis import example_of, found, policy


def test_a_mutation_that_sets_a_value_is_settled() -> None:
    """The second call changes nothing."""
    text = policy("""
    - name: a
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {one: "1"}}}}
    """)
    assert [] == found(text, "PA104")


def test_the_witness_shows_both_changes() -> None:
    """The object after one call, and after two."""
    (finding,) = found(example_of("PA104"), "PA104")
    (witness,) = finding.observation.witnesses
    arguments = [body["spec"]["containers"][0].get("args") for body in (witness.resource, *witness.after)]
    assert [None, ["--quiet"], ["--quiet", "--quiet"]] == arguments
