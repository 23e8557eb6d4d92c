"""Mutations that undo each other."""

from __future__ import annotations

from tests.support.analysis import found, policy


def test_mutations_of_different_fields_are_fine() -> None:
    """Neither changes what the other one left."""
    text = policy("""
    - name: a
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {one: "1"}}}}
    - name: b
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {two: "2"}}}}
    """)
    assert [] == found(text, "PA103")


def test_a_default_that_is_only_added_is_fine() -> None:
    """An anchor leaves the value of the other rule alone."""
    text = policy("""
    - name: a
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {tier: gold}}}}
    - name: b
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {+(tier): silver}}}}
    """)
    assert [] == found(text, "PA103")
