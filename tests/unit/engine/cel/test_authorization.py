"""Authorization requests match only the policies of their evaluation mode."""

from __future__ import annotations

import pytest

from pyverno import Engine, UsageError
from pyverno.engine.cel.authorization import check_request
from pyverno.engine.phases import ADMISSION
from tests.support.celpolicies import ask, compiled, conditions, exception, kyverno, said, validations

GET = {"attributes": {"method": "GET"}}


def policy(text: str = "http.Allowed().Response()", *, mode: str = "HTTP", **spec):
    """Return a policy that answers with an expression."""
    return kyverno(evaluation={"mode": mode}, validations=validations(text), **spec)


def answers(*documents, payload=GET, mode="HTTP"):
    """Ask the whole set about an authorization request."""
    compilation = compiled(*documents)
    assert [] == [str(error) for error in compilation.errors]
    return said(Engine(compilation.policy_set()).review(check_request(payload, mode=mode), ADMISSION))


def test_a_policy_of_a_mode_judges_its_requests_only():
    """Admission requests and requests of the other mode get no result."""
    assert [("pass", "request allowed")] == answers(policy())
    assert [] == answers(policy(), payload={}, mode="Envoy")
    assert [] == said(ask(policy()))


@pytest.mark.parametrize("mode", ["HTTP", "Envoy"])
def test_what_is_no_request_is_refused_at_the_door(mode):
    """With the place in it."""
    with pytest.raises(UsageError, match="`attributes` must be an object"):
        check_request({"attributes": []}, mode=mode)


def test_a_policy_without_an_answer_is_a_skip():
    """False conditions are a skip too; errors of conditions are errors."""
    skip = [("skip", "request does not match")]
    assert skip == answers(policy("null"))
    assert skip == answers(policy(matchConditions=conditions("object.attributes.method == 'PUT'")))
    fails = conditions("object.attributes.Header('a')[0] == ''")
    assert [("error", "index out of bounds: 0")] == answers(policy(matchConditions=fails))
    assert skip == answers(policy(matchConditions=fails, failurePolicy="Ignore"))


def test_an_exempt_request_gets_no_answer():
    """Conditions of the exception see the request."""
    denies = policy("http.Denied('no').Response()")
    about = {"matchConditions": conditions("object.attributes.method == 'GET'")}
    assert [("skip", "request does not match")] == answers(denies, exception(**about))
    other = {"attributes": {"method": "PUT"}}
    assert [("fail", "request denied, reason: no")] == answers(denies, exception(**about), payload=other)


def test_a_policy_for_pods_in_these_modes_makes_no_copies():
    """Constraints mean nothing here."""
    pods = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}]}
    assert 1 == len(answers(policy(matchConstraints=pods)))
