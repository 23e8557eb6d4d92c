"""Tests of `kubesandbox.objects.fielderrors`."""

from __future__ import annotations

import pytest

from kubesandbox.objects.fielderrors import (
    duplicate,
    forbidden,
    go_struct,
    go_value,
    invalid,
    invalid_type,
    is_blocking,
    not_found,
    required,
    too_long,
    too_many,
    unsupported,
)
from pyverno.kube.status import FieldError


@pytest.mark.parametrize(
    ("error", "text", "reason", "blocks"),
    [
        (invalid("a", "x", "no"), 'a: Invalid value: "x": no', "FieldValueInvalid", False),
        (invalid("a", {"b": [1]}, "no"), 'a: Invalid value: {"b":[1]}: no', "FieldValueInvalid", False),
        (invalid_type("a", "string", "no"), 'a: Invalid value: "string": no', "FieldValueTypeInvalid", True),
        (required("a"), "a: Required value", "FieldValueRequired", True),
        (required("a", "why"), "a: Required value: why", "FieldValueRequired", True),
        (forbidden("a", "why"), "a: Forbidden: why", "FieldValueForbidden", False),
        (duplicate("a", "x"), 'a: Duplicate value: "x"', "FieldValueDuplicate", False),
        (not_found("a", "x"), 'a: Not found: "x"', "FieldValueNotFound", False),
        (unsupported("a", 1, ()), "a: Unsupported value: 1", "FieldValueNotSupported", True),
        (too_long("a", 1), "a: Too long: may not be more than 1 byte", "FieldValueTooLong", True),
        (too_many("a", 3, 2), "a: Too many: 3: must have at most 2 items", "FieldValueTooMany", True),
    ],
)
def test_an_error_reads_as_in_kubernetes(error: FieldError, text: str, reason: str, blocks: bool) -> None:
    """It has a text and a reason, and may keep CEL rules from running."""
    assert (text, reason, blocks) == (str(error), error.cause.reason, is_blocking(error))


def test_values_are_written_as_go_writes_them() -> None:
    """Texts in quotes, the rest as JSON; a whole struct with all its fields."""
    assert ['"a\\nb"', "true", "null", "1.5"] == [go_value(value) for value in ("a\nb", True, None, 1.5)]
    assert '{"APIGroup":"g","Kind":null}' == go_struct({"apiGroup": "g"}, ("APIGroup", "Kind"))
