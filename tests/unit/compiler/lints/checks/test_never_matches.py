"""Rules that certainly match nothing."""

from __future__ import annotations

import pytest

from tests.support.linting import cel_policy, found, policy, rule

BODY = "validate: {message: m, pattern: {metadata: {name: '?*'}}}"


def selector(requirement: str) -> str:
    """Return a match with the label a: b and a requirement."""
    labels = f"{{matchLabels: {{a: b}}, matchExpressions: [{requirement}]}}"
    return f"{{any: [{{resources: {{kinds: [Pod], selector: {labels}}}}}]}}"


@pytest.mark.parametrize(
    ("match", "exclude", "message"),
    [
        (
            "{all: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Deployment]}}]}",
            "",
            "no object is of all these kinds",
        ),
        (
            "{any: [{resources: {kinds: [Pod]}}]}",
            "{any: [{resources: {kinds: [Pod, Job]}}]}",
            "the exclude covers everything",
        ),
        (
            "{any: [{resources: {kinds: [Pod], namespaces: [a]}}]}",
            "{any: [{resources: {namespaces: [a]}}]}",
            "the exclude covers everything",
        ),
        ("{any: [{resources: {kinds: [Node], namespaces: [a]}}]}", "", "live in no namespace"),
        (
            selector("{key: a, operator: NotIn, values: [b]}"),
            "",
            "the label `a` cannot be `b`",
        ),
        (
            selector("{key: a, operator: DoesNotExist}"),
            "",
            "must exist and must not exist",
        ),
    ],
)
def test_a_rule_that_matches_nothing_is_found(match: str, exclude: str, message: str) -> None:
    """Each way in which it is certain."""
    text = policy(rule(f"exclude: {exclude}\n{BODY}" if exclude else BODY, match=match))
    [line] = found(text, "PV401")
    assert message in line


@pytest.mark.parametrize(
    ("match", "exclude"),
    [
        ("{any: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Deployment]}}]}", ""),
        ("{all: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Pod], namespaces: [a]}}]}", ""),
        ("{any: [{resources: {kinds: [Pod]}}]}", "{any: [{resources: {namespaces: [a]}}]}"),
        ("{any: [{resources: {kinds: [Pod]}}]}", "{any: [{resources: {kinds: [Pod]}, clusterRoles: [admin]}]}"),
        ("{any: [{resources: {kinds: [Pod, Job]}}]}", "{any: [{resources: {kinds: [Pod]}}]}"),
        ("{any: [{resources: {kinds: [Namespace], namespaces: [a]}}]}", ""),
        ("{any: [{resources: {kinds: [Node], namespaces: ['*']}}]}", ""),
    ],
)
def test_a_rule_that_may_match_is_not_reported(match: str, exclude: str) -> None:
    """Narrow excludes, and conditions that can hold together."""
    text = policy(rule(f"exclude: {exclude}\n{BODY}" if exclude else BODY, match=match))
    assert [] == found(text, "PV401")


def test_exclusions_that_repeat_the_rules_of_a_policy_in_cel_are_found() -> None:
    """The policy matches no request."""
    excluded = "{apiGroups: ['*'], apiVersions: [v1], operations: ['*'], resources: [deployments]}"
    text = cel_policy(f"  excludeResourceRules: [{excluded}]\nvalidations: [{{expression: 'true'}}]")
    assert ["8:5 excludeResourceRules exclude everything that resourceRules match"] == found(text, "PV401")
