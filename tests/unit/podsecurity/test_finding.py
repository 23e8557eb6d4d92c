"""Texts of Pod Security findings."""

import pytest

from pyverno.podsecurity.finding import FieldError, Violation


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FieldError("f", True), "f is forbidden, forbidden values found: true"),
        (FieldError("f", False), "f is forbidden, forbidden values found: false"),
        (FieldError("f", 0), "f is forbidden, forbidden values found: 0"),
        (FieldError("f", "Unconfined"), "f is forbidden, forbidden values found: Unconfined"),
        (FieldError("f", ("NET_ADMIN", "NET_RAW")), "f is forbidden, forbidden values found: [NET_ADMIN NET_RAW]"),
        (FieldError("f"), "f: Forbidden"),
        (FieldError("f", required=True), "f: Required value"),
    ],
)
def test_a_field_error_names_its_value_if_it_has_one(error, expected):
    """Zero and false are values; only an empty text is none."""
    assert error.text == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ()),
        ("x", ("x",)),
        (True, ("true",)),
        (False, ("false",)),
        (0, ("0",)),
        (80, ("80",)),
        (("A", "B"), ("A", "B")),
    ],
)
def test_offending_values_are_texts(value, expected):
    """An exclude compares texts only."""
    assert FieldError("f", value).offending_values == expected


def test_every_number_of_a_path_is_starred():
    """Indexes of containers and of their ports become stars alike."""
    assert FieldError("spec.containers[12].ports[0].hostPort").starred_field == "spec.containers[*].ports[*].hostPort"


def test_a_violation_lists_its_errors():
    """Errors are joined by commas."""
    violation = Violation("x", "X", "why", "", (FieldError("a"), FieldError("b", 1)))
    assert violation.text == (
        "(Forbidden reason: why, field error list: [a: Forbidden, b is forbidden, forbidden values found: 1])"
    )


def test_a_violation_without_errors_has_an_empty_list():
    """Some checks of Kubernetes report no field."""
    assert Violation("x", "", "why", "", ()).text == "(Forbidden reason: why, field error list: [])"
