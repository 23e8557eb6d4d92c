"""Rules of which another one refuses everything."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pyverno.compiler.analysis.workspace import Workspace
from pyverno.engine.rule import CompiledRule
from pyverno.kube.json import JSONObject
from tests.support.analysis import example_of, found, policy


def test_a_rule_that_enforces_is_not_shadowed_by_one_that_audits() -> None:
    """Without it the objects would be let in."""
    assert found(example_of("PA202"), "PA202")
    strict = example_of("PA202").replace(
        'pattern: {spec: {containers: [{image: "!*', 'failureAction: Enforce, pattern: {spec: {containers: [{image: "!*'
    )
    assert [] == found(strict, "PA202")


def test_rules_for_different_fields_do_not_shadow_each_other() -> None:
    """An object that breaks one of them only is found by merging."""
    text = policy("""
    - name: rare
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {data: {"=(app)": "!a"}}}
    - name: frequent
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {team: "red"}}}}
    """)
    assert [] == found(text, "PA202")


def test_a_rule_that_one_missing_field_breaks_is_not_shadowed() -> None:
    """Few objects satisfy the other rule; without the field they break this one only."""
    text = policy("""
    - name: one
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {data: {one: "1"}}}
    - name: two
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {data: {two: "2"}, metadata: {labels: {app: "3"}}}}
    """)
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "b", "labels": {"app": "3"}},
    }
    given = [{**body, "data": {"one": "1", "two": "2", name: "x"}} for name in "xyz"]
    assert [] == found(text, "PA202", given=given, count=20)


def test_rules_with_one_way_out_in_common_do_not_shadow_each_other() -> None:
    """Hardly an object satisfies the second rule but by the common way: it is changed to satisfy it by another."""
    text = policy("""
    - name: one
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, anyPattern: [{data: {os: windows}}, {data: {drop: all, add: none, level: "3"}}]}
    - name: two
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, anyPattern: [{data: {os: windows}}, {data: {escalate: never, root: never, mode: "7"}}]}
    """)
    assert [] == found(text, "PA202")


def test_a_rule_for_all_users_is_not_shadowed_by_one_for_some() -> None:
    """The second rule is stricter, but not for admins."""
    text = policy("""
    - name: weak
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {team: "?*"}}}}
    - name: strict
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      exclude: {any: [{subjects: [{kind: Group, name: admins}]}]}
      validate: {message: m, pattern: {metadata: {labels: {team: "a?*"}}}}
    """)
    assert found(text.replace("exclude: {any: [{subjects: [{kind: Group, name: admins}]}]}", ""), "PA202")
    assert [] == found(text, "PA202")


def test_rules_that_a_merged_object_tells_apart_are_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Explanations cost a hundred reviews each: only pairs that survive the merged objects need them."""
    explained: list[str] = []
    satisfied = Workspace.satisfied

    def counted(workspace: Workspace, rule: CompiledRule, number: int) -> Sequence[JSONObject]:
        explained.append(rule.info.name)
        return satisfied(workspace, rule, number)

    monkeypatch.setattr(Workspace, "satisfied", counted)
    text = policy("""
    - name: rare
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {annotations: {level: "1"}}}}
    - name: frequent
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {team: "red", tier: "2"}}}}
    """)
    body = {"apiVersion": "v1", "kind": "ConfigMap"}
    well = {"name": "a", "annotations": {"level": "1"}, "labels": {"team": "red", "tier": "2"}}
    given = [{**body, "metadata": {**well, "name": name}} for name in "xyz"]
    given += [{**body, "metadata": {"name": name, "annotations": {"level": "1"}}} for name in "uv"]
    assert ([], []) == (found(text, "PA202", given=given, count=20), explained)
