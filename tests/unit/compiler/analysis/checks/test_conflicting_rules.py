"""Rules that no object satisfies together."""

from __future__ import annotations

from tests.support.analysis import found, policy


def test_requirements_of_different_fields_are_no_conflict() -> None:
    """Each is rare among generated objects; merged ones satisfy both."""
    text = policy("""
    - name: team
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {team: "red"}}}}
    - name: key
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {data: {color: "blue"}}}
    """)
    assert [] == found(text, "PA101")


def test_a_conflict_names_both_rules_and_shows_both_sides() -> None:
    """One object satisfies the first and breaks the second, the other one does the opposite."""
    text = policy("""
    - name: red
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {app: "red"}}}}
    - name: blue
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {app: "blue"}}}}
    """)
    (finding,) = found(text, "PA101")
    assert ("p/red", "p/blue") == finding.observation.rules
    assert [{"p/red": "pass", "p/blue": "fail"}, {"p/red": "fail", "p/blue": "pass"}] == [
        dict(witness.results) for witness in finding.observation.witnesses
    ]
    assert "cannot" not in finding.observation.message
