"""Requests that no policy evaluates: resource filters and excluded users."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from pyverno.engine.request import EvaluationSettings, User
from pyverno.kube.gvk import GVK
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.filters import read_resource_filters

POD = GVK("", "v1", "Pod")
FILTERED = [
    ("[Pod,*,*]", POD, "", "default", "web", True),
    ("[Pod,*,*]", POD, "status", "default", "web", False),
    ("[Pod/*,*,*]", POD, "status", "default", "web", True),
    ("[*/*,kube-system,*]", POD, "exec", "kube-system", "web", True),
    ("[*,kube-*,web-?]", POD, "", "kube-system", "web-1", True),
    ("[*,kube-*,web-?]", POD, "", "default", "web-1", False),
    ("[Pod]", POD, "", "default", "web", False),
    ("[Pod]", POD, "", "", "", True),
    ("[Pod, default,*]", POD, "", "default", "web", False),
    ("[apps/v1/Deployment,*,*]", GVK("apps", "v1", "Deployment"), "", "a", "b", True),
    ("[apps/v1/Deployment,*,*]", GVK("extensions", "v1", "Deployment"), "", "a", "b", False),
    ("[*/*,kyverno,*]", GVK("", "v1", "Namespace"), "", "", "kyverno", True),
    ("[,*,*]", POD, "", "default", "web", False),
    ("", POD, "", "default", "web", False),
]


@pytest.mark.parametrize(("text", "kind", "subresource", "namespace", "name", "expected"), FILTERED)
def test_filters_name_objects(
    text: str, kind: GVK, subresource: str, namespace: str, name: str, expected: bool
) -> None:
    """A filter has kind with wildcards, subresource, namespace and name."""
    found = read_resource_filters(text)
    assert expected is any(each.matches(kind, subresource, namespace, name) for each in found)


def test_groups_of_more_than_three_components_are_left_out() -> None:
    """Text between groups is ignored as well."""
    assert 2 == len(read_resource_filters("first [Pod,a,b]\n  [Pod,a,b,c],[Secret,*,*] last"))


USERS = Configuration.read(
    {
        "excludeGroups": "system:nodes,!system:nodes:watched",
        "excludeUsernames": "system:kube-*",
        "excludeRoles": "team:admin",
        "excludeClusterRoles": "cluster-admin, !auditor",
    }
).excluded
EXCLUDED = [
    (User("a"), False),
    (User("a", groups=("system:nodes",)), True),
    (User("a", groups=("system:nodes", "system:nodes:watched")), False),
    (User("system:kube-scheduler"), True),
    (User("a", roles=("team:admin",)), True),
    (User("a", cluster_roles=("cluster-admin",)), True),
    (User("system:kube-scheduler", cluster_roles=("auditor",)), False),
]


@pytest.mark.parametrize(("user", "expected"), EXCLUDED)
def test_users_are_excluded_unless_they_are_included(user: User, expected: bool) -> None:
    """Any inclusion overrides all exclusions."""
    assert expected is USERS.excludes(user)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("updateRequestThreshold", "9" * 5000),
        ("updateRequestThreshold", "\u0663"),
        ("maxContextSize", "9" * 5000),
        ("maxContextSize", "1e999999999"),
        ("webhooks", "[" * 100_000),
        ("webhooks", '{"a":' * 100_000),
        ("matchConditions", "[" * 100_000),
        ("defaultRegistry", "a-" * 200_000),
        ("resourceFilters", "[" * 100_000),
        ("resourceFilters", "[Pod,*," + "*a" * 100_000 + "]"),
    ],
    ids=lambda text: text[:20],
)
def test_no_value_of_a_key_is_a_bug(key: str, text: str) -> None:
    """Numbers without end, depth and unusual digits are at most a problem, whose text is short: it is logged."""
    found = Configuration.read({key: text, "excludeGroups": "devs"})
    assert all(len(problem) <= 256 for problem in found.problems)
    assert Configuration.read({"excludeGroups": "devs"}).excluded == found.excluded


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("webhooks", '{"namespaceSelector": {"matchLabels": {"a": 1}}}'),
        ("webhooks", '{"namespaceSelector": {"matchLabels": {"a/b/c": "x"}}}'),
        ("webhooks", '{"namespaceSelector": {"matchLabels": ["a"]}}'),
        ("webhooks", '{"objectSelector": {"matchExpressions": "x"}}'),
        ("webhooks", '{"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}}'),
        ("webhooks", '{"objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}'),
        ("webhooks", '{"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}'),
        ("webhookLabels", '{"a/b/c": "x"}'),
        ("webhookLabels", '{"a": "not a label"}'),
        ("webhookLabels", '{"": "x"}'),
        ("webhookAnnotations", '{"a b": "x"}'),
        ("webhookAnnotations", '{"a": "' + "x" * (257 << 10) + '"}'),
        ("maxContextSize", "-1"),
        ("maxContextSize", "-5Mi"),
    ],
    ids=lambda text: text[:60],
)
def test_what_an_api_server_refuses_is_a_problem_of_its_key(key: str, text: str) -> None:
    """It would refuse all webhooks with such a value: one mistake in the ConfigMap would switch off all policies."""
    found = Configuration.read({key: text, "excludeGroups": "devs"})
    assert 1 == len(found.problems)
    assert found.problems[0].startswith(f"{key}: ")
    assert replace(found, problems=()) == Configuration.read({"excludeGroups": "devs"})


def test_what_an_api_server_takes_is_no_problem() -> None:
    """The twin of each kind; less than a byte is one byte, and not without limit."""
    selector = '{"namespaceSelector": {"matchExpressions": [{"key": "x.y/a", "operator": "NotIn", "values": ["b"]}]}}'
    found = Configuration.read(
        {
            "webhooks": selector,
            "webhookLabels": '{"app.kubernetes.io/part-of": "x", "empty": ""}',
            "webhookAnnotations": '{"Example.com/Note": "any text\\n"}',
            "maxContextSize": "1m",
        }
    )
    assert ((), 1) == (found.problems, found.evaluation.context_bytes)
    assert (2, 1, True) == (len(found.webhook_labels), len(found.webhook_annotations), bool(found.namespace_selector))


def test_a_key_that_can_not_be_read_keeps_its_default() -> None:
    """Each invalid key has a problem of its own."""
    found = Configuration.read(
        {
            "webhooks": "[]",
            "matchConditions": '[{"name": "a"}]',
            "webhookLabels": '{"a": 1}',
            "enableDefaultRegistryMutation": "maybe",
            "updateRequestThreshold": "-1",
            "maxContextSize": "0",
            "defaultRegistry": "no registry",
            "webhookAnnotations": '{"a": "b"}',
        }
    )
    assert (
        "webhooks: must be one JSON object",
        "webhookLabels: must be a JSON map of texts",
        "matchConditions: each condition must have the texts `name` and `expression`",
        "defaultRegistry: `no registry` is no registry",
        "enableDefaultRegistryMutation: `maybe` is neither true nor false",
        "updateRequestThreshold: `-1` is no whole number",
    ) == found.problems
    assert (EvaluationSettings(context_bytes=sys.maxsize), {"a": "b"}, 1000) == (
        found.evaluation,
        found.webhook_annotations,
        found.update_request_threshold,
    )
