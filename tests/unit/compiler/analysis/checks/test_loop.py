"""Rules that trigger themselves."""

from __future__ import annotations

from tests.support.analysis import example_of, found, policy


def test_a_rule_that_ignores_controllers_is_no_loop() -> None:
    """The default `skipBackgroundRequests: true` ignores them."""
    assert [] == found(example_of("PA301").replace("skipBackgroundRequests: false", ""), "PA301")


def test_an_object_of_one_name_ends_the_rounds() -> None:
    """The second round would make what is there."""
    fixed = example_of("PA301").replace("{{ request.object.metadata.name }}-copy", "settings")
    assert [] == found(fixed, "PA301")


def test_two_rules_that_lead_to_each_other_are_a_loop() -> None:
    """Both are named."""
    text = policy("""
    - name: secret
      skipBackgroundRequests: false
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      generate:
        apiVersion: v1
        kind: Secret
        name: "{{ request.object.metadata.name }}-s"
        namespace: default
        data: {type: Opaque}
    - name: settings
      skipBackgroundRequests: false
      match: {any: [{resources: {kinds: [Secret]}}]}
      generate:
        apiVersion: v1
        kind: ConfigMap
        name: "{{ request.object.metadata.name }}-c"
        namespace: default
        data: {data: {a: b}}
    """)
    (finding,) = found(text, "PA301", count=40)
    assert ("p/secret", "p/settings") == finding.observation.rules


def test_a_rule_that_changes_its_own_trigger_each_time_is_a_loop() -> None:
    """Every change is an update, which triggers it again."""
    text = policy("""
    - name: grow
      skipBackgroundRequests: false
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      mutate:
        targets:
        - apiVersion: v1
          kind: ConfigMap
          name: "{{ request.object.metadata.name }}"
          namespace: "{{ request.object.metadata.namespace }}"
        patchStrategicMerge: {metadata: {labels: {count: "{{ request.object.metadata.labels.count || 'n' }}x"}}}
    """)
    (finding,) = found(text, "PA301", count=40)
    labels = [body["metadata"]["labels"]["count"] for body in finding.observation.witnesses[0].after[:2]]
    assert ["nx", "nxx"] == labels
