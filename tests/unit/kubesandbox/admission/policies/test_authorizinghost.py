"""The functions that expressions inside the server can use."""

from __future__ import annotations

import pytest

from kubesandbox.admission.policies.authorizinghost import authorizing_host
from kubesandbox.authorization.access import Access
from pyverno.engine.request import User
from pyverno.errors import HostUnavailableError
from pyverno.lang.cel.host import AuthorizationCheck


class Asked:
    """Records every request and allows it."""

    def __init__(self):
        self.questions = []

    def authorize(self, attributes):
        self.questions.append(attributes)
        return Access(True, "because")


def test_questions_are_about_the_user_or_the_account_that_is_named():
    """A service account comes with its groups."""
    authorizer = Asked()
    host = authorizing_host(authorizer, User("jane"))
    decision = host.authorize(AuthorizationCheck({"resource": "pods", "group": "", "namespace": "x"}, "get", None))
    assert (True, "because") == (decision.allowed, decision.reason)
    host.authorize(AuthorizationCheck({"path": "/healthz"}, "get", ("ci", "builder")))
    first, second = authorizer.questions
    assert ("jane", "get", "pods", "x") == (first.user.username, first.verb, first.resource, first.namespace)
    assert ("system:serviceaccount:ci:builder", "/healthz") == (second.user.username, second.path)
    assert ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated") == second.user.groups


def test_nothing_else_is_answered():
    """There is no network and no registry behind an expression of the server."""
    host = authorizing_host(Asked(), User("jane"))
    with pytest.raises(HostUnavailableError):
        host.http("GET", "https://x", None, {}, "")
    with pytest.raises(HostUnavailableError):
        host.image_metadata("nginx")
