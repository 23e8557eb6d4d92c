"""Rules with the same meaning in a different form."""

from __future__ import annotations

import pytest

from tests.support.analysis import found, policy


def test_rules_that_an_empty_value_distinguishes_are_no_duplicates() -> None:
    """`*` accepts the empty text, `?*` does not."""
    text = policy("""
    - name: some
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {data: {app: "?*"}}}
    - name: any
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {data: {app: "*"}}}
    """)
    given = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"app": ""}}]
    assert [] == found(text, "PA201", given=given)


def test_rules_for_other_kinds_are_no_duplicates() -> None:
    """They never judge the same object."""
    text = policy("""
    - name: a
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {app: "?*"}}}}
    - name: b
      match: {any: [{resources: {kinds: [Secret]}}]}
      validate: {message: m, pattern: {metadata: {labels: {app: "?*"}}}}
    """)
    assert [] == found(text, "PA201")


@pytest.mark.parametrize(
    "scope",
    [
        "exclude: {any: [{subjects: [{kind: Group, name: admins}]}]}",
        "exclude: {any: [{subjects: [{kind: ServiceAccount, namespace: ci, name: robot}]}]}",
        "exclude: {any: [{resources: {namespaceSelector: {matchLabels: {env: test}}}}]}",
    ],
)
def test_a_rule_that_leaves_some_requests_out_is_no_duplicate(scope: str) -> None:
    """The user of all other requests, and namespaces without labels, do not tell them apart."""
    text = policy(f"""
    - name: all
      match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}
      validate: {{message: m, pattern: {{metadata: {{labels: {{team: "?*"}}}}}}}}
    - name: some
      match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}
      {scope}
      validate: {{message: m, pattern: {{metadata: {{labels: {{team: "?*"}}}}}}}}
    """)
    assert found(text.replace(scope, "skipBackgroundRequests: true"), "PA201")
    assert [] == found(text, "PA201")
