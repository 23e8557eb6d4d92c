"""Questions of access, and the words of a refusal."""

from __future__ import annotations

import pytest

from kubesandbox.authorization.access import AccessAttributes, EverythingAllowed, forbidden_access
from pyverno.engine.request import User

JANE = User("jane", ("dev",))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (
            {"verb": "list", "resource": "namespaces"},
            'namespaces is forbidden: User "jane" cannot list resource "namespaces" in API group "" at the cluster '
            "scope",
        ),
        (
            {"verb": "get", "group": "apps", "resource": "deployments", "namespace": "x", "name": "web"},
            'deployments.apps "web" is forbidden: User "jane" cannot get resource "deployments" in API group "apps" in '
            'the namespace "x"',
        ),
        (
            {"verb": "get", "resource": "pods", "subresource": "log", "namespace": "x", "name": "p"},
            'pods "p" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "x"',
        ),
        ({"verb": "get", "path": "/foo"}, 'forbidden: User "jane" cannot get path "/foo"'),
        ({"verb": "get", "path": "/<b>"}, 'forbidden: User "jane" cannot get path "/&lt;b&gt;"'),
    ],
)
def test_refusals_have_the_words_of_the_api_server(attributes, expected):
    """Each form of request has its own sentence."""
    assert expected == forbidden_access(AccessAttributes(JANE, **attributes)).message


def test_reasons_follow_the_sentence():
    """The authorizer's reason stands at the end, unescaped."""
    attributes = AccessAttributes(JANE, "get", path="/x")
    assert 'forbidden: User "jane" cannot get path "/x": <why>' == forbidden_access(attributes, "<why>").message


def test_a_server_without_authorization_allows_everything_and_shows_it():
    """SelfSubjectRulesReviews list a rule that allows everything."""
    found = EverythingAllowed()
    assert found.authorize(AccessAttributes(JANE, "delete", resource="nodes")).allowed
    rules, problem = found.rules_for(JANE, "x")
    assert ([("*",), ()], [(), ("*",)], "") == (
        [rule.resources for rule in rules],
        [rule.urls for rule in rules],
        problem,
    )
