"""Mutations whose result a rule refuses."""

from __future__ import annotations

from tests.support.analysis import found, policy


def test_a_mutation_that_satisfies_a_rule_is_fine() -> None:
    """The rule refuses the object as it was, not as it becomes."""
    text = policy("""
    - name: add
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {app: "red"}}}}
    - name: check
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {app: "red"}}}}
    """)
    assert [] == found(text, "PA102")


def test_a_refusal_that_a_later_mutation_prevents_is_none() -> None:
    """All mutations together decide what is validated."""
    text = policy("""
    - name: a-blue
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {app: "blue"}}}}
    - name: b-red
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {app: "red"}}}}
    - name: check
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {app: "!blue"}}}}
    """)
    assert [] == found(text, "PA102")
