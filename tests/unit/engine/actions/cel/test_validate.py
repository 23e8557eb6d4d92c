"""Validations in CEL: the results of a ValidatingPolicy for a request."""

from __future__ import annotations

import pytest

from pyverno.engine.result import CelDetail
from tests.support.celpolicies import ERROR, ask, kyverno, named, said, validations

NULL = "type conversion error from 'null_type' to 'string'"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (validations("true", "true"), ("pass", "success", None)),
        (validations("true", "false", "1 == 2"), ("fail", "CEL expression validation failed at index 1", 1)),
        (validations("true", ERROR, "false"), ("error", "error: no such key: missing", 1)),
        (validations("false", ERROR), ("fail", "CEL expression validation failed at index 0", 0)),
        (validations("false", message="no"), ("fail", "no", 0)),
        (validations("false", message="no", messageExpression="'a ' + object.data.key"), ("fail", "a value", 0)),
        (validations("false", message=" no "), ("fail", " no ", 0)),
        (validations("false", messageExpression="' a '"), ("fail", " a ", 0)),
        (
            validations("false", message="no", messageExpression="''"),
            ("fail", "CEL expression validation failed at index 0", 0),
        ),
        (
            validations("false", message="no", messageExpression="string(object.missing)"),
            ("fail", "failed to evaluate message expression: no such key: missing", 0),
        ),
        (
            validations("false", messageExpression="variables.v"),
            (
                "fail",
                "failed to evaluate message expression: no such key: missing",
                0,
            ),
        ),
    ],
)
def test_the_first_validation_that_is_false_or_fails_decides(written, expected):
    """Those after it are not looked at; its position is in the detail."""
    (result,) = ask(kyverno(variables=named(v="string(object.missing)"), validations=written)).results
    position = result.detail.position if isinstance(result.detail, CelDetail) else None
    assert expected == (result.status.value, result.message, position)


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({}, False),
        ({"validationActions": ["Deny"]}, False),
        ({"validationActions": ["Audit"]}, True),
        ({"validationActions": ["Warn"]}, True),
        ({"validationActions": ["Audit", "Deny"]}, False),
    ],
)
def test_a_policy_denies_by_default(spec, allowed):
    """No validationActions at all mean Deny; errors are denied like failures."""
    assert allowed is ask(kyverno(validations=validations("false"), **spec)).decision.allowed
    assert allowed is ask(kyverno(validations=validations(ERROR), **spec)).decision.allowed
    assert ask(kyverno(failurePolicy="Ignore", validations=validations(ERROR), **spec)).decision.allowed


@pytest.mark.parametrize(
    ("written", "expression", "expected", "properties"),
    [
        ("true", "'seen ' + object.data.key", ("pass", "success"), {"note": "seen value"}),
        ("false", "'seen ' + object.data.key", ("fail", "CEL expression validation failed at index 0"),
         {"note": "seen value"}),
        ("true", "''", ("pass", "success"), {}),
        ("true", "string(object.missing)",
         ("error", "failed to load context: failed to evaluate auditAnnotation 'note': no such key: missing"), {}),
        ("false", "string(object.missing)",
         ("error", "error: failed to evaluate auditAnnotation 'note': no such key: missing"), {}),
        ("false", "null", ("error", "error: failed to convert auditAnnotation 'note' expression: " + NULL), {}),
        ("true", "null",
         ("error", "failed to load context: failed to convert auditAnnotation 'note' expression: " + NULL), {}),
        (ERROR, "'x'", ("error", "error: no such key: missing"), {}),
    ],
)  # fmt: skip
def test_audit_annotations_become_properties_of_the_result(written, expression, expected, properties):
    """They are computed on pass and fail; one that fails, or is null, is an error of the policy."""
    annotations = [{"key": "note", "valueExpression": expression}]
    review = ask(kyverno(validations=validations(written), auditAnnotations=annotations))
    assert [expected] == said(review)
    assert properties == dict(review.results[0].properties)


def test_a_payload_is_all_that_a_policy_in_mode_json_sees():
    """The payload has no `request`, even if the document looks like a Kubernetes object."""
    policy = kyverno(evaluation={"mode": "JSON"}, validations=validations("object.kind == 'ConfigMap'"))
    assert [("pass", "success")] == said(ask(policy))
