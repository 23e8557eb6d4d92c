"""Policies that answer authorization requests are compiled with the types of those requests."""

from __future__ import annotations

import pytest

from tests.support.celpolicies import compiled, conditions, kyverno, named, validations


def errors(mode="HTTP", kind="ValidatingPolicy", **spec):
    """Path and the first line of each error of a policy in a mode."""
    found = compiled(kyverno(kind, evaluation={"mode": mode}, **spec)).errors
    return [(error.path, error.message.splitlines()[0].partition(": ")[2] or error.message) for error in found]


@pytest.mark.parametrize(
    ("mode", "expression", "message"),
    [
        ("HTTP", "http.Allowed().Response()", None),
        ("HTTP", "object.attributes.method == 'GET' ? null : http.Denied('x').Response()", None),
        ("HTTP", "null", None),
        ("Envoy", "envoy.Denied(401).Response()", None),
        ("HTTP", "true", "rule response output is expected to be of type http.CheckResponse"),
        ("HTTP", "http.Allowed()", "rule response output is expected to be of type http.CheckResponse"),
        ("Envoy", "1", "rule response output is expected to be of type envoy.service.auth.v3.CheckResponse"),
        (
            "Envoy",
            "http.Allowed().Response()",
            "<input>:1:13: undeclared reference to 'Allowed' (in container '')",
        ),
        (
            "HTTP",
            "request.name == '' ? null : null",
            "<input>:1:1: undeclared reference to 'request' (in container '')",
        ),
    ],
)
def test_a_validation_gives_an_answer_of_the_mode(mode, expression, message):
    """Or null; nothing of Kubernetes is there."""
    expected = [] if message is None else [("spec.validations[0].expression", message)]
    assert expected == errors(mode, validations=validations(expression))


def test_conditions_are_bool_and_see_no_variables():
    """They are compiled before the variables are."""
    found = errors(
        variables=named(v="object.attributes.method"),
        matchConditions=conditions("object.attributes.method", "variables.v == ''"),
        validations=validations("variables.v == 'GET' ? http.Allowed().Response() : null"),
    )
    paths = [f"spec.matchConditions[{index}].expression" for index in (0, 1)]
    assert paths == [path for path, _ in found]


def test_policies_of_a_namespace_are_refused():
    """No proxy would ever ask them."""
    ((path, message),) = errors(kind="NamespacedValidatingPolicy", validations=validations("null"))
    assert ("spec.evaluation.mode", True) == (path, message.endswith("use kind ValidatingPolicy"))
