"""Hosts around another one: each call of the protocol is passed on, and what notes reads misses none."""

from __future__ import annotations

import pytest

from pyverno.cluster.forwardinghost import ForwardingHost
from pyverno.cluster.notinghost import NotingHost
from pyverno.engine.host import AuthorizingHost, Host, NamespacedHttpHost, NoHost
from pyverno.errors import EvaluationError
from pyverno.lang.cel.host import AuthorizationCheck
from pyverno.lang.runtime import ExpressionHost

NOT_READ = frozenset({"allows_http_in_namespaces", "kinds", "recorded_variables", "supplies_variables"})
"""What a change of makes every object be evaluated again, or what no cluster has."""


def members(*protocols: type) -> set[str]:
    """Return the names of all that protocols declare."""
    return {name for each in protocols for name in vars(each) if not name.startswith("_")}


CALLS = members(ExpressionHost, Host, AuthorizingHost, NamespacedHttpHost)


def test_every_call_of_the_protocol_is_passed_on() -> None:
    """A call that is added to the protocol needs a line in the host that forwards."""
    assert set() == CALLS - members(ForwardingHost)


def test_every_read_is_noted() -> None:
    """A call that is only passed on would leave results as they are when what they read changes."""
    assert NOT_READ == CALLS - members(NotingHost)


def test_a_host_without_an_authorizer_cannot_be_asked() -> None:
    """No answer is not a refusal."""
    check = AuthorizationCheck({}, "get", None)
    with pytest.raises(EvaluationError, match="no authorizer"):
        ForwardingHost(NoHost()).authorize(check)
