"""Lists where objects have maps, and maps where they have lists."""

from __future__ import annotations

import pytest

from tests.support.linting import found, policy, rule


def pattern(text: str, kinds: str = "Pod") -> str:
    """Return a policy with a pattern in flow style."""
    match = f"{{any: [{{resources: {{kinds: [{kinds}]}}}}]}}"
    return policy(rule(f"validate: {{message: m, pattern: {text}}}", match=match))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[{spec: {hostPID: false}}]", "an object of kind Pod is a map, and this is a list"),
        ("{spec: {containers: {image: x}}}", "`containers` is a list, and this is a map: begin its items with `- `"),
        ("{spec: {=(containers): {image: x}}}", "`containers` is a list, and this is a map: begin its items with `- `"),
        ("{spec: [{hostPID: false}]}", "`spec` is a map, and this is a list"),
        ("{spec: {hostPID: {a: b}}}", "`hostPID` is a plain value, and this is a map"),
        ("{spec: {containers: [[{image: x}]]}}", "an item of `containers` is a map, and this is a list"),
    ],
)
def test_a_list_for_a_map_and_a_map_for_a_list_are_found(text: str, message: str) -> None:
    """Such a pattern fails for every object."""
    assert [message] == [each.partition(" ")[2] for each in found(pattern(text), "PV106")]


@pytest.mark.parametrize(
    "text",
    [
        "{spec: {containers: [{image: x}]}}",
        "{spec: {containers: '*', volumes: null}}",
        "{metadata: {labels: {a: b}}, spec: {nodeSelector: {a: b}}}",
        "{spec: {anything: [a]}}",
        "{spec: {containers: [{resources: {limits: {cpu: '?*'}}}]}}",
    ],
)
def test_what_an_object_may_hold_is_not_reported(text: str) -> None:
    """Neither are plain patterns, maps with any keys, and fields that another lint reports."""
    assert [] == found(pattern(text), "PV106")


def test_kinds_that_differ_are_all_looked_at() -> None:
    """`data` of both kinds is a map; only a kind that is known to differ is a mistake."""
    assert 1 == len(found(pattern("{spec: []}", "Pod, Deployment"), "PV106"))
    assert [] == found(pattern("{spec: []}", "Pod, Unknown"), "PV106")


def test_patches_are_checked_like_patterns() -> None:
    """The API server refuses such an object."""
    text = policy(rule("mutate: {patchStrategicMerge: {spec: {containers: {name: x}}}}"))
    assert 1 == len(found(text, "PV106"))
