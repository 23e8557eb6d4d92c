"""matchConditions of webhooks."""

from __future__ import annotations

import pytest

from kubesandbox.admission.webhooks.conditions import MatchConditions
from kubesandbox.authorization.access import EverythingAllowed
from pyverno.errors import EvaluationError
from tests.support.admissionstage import cluster, config_map, engine_request, request


def holds(*expressions) -> bool:
    listed = [{"name": f"c{index}", "expression": text} for index, text in enumerate(expressions)]
    _, view = cluster()
    question = engine_request(request(config_map(data={"a": "1"})), view)
    return MatchConditions({"matchConditions": listed}, (1, 35)).hold(question, EverythingAllowed())


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ((), True),
        (("object.data.a == '1'",), True),
        (("object.data.a == '1'", "oldObject == null"), True),
        (("object.data.a == '1'", "request.namespace == 'y'"), False),
        (("object.data.b == '1'", "false"), False),
        (("request.requestResource.resource == 'configmaps' && request.options.kind == 'CreateOptions'",), True),
    ],
)
def test_all_conditions_must_be_true(expressions, expected):
    """They see the objects and the request; one that is false decides."""
    assert expected is holds(*expressions)


@pytest.mark.parametrize(
    ("expressions", "why"),
    [
        (("object.data.b == '1'",), "expression 'object.data.b == '1'' resulted in error: no such key: b"),
        (("object.x == 1", "object.x == 1"), "expression 'object.x == 1' resulted in error: no such key: x"),
        (
            ("object.data.b == '1'", "true", "object.data.c == '1'"),
            "[expression 'object.data.b == '1'' resulted in error: no such key: b, expression 'object.data.c == '1'' "
            "resulted in error: no such key: c]",
        ),
    ],
)
def test_errors_are_listed_once_each(expressions, why):
    """The text is what the refusal shows."""
    with pytest.raises(EvaluationError) as error:
        holds(*expressions)
    assert why == error.value.message


@pytest.mark.parametrize("expression", ["1 +", "object.data.a", "namespaceObject.nope.x == 1", "params == null"])
def test_conditions_that_do_not_compile_are_errors(expression):
    """Broken ones, ones that give no bool, and ones about what webhooks do not know."""
    with pytest.raises(EvaluationError):
        holds(expression)
