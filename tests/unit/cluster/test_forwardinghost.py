"""Hosts that wrap another one: they forward each call of the protocol, and record each read."""

from __future__ import annotations

import pytest

from pyverno.cluster.forwardinghost import ForwardingHost
from pyverno.cluster.notinghost import NotingHost
from pyverno.engine.host import AuthorizingHost, Host, NamespacedHttpHost, NoHost
from pyverno.errors import EvaluationError
from pyverno.lang.cel.host import AuthorizationCheck
from pyverno.lang.runtime import ExpressionHost

NOT_READ = frozenset({"allows_http_in_namespaces", "kinds", "record_keys", "recorded_variables", "supplies_variables"})
"""Members that need no record: their change evaluates every object again, or changes no result."""


def members(*protocols: type) -> set[str]:
    """Return the names of all members that protocols declare."""
    return {name for each in protocols for name in vars(each) if not name.startswith("_")}


CALLS = members(ExpressionHost, Host, AuthorizingHost, NamespacedHttpHost)


def test_every_call_of_the_protocol_is_passed_on() -> None:
    """A new call in the protocol needs a method in the forwarding host."""
    assert set() == CALLS - members(ForwardingHost)


def test_every_read_is_noted() -> None:
    """With an unrecorded read, results would stay unchanged when the data change."""
    assert NOT_READ == CALLS - members(NotingHost)


def test_a_host_without_an_authorizer_cannot_authorize() -> None:
    """A missing authorizer is an error, not a denial."""
    check = AuthorizationCheck({}, "get", None)
    with pytest.raises(EvaluationError, match="no authorizer"):
        ForwardingHost(NoHost()).authorize(check)
