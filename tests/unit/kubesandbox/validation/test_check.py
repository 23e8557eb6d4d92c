"""Tests of `validation.check`."""

from __future__ import annotations

import pytest

from kubesandbox.validation.check import (
    Check,
    all_of,
    at_least,
    between,
    each,
    form,
    immutable,
    label_selector,
    labels,
    needed,
    not_negative,
    one_of,
    port_number,
    port_or_name,
    struct,
)
from kubesandbox.validation.names import dns_label_problems
from pyverno.kube.json import JSON


def said(check: Check, value: JSON) -> list[str]:
    """Return the errors of a check for a value at `x`."""
    errors: list[object] = []
    check(value, "x", errors)  # type: ignore[arg-type]  # only printed
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("check", "value", "expected"),
    [
        (not_negative, 0, []),
        (not_negative, -1, ["x: Invalid value: -1: must be greater than or equal to 0"]),
        (at_least(1, "must be greater than 0"), 0, ["x: Invalid value: 0: must be greater than 0"]),
        (between(1, 3), 4, ["x: Invalid value: 4: must be between 1 and 3, inclusive"]),
        (port_number, 65535, []),
        (one_of("A", "B"), "C", ['x: Unsupported value: "C": supported values: "A", "B"']),
        (port_or_name, "http", []),
        (port_or_name, 0, ["x: Invalid value: 0: must be between 1 and 65535, inclusive"]),
        (form(dns_label_problems), "a.b", ['x: Invalid value: "a.b": must not contain dots']),
        (each(not_negative), [1, -1], ["x[1]: Invalid value: -1: must be greater than or equal to 0"]),
        (
            all_of(not_negative, port_number),
            -1,
            [
                "x: Invalid value: -1: must be greater than or equal to 0",
                "x: Invalid value: -1: must be between 1 and 65535, inclusive",
            ],
        ),
        (
            struct({"a": needed(), "b": not_negative}),
            {"b": -1},
            ["x.a: Required value", "x.b: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (struct({"a": needed(None, "because")}), {"a": ""}, ["x.a: Required value: because"]),
        (labels, {"a": "b"}, []),
        (
            label_selector,
            {"matchExpressions": [{"key": "a", "operator": "X"}]},
            ['x.matchExpressions[0].operator: Invalid value: "X": not a valid selector operator'],
        ),
    ],
)
def test_a_check_names_the_fault(check: Check, value: JSON, expected: list[str]) -> None:
    """A valid value gives no error."""
    assert expected == said(check, value)


def test_what_is_immutable_is_compared_by_value() -> None:
    """Equal objects are the same; the message shows the new one."""
    errors: list[object] = []
    immutable({"a": 1}, {"a": 1}, "x", errors)  # type: ignore[arg-type]  # only printed
    immutable({"a": 2}, {"a": 1}, "x", errors)  # type: ignore[arg-type]  # only printed
    assert ['x: Invalid value: {"a":2}: field is immutable'] == [str(error) for error in errors]
