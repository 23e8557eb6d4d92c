"""Tests of `schema.scalars`."""

from __future__ import annotations

import pytest

from kubesandbox.schema.scalars import SPECIAL_TYPES, MismatchError, UnreadableError, read_bytes, scalar_reader
from pyverno.kube.json import JSON

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"


@pytest.mark.parametrize(
    ("kind", "form", "value", "found"),
    [
        ("string", "", 1, "number"),
        ("string", "", True, "bool"),
        ("boolean", "", "x", "string"),
        ("boolean", "", 1, "number"),
        ("integer", "int32", True, "bool"),
        ("integer", "int32", 2**31, "number 2147483648"),
        ("integer", "int64", 1.5, "number 1.5"),
        ("integer", "int64", [], "array"),
        ("number", "double", {}, "object"),
    ],
)
def test_a_wrong_type_is_named_as_go_names_it(kind: str, form: str, value: JSON, found: str) -> None:
    """A number that does not fit is shown."""
    with pytest.raises(MismatchError) as caught:
        scalar_reader(kind, form)(value)
    assert found == caught.value.found


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        (QUANTITY, "0.5", "500m"),
        (QUANTITY, 1, "1"),
        (QUANTITY, "1024Mi", "1Gi"),
        (INT_OR_STRING, "25%", "25%"),
        (INT_OR_STRING, 3, 3),
        (f"{META}.Time", "2024-01-02T03:04:05+01:00", "2024-01-02T02:04:05Z"),
        (f"{META}.MicroTime", "2024-01-02T03:04:05.1Z", "2024-01-02T03:04:05.100000Z"),
        (f"{META}.Duration", "90s", "1m30s"),
    ],
)
def test_values_come_back_in_canonical_form(name: str, value: JSON, read: JSON) -> None:
    """The canonical form is the one that Go writes."""
    assert read == SPECIAL_TYPES[name](value)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (QUANTITY, "x", "quantities must match the regular expression"),
        (QUANTITY, True, "quantities must match the regular expression"),
        (f"{META}.Time", "x", 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ],
)
def test_what_can_not_be_read_is_said_in_the_words_of_go(name: str, value: JSON, text: str) -> None:
    """As in Go, the error names no field."""
    with pytest.raises(UnreadableError) as caught:
        SPECIAL_TYPES[name](value)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("text", "offset"), [("%%", 0), ("YQ", 0), ("YWI", 0), ("YQ=x", 2), ("YQ==x", 4), ("YQ=", 3), ("a=", 1)]
)
def test_bad_base64_is_located(text: str, offset: int) -> None:
    """The error has the offset at which Go's decoder stops."""
    with pytest.raises(UnreadableError) as caught:
        read_bytes(text)
    assert f"illegal base64 data at input byte {offset}" == str(caught.value)


def test_line_breaks_in_base64_are_dropped() -> None:
    """Line breaks are allowed anywhere in base64."""
    assert "YWJj" == read_bytes("YW\r\nJj\n")
